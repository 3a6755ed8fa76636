"""Values turned back into source: constants, tensors, containers. Each is made once, and may contain itself."""

import collections
import functools
import math
import re
import types
from typing import Any

import torch

from stator_variables import _kinds as k
from stator_variables._build import PATHS
from stator_variables._builtin._iterators import of_base
from stator_variables._emit._emitter import Emitter, filled, made_empty, namespace_of, rebuilders
from stator_variables._model._hashing import is_asking
from stator_variables._model._set_order import CREATING, Recipe, original_of, recipe_of
from stator_variables._runtime import as_subclass, found_again
from stator_variables._stored import has_member
from stator_variables._tracker import DELETED, MISSING, is_pending

_LITERALS = (int, float, str, bytes, bool, type(None))


@rebuilders.handles(k.ConstantTracker)
def constant(e: Emitter, vt: Any) -> str:
    value = vt.value
    if type(value) in _LITERALS and not has_no_literal(value):
        return repr(value)
    if type(value) is re.Match:
        return e.bind(vt, f"{e.capture(found_again)}({e.capture(value, 'Match')})")
    if type(value) in PATHS:
        return e.bind(vt, f"{e.capture(type(value))}({str(value)!r})")
    if k.is_nan(value):
        return e.bind(
            vt, f"-(-{e.capture(value, 'nan')})"
        )  # another object on each run: containers keep each of them
    return e.capture(value, type(value).__name__)


@rebuilders.handles(k.TextTracker)
def text(e: Emitter, vt: Any) -> str:
    numbers = ", ".join(e.expr(part[0]) for part in vt.parts if not isinstance(part, str))
    template = "".join(map(_placed, vt.parts))
    return e.bind(vt, f"str({numbers})" if template == "{}" else f"{template!r}.format({numbers})")


def _placed(part: Any) -> str:
    """A part of a text in a template for `str.format`."""
    if isinstance(part, str):
        return part.replace("{", "{{").replace("}", "}}")
    return f"{{:{part[1]}}}" if part[1] else "{}"


def has_no_literal(value: Any) -> bool:
    """Infinities, and ints that the interpreter may refuse to write down."""
    if type(value) is float:
        return not math.isfinite(value)
    return type(value) is int and value.bit_length() > _LONGEST


_LONGEST = 2000  # bits: fewer digits than the lowest limit that sys.set_int_max_str_digits takes


@rebuilders.handles(k.TensorTracker)
def tensor(e: Emitter, vt: Any) -> str:
    text = e.output(vt.traced if vt.hooked is None else vt.before)
    return (
        filled(e, vt, e.bind(vt, text))
        if vt.namespace is not None and vt.namespace.entries
        else text
    )


@rebuilders.handles(k.SubclassTracker)
def tensor_of_class(e: Emitter, vt: Any) -> str:
    made = e.capture(as_subclass)
    return filled(e, vt, e.bind(vt, f"{made}({e.expr(vt.tensor)}, {e.capture(vt.cls)})"))


@rebuilders.handles(k.ArrayTracker)
def array(e: Emitter, vt: Any) -> str:
    """An array over the memory of the tensor; what is no array is its one item."""
    part = "" if vt.cls.__name__ == "ndarray" else "[()]"
    if vt.flipped:
        part = f"[{', '.join('::-1' if i in vt.flipped else ':' for i in range(vt.tensor.example.dim()))}]"
    if vt.needs_own_memory and vt.owns_memory:
        part += ".copy()"
    return e.bind(vt, f"{e.output(vt.tensor.traced)}.numpy(){part}")


@rebuilders.handles(k.NumberTracker)
def number(e: Emitter, vt: Any) -> str:
    """A number that is an input, or a size of one, is read from there, and simple arithmetic is done here: the graph
    need not give it."""
    if (source := e.t.graph.source_of(vt.traced)) is not None:
        return e.load(source)
    text = e.t.graph.text_of(vt.traced, e.load)
    return e.output(vt.traced) if text is None else e.bind(vt, text)


@rebuilders.handles(k.TupleTracker)
def tuple_(e: Emitter, vt: Any) -> str:
    items = ", ".join(e.expr(item) for item in vt.items)
    text = f"({items},)" if vt.items else "()"
    if vt.items and all(
        not is_pending(item) and isinstance(item, k.ConstantTracker) for item in vt.items
    ):
        text = f"tuple([{items}])"  # the compiler would make one object of all that are equal
    if vt.cls is not tuple:
        text = f"{e.capture(tuple.__new__, 'tuple_new')}({e.capture(vt.cls)}, {text})"
        if vt.cls is torch.Size or has_member(
            vt.cls, "n_sequence_fields"
        ):  # made by C code that `tuple.__new__` refuses
            text = f"{e.capture(vt.cls)}(({items}{',' if vt.items else ''}))"
    return filled(e, vt, e.bind(vt, text))


@rebuilders.handles(k.ListTracker)
def list_(e: Emitter, vt: Any) -> str:
    if vt.cls is list and all(_is_leaf(item) for item in vt.items):
        return e.bind(vt, f"[{', '.join(e.expr(item) for item in vt.items)}]")
    name = e.bind(vt, "[]" if vt.cls is list else made_empty(e, vt.cls))
    if vt.maxlen is not None:
        e.lines.append(f"{list_base(e, vt)}.__init__({name}, (), {vt.maxlen})")
    if vt.items:
        late = (
            []
            if issubclass(vt.cls, list)
            else [i for i, item in enumerate(vt.items) if not _is_leaf(item)]
        )
        items = ", ".join("None" if i in late else e.expr(item) for i, item in enumerate(vt.items))
        begun = f"{name}.extend(" if vt.cls is list else f"{list_base(e, vt)}.extend({name}, "
        e.lines.append(f"{begun}[{items}])")
        for i in late:  # an iterator over a deque that is in it stands among as many items
            text = f"{list_base(e, vt)}.__setitem__({name}, {i}, {e.expr(vt.items[i])})"
            e.lines.append(text)
    return filled(e, vt, name)


def list_base(e: Emitter, vt: Any) -> str:
    return e.capture(collections.deque) if issubclass(vt.cls, collections.deque) else "list"


def _is_leaf(vt: Any) -> bool:
    return (
        is_pending(vt)
        or vt.source is not None
        or isinstance(vt, k.ConstantTracker | k.TensorTracker)
    )


@rebuilders.handles(k.DictTracker)
def dict_(e: Emitter, vt: Any) -> str:
    if vt.owner is not None:
        return namespace_of(e, vt.owner, e.expr(vt.owner))
    pairs, asking = (
        [pair for pair in vt.entries.values() if pair[1] is not DELETED],
        is_asking(e.t, vt),
    )
    if vt.cls is dict and not asking and all(_is_leaf(value) for _, value in pairs):
        inside = ", ".join(f"{e.expr(key)}: {e.expr(value)}" for key, value in pairs)
        return e.bind(vt, f"{{{inside}}}")
    name = e.bind(vt, _empty_dict(e, vt))
    if vt.cls is not collections.defaultdict and vt.default_factory is not MISSING:
        e.lines.append(f"{name}.default_factory = {e.expr(vt.default_factory)}")
    lines = e.asking.lines if asking else e.lines
    if not (
        asking or all(it.exhausted for it in vt.iterators)
    ):  # it may hold them, and they stand among its keys
        e.unfilled.append(vt)
        lines += [written_item(e, vt.cls, name, key, k.NONE) for key, _ in pairs]
        e.unfilled.pop()
    for key, value in pairs:
        text = written_item(e, vt.cls, name, key, value)
        lines.append(text)
    return filled(e, vt, name)


def _empty_dict(e: Emitter, vt: Any) -> str:
    if vt.cls is dict:
        return "{}"
    if vt.cls is collections.defaultdict:
        factory = "None" if vt.default_factory is MISSING else e.expr(vt.default_factory)
        return f"{e.capture(vt.cls)}({factory})"
    return made_empty(e, vt.cls)


def written_item(e: Emitter, cls: type, name: str, key: Any, value: Any) -> str:
    """Item assignment, or without a value deletion, that no override of the class can see: the writes were interpreted
    already."""
    given = [e.expr(vt) for vt in (key, value) if vt is not None]
    if cls in (dict, collections.OrderedDict, collections.defaultdict):
        target = f"{name}[{given[0]}]"
        return f"del {target}" if value is None else f"{target} = {given[1]}"
    base = collections.OrderedDict if issubclass(cls, collections.OrderedDict) else dict
    verb = "delitem" if value is None else "setitem"
    return f"{e.capture(getattr(base, f'__{verb}__'), f'{base.__name__}_{verb}')}({', '.join([name, *given])})"


@rebuilders.handles(k.SetTracker)
def set_(e: Emitter, vt: Any) -> str:
    """Made by the steps of the program: the order of its elements follows from them."""
    steps, asking = vt.steps or [], is_asking(e.t, vt)
    if steps and steps[0][0] in CREATING:
        name = _created(e, vt, asking, *steps[0])
        write_steps(e, asking, name, steps[1:])
        return name
    if vt.cls is set and (asking or any(method != "add" for method, _ in steps)):
        name = e.bind(vt, "set()")
        write_steps(e, asking, name, steps or [("add", item) for item in vt.entries.values()])
        return name
    bind = functools.partial(e.bind_later, e.asking) if asking else e.bind
    if vt.cls is frozenset and [method for method, _ in steps] == ["update"]:
        whole = steps[0][1]
        return (
            e.expr(whole)
            if whole.cls is frozenset
            else bind(vt, f"{e.capture(frozenset)}({e.expr(whole)})")
        )
    items = ", ".join(e.expr(item) for item in vt.entries.values())
    if vt.cls in (set, frozenset):
        return bind(vt, f"{e.capture(vt.cls)}([{items}])")
    if issubclass(vt.cls, frozenset):
        return filled(e, vt, bind(vt, made_empty(e, vt.cls, f", [{items}]")))
    name = bind(vt, made_empty(e, vt.cls))
    (e.asking.lines if asking else e.lines).append(f"set.update({name}, [{items}])")
    return filled(e, vt, name)


def _created(e: Emitter, vt: Any, asking: bool, method: str, operands: tuple[Any, ...]) -> str:
    """Before the effects where all operands are there by then: a set from outside is as it was."""
    if asking and any(id(original_of(operand)) in e.t.changed for operand in operands):
        raise e.refuse(vt)
    early = [_early(e, operand) for operand in operands]
    texts = [e.expr(operand) for operand in operands] if None in early else early
    text = f"{e.capture(vt.cls)}.{method}({', '.join(map(str, texts))})"
    if asking:
        return e.bind_later(e.asking, vt, text)
    return e.bind(vt, text) if None in early else e.bind_early(vt, text)


def _early(e: Emitter, operand: Any) -> str | None:
    operand = original_of(operand)
    if operand.source is not None:
        return e.load(operand.source)
    existing: list[Any] = []
    if (recipe := recipe_of(e.t, operand, existing)) is None or existing:
        return None
    return e.capture(recipe.make() if type(recipe) is Recipe else recipe, "operand")


def write_steps(e: Emitter, asking: bool, name: str, steps: list[tuple[str, Any]]) -> None:
    lines = e.asking.lines if asking else e.lines
    lines += [
        f"set.{method}({name}{'' if item is None else f', {e.expr(_as_it_is(e, item))}'})"
        for method, item in steps
    ]


def _as_it_is(e: Emitter, item: Any) -> Any:
    """An existing set that nothing has changed, not a copy of it, which has another order where one was discarded."""
    original = original_of(item)
    return item if id(original) in e.t.changed else original


@rebuilders.handles(k.ViewTracker)
def view(e: Emitter, vt: Any) -> str:
    return e.bind(vt, of_base(e, vt.mapping, vt.part, f"{{}}.{vt.part}()"))


@rebuilders.handles(k.ProxyTracker)
def proxy(e: Emitter, vt: Any) -> str:
    if vt.owner is not None:
        return e.bind(vt, f"{e.capture(vt.owner)}.__dict__")
    return e.bind(vt, f"{e.capture(types.MappingProxyType, 'MappingProxy')}({e.expr(vt.mapping)})")


@rebuilders.handles(k.SliceTracker)
def slice_(e: Emitter, vt: Any) -> str:
    return e.bind(vt, f"slice({', '.join(e.expr(part) for part in vt.parts)})")
