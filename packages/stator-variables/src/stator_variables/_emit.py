"""From trackers back to Python source: loads before the graph runs, rebuilt values and effects after it.

v0 = self._parameters["weight"]      # loads: everything existing that is needed, read before anything is written
g = graph(x, v0)
v1 = [g[0], x]                       # values: new objects, each made once
self.__dict__["last"] = v1           # effects: in program order
return v1
"""

from __future__ import annotations

import collections
import functools
import math
import re
import types
import weakref
from collections.abc import Callable, Hashable, Sequence
from typing import Any

import attrs
import torch
from stator_bytecode import NULL, GeneratorState, GeneratorStatus, HandlerTable, layout_of_generator, rebuild_generator
from stator_bytecode.errors import Unsupported
from stator_guards import CapturedSource, ParameterSource, Source

from stator_variables import _kinds as k
from stator_variables._builtin import _iterators
from stator_variables._library import _caching
from stator_variables._model._exceptions import TracebackTracker
from stator_variables._runtime import make_function
from stator_variables._torch import _modes
from stator_variables._tracing import Tracing, source_of
from stator_variables._tracker import DELETED, MISSING, is_pending

Rebuild = Callable[["Emitter", Any], str]
rebuilders: HandlerTable[type, Rebuild] = HandlerTable("tracker")
_LITERALS = (int, float, str, bytes, bool, type(None))


@attrs.define(eq=False)
class Emitter:
    """Collects the source of one entry. `captured` are the constants its namespace needs."""

    t: Tracing
    loads: list[str] = attrs.field(factory=list)
    lines: list[str] = attrs.field(factory=list)
    last: list[str] = attrs.field(factory=list)  # what has to wait for the effects
    late: list[tuple[str, Any]] = attrs.field(factory=list)
    captured: dict[str, Any] = attrs.field(factory=dict)
    outputs: list[Any] = attrs.field(factory=list)  # Traced values the graph has to give
    generators: list[Any] = attrs.field(factory=list)  # states of the generators that were rebuilt as objects
    _loaded: dict[Source, str] = attrs.field(factory=dict)
    _made: dict[int, str] = attrs.field(factory=dict)
    _kept: list[Any] = attrs.field(factory=list)
    _names: dict[int, str] = attrs.field(factory=dict)
    _output_index: dict[int, int] = attrs.field(factory=dict)
    _shared: dict[Hashable, Any] = attrs.field(factory=dict)

    def capture(self, value: Any, hint: str = "c") -> str:
        """A name for a constant object in the entry's namespace."""
        known = self._names.get(id(value))
        if known is None:
            known = self._names[id(value)] = f"{_identifier(hint)}_{len(self.captured)}"
            self.captured[known] = value
        return known

    def load(self, source: Source) -> str:
        """A name that holds what `source` held when the entry started."""
        if isinstance(source, ParameterSource):
            return source.parameter
        if type(source) is CapturedSource:
            return self.capture(source.held.get(), source.text)
        known = self._loaded.get(source)
        if known is None:
            text = source.expression(self)
            known = self._loaded[source] = f"v{len(self._loaded)}"
            self.loads.append(f"{known} = {text}")
        return known

    # the Renderer protocol of stator_guards: how a source writes its parts
    def value(self, source: Source) -> str:
        return self.load(source)

    def arguments(self, sources: Sequence[Source]) -> str:
        return ", ".join(map(self.load, sources))

    def once(self, key: Hashable, make: Callable[[], Any]) -> Any:
        if key not in self._shared:
            self._shared[key] = make()
        return self._shared[key]

    def output(self, traced: Any) -> str:
        key = id(traced.node)
        if key not in self._output_index:
            self._output_index[key] = len(self.outputs)
            self.outputs.append(traced)
        return f"g[{self._output_index[key]}]"

    def fresh(self) -> str:
        return f"r{len(self._made)}_{len(self.lines)}"

    def expr(self, vt: Any) -> str:
        """An expression for a value, made at most once however often it is used."""
        if vt is NULL:
            raise AssertionError("NULL has no expression")
        if is_pending(vt):
            self.t.handed_on.add(id(vt))
        if is_pending(vt) or vt.source is not None:
            return self.load(source_of(vt))
        known = self._made.get(id(vt))
        if known is not None:
            return known
        self._kept.append(vt)
        return rebuilders[_kind(vt)](self, vt)

    def bind(self, vt: Any, text: str) -> str:
        """Give a new object a name before its contents are known, so that it may contain itself."""
        name = self.fresh()
        self._made[id(vt)] = name
        self.lines.append(f"{name} = {text}")
        return name

    def after_effects(self, vt: Any, text: str) -> str:
        """A new object that can be made only when all effects are there, so that no other object may need it before."""
        name = self._made[id(vt)] = self.fresh()
        self.last.append(f"{name} = {text}")
        self.late.append((name, vt))
        return name

    def flush(self) -> None:
        """All effects are written."""
        for name, vt in self.late:
            if any(re.search(rf"\b{name}\b", line) for line in self.lines):
                raise self.refuse(vt)
        self.lines += self.last
        self.last = self.lines

    def refuse(self, vt: Any) -> Unsupported:
        return self.t.unsupported("reconstruction", f"rebuilding a {vt.cls.__name__} that was made while tracing")


def _kind(vt: Any) -> type:
    for cls in type(vt).__mro__:
        if cls in rebuilders:
            return cls
    raise AssertionError(f"no way to rebuild {vt!r}")


def _identifier(hint: str) -> str:
    text = "".join(ch if ch.isalnum() else "_" for ch in hint).strip("_")
    return text if text and not text[0].isdigit() else f"c_{text}"


@rebuilders.handles(k.ConstantTracker)
def constant(e: Emitter, vt: Any) -> str:
    value = vt.value
    if type(value) in _LITERALS and not _has_no_literal(value):
        return repr(value)
    return e.capture(value, type(value).__name__)


def _has_no_literal(value: Any) -> bool:
    """Infinities, and ints that the interpreter may refuse to write down."""
    if type(value) is float:
        return not math.isfinite(value)
    return type(value) is int and value.bit_length() > _LONGEST


_LONGEST = 2000  # bits: fewer digits than the lowest limit that sys.set_int_max_str_digits takes


@rebuilders.handles(k.TensorTracker)
def tensor(e: Emitter, vt: Any) -> str:
    text = e.output(vt.traced)
    if vt.namespace is not None and vt.namespace.entries:
        name = e.bind(vt, text)
        fill_namespace(e, vt, name)
        return name
    return text


@rebuilders.handles(k.NumberTracker)
def number(e: Emitter, vt: Any) -> str:
    """A number that an argument, or a size of one, is as such is read from there: the graph need not give it."""
    source = e.t.graph.source_of(vt.traced)
    return e.output(vt.traced) if source is None else e.load(source)


@rebuilders.handles(k.TupleTracker)
def tuple_(e: Emitter, vt: Any) -> str:
    items = ", ".join(e.expr(item) for item in vt.items)
    text = f"({items},)" if vt.items else "()"
    if vt.items and all(not is_pending(item) and isinstance(item, k.ConstantTracker) for item in vt.items):
        text = f"tuple([{items}])"  # the compiler would make one object of all that are equal
    if vt.cls is not tuple:
        text = f"{e.capture(tuple.__new__, 'tuple_new')}({e.capture(vt.cls, vt.cls.__name__)}, {text})"
        if vt.cls is torch.Size or hasattr(vt.cls, "n_sequence_fields"):  # made by C code that `tuple.__new__` refuses
            text = f"{e.capture(vt.cls, vt.cls.__name__)}(({items}{',' if vt.items else ''}))"
    name = e.bind(vt, text)
    fill_namespace(e, vt, name)
    return name


@rebuilders.handles(k.ListTracker)
def list_(e: Emitter, vt: Any) -> str:
    if vt.cls is list and all(_is_leaf(item) for item in vt.items):
        return e.bind(vt, f"[{', '.join(e.expr(item) for item in vt.items)}]")
    name = e.bind(vt, "[]" if vt.cls is list else _empty(e, vt))
    if vt.items:
        items = ", ".join(e.expr(item) for item in vt.items)
        e.lines.append(f"{name}.extend([{items}])" if vt.cls is list else f"{_base(e, vt)}.extend({name}, [{items}])")
    fill_namespace(e, vt, name)
    return name


def _empty(e: Emitter, vt: Any) -> str:
    cls = e.capture(vt.cls, vt.cls.__name__)
    if vt.cls is collections.deque:
        return f"{cls}(maxlen={vt.maxlen})"
    return f"{cls}.__new__({cls})"


def _base(e: Emitter, vt: Any) -> str:
    return e.capture(collections.deque, "deque") if issubclass(vt.cls, collections.deque) else "list"


def _is_leaf(vt: Any) -> bool:
    return is_pending(vt) or vt.source is not None or isinstance(vt, k.ConstantTracker | k.TensorTracker)


@rebuilders.handles(k.DictTracker)
def dict_(e: Emitter, vt: Any) -> str:
    if vt.owner is not None:
        return f"{e.expr(vt.owner)}.__dict__"
    pairs = [pair for pair in vt.entries.values() if pair[1] is not DELETED]
    if vt.cls is dict and all(_is_leaf(value) for _, value in pairs):
        inside = ", ".join(f"{e.expr(key)}: {e.expr(value)}" for key, value in pairs)
        return e.bind(vt, f"{{{inside}}}")
    name = e.bind(vt, _empty_dict(e, vt))
    if vt.cls is not collections.defaultdict and vt.default_factory is not MISSING:
        e.lines.append(f"{name}.default_factory = {e.expr(vt.default_factory)}")
    writer = _dict_writer(e, vt.cls)
    for key, value in pairs:
        e.lines.append(writer(name, e.expr(key), e.expr(value)))
    fill_namespace(e, vt, name)
    return name


def _empty_dict(e: Emitter, vt: Any) -> str:
    if vt.cls is dict:
        return "{}"
    cls = e.capture(vt.cls, vt.cls.__name__)
    if vt.cls is collections.defaultdict:
        factory = "None" if vt.default_factory is MISSING else e.expr(vt.default_factory)
        return f"{cls}({factory})"
    return f"{cls}.__new__({cls})"


def _dict_writer(e: Emitter, cls: type) -> Callable[[str, str, str], str]:
    """Item assignment that no override of the class can see: the writes were interpreted already."""
    if cls is dict or cls is collections.OrderedDict or cls is collections.defaultdict:
        return lambda name, key, value: f"{name}[{key}] = {value}"
    base = "OrderedDict" if issubclass(cls, collections.OrderedDict) else "dict"
    setter = e.capture(getattr(collections, base, dict).__setitem__, f"{base}_setitem")
    return lambda name, key, value: f"{setter}({name}, {key}, {value})"


@rebuilders.handles(k.SetTracker)
def set_(e: Emitter, vt: Any) -> str:
    items = ", ".join(e.expr(item) for item in vt.entries.values())
    return e.bind(vt, f"{e.capture(vt.cls, vt.cls.__name__)}([{items}])")


@rebuilders.handles(k.ViewTracker)
def view(e: Emitter, vt: Any) -> str:
    return e.bind(vt, f"{e.expr(vt.mapping)}.{vt.part}()")


@rebuilders.handles(k.ProxyTracker)
def proxy(e: Emitter, vt: Any) -> str:
    return e.bind(vt, f"{e.capture(types.MappingProxyType, 'MappingProxy')}({e.expr(vt.mapping)})")


@rebuilders.handles(k.SliceTracker)
def slice_(e: Emitter, vt: Any) -> str:
    return f"slice({', '.join(e.expr(part) for part in vt.parts)})"


@rebuilders.handles(k.CellTracker)
def cell(e: Emitter, vt: Any) -> str:
    name = e.bind(vt, f"{e.capture(types.CellType, 'Cell')}()")
    if vt.content is not NULL:
        e.lines.append(f"{name}.cell_contents = {e.expr(vt.content)}")
    return name


@rebuilders.handles(k.FunctionTracker)
def function(e: Emitter, vt: Any) -> str:
    cells = "".join(f"{e.expr(cell_vt)}, " for cell_vt in vt.closure)
    code = e.capture(vt.code, vt.code.co_name)
    globals_ = e.capture(vt.globals.real, "globals")
    text = f"{e.capture(make_function, 'make_function')}({code}, {globals_}, {vt.name!r}, {vt.qualname!r}, ({cells}))"
    name = e.bind(vt, text)
    if vt.defaults:
        e.lines.append(f"{name}.__defaults__ = ({', '.join(e.expr(d) for d in vt.defaults)},)")
    if vt.kwdefaults:
        inside = ", ".join(f"{key!r}: {e.expr(value)}" for key, value in vt.kwdefaults.items())
        e.lines.append(f"{name}.__kwdefaults__ = {{{inside}}}")
    if isinstance(vt.annotations, k.TupleTracker):
        items = [e.expr(item) for item in vt.annotations.items]
        pairs = ", ".join(f"{a}: {b}" for a, b in zip(items[::2], items[1::2], strict=True))
        e.lines.append(f"{name}.__annotations__ = {{{pairs}}}")
    for field, value in vt.fields.items():
        e.lines.append(f"{name}.{field} = {e.expr(value)}")
    fill_namespace(e, vt, name)
    return name


@rebuilders.handles(k.MethodTracker)
def method(e: Emitter, vt: Any) -> str:
    if vt.cls is not types.MethodType:
        is_of_class = isinstance(vt.function.value, types.ClassMethodDescriptorType)
        receiver = e.expr(vt.receiver)
        args = f"None, {receiver}" if is_of_class else f"{receiver}, type({receiver})"  # 3.11 may crash without it
        return e.bind(vt, f"{e.expr(vt.function)}.__get__({args})")
    return e.bind(vt, f"{e.capture(types.MethodType, 'Method')}({e.expr(vt.function)}, {e.expr(vt.receiver)})")


class RaisedBefore(Exception):
    """An exception raised while tracing has to become an object: it must be raised natively, to have a traceback."""

    def __init__(self, tracker: Any) -> None:
        super().__init__(tracker)
        self.tracker = tracker


class StillRunning(Exception):
    """A generator whose frame runs has to become an object: then it must be resumed natively."""

    def __init__(self, state: GeneratorState, refusal: Unsupported) -> None:
        super().__init__(refusal)
        self.state, self.refusal = state, refusal


@rebuilders.handles(k.ExceptionTracker)
def exception(e: Emitter, vt: Any) -> str:
    if id(vt) in e.t.machine.origins:
        raise RaisedBefore(vt)
    cls = e.capture(vt.cls, vt.cls.__name__)
    args = "".join(f", {e.expr(arg)}" for arg in vt.args)
    name = e.bind(vt, f"{cls}.__new__({cls}{args})")
    for base in (StopIteration, SystemExit):  # these keep in `__init__` what they were made with
        if issubclass(vt.cls, base):
            e.lines.append(f"{base.__name__}.__init__({name}{args})")
    for field in ("cause", "context"):
        if getattr(vt, field) is not None:
            e.lines.append(f"{name}.__{field}__ = {e.expr(getattr(vt, field))}")
    if vt.suppress_context:
        e.lines.append(f"{name}.__suppress_context__ = True")
    fill_namespace(e, vt, name)
    return name


@rebuilders.handles(k.ObjectTracker)
def object_(e: Emitter, vt: Any) -> str:
    name = e.bind(vt, f"object.__new__({e.capture(vt.cls, vt.cls.__name__)})")
    for member, value in vt.members.items():
        if value is not DELETED:
            e.lines.append(f"{e.capture(member, member.__name__)}.__set__({name}, {e.expr(value)})")
    fill_namespace(e, vt, name)
    return name


def fill_namespace(e: Emitter, vt: Any, name: str) -> None:
    """The instance `__dict__` of a new object."""
    if vt.namespace is None:
        return
    for key, (_, value) in vt.namespace.entries.items():
        if value is not DELETED:
            e.lines.append(f"{name}.__dict__[{key!r}] = {e.expr(value)}")


@rebuilders.handles(k.ClassTracker, k.BuiltinTracker)
def captured(e: Emitter, vt: Any) -> str:
    return e.capture(vt.value, getattr(vt.value, "__name__", "c"))


@rebuilders.handles(k.SuperTracker)
def super_(e: Emitter, vt: Any) -> str:
    return f"super({e.expr(vt.start)}, {e.expr(vt.receiver)})"


@rebuilders.handles(k.IdTracker)
def id_(e: Emitter, vt: Any) -> str:
    return f"id({e.expr(vt.thing)})"


@rebuilders.handles(k.PartialTracker)
def partial(e: Emitter, vt: Any) -> str:
    parts = [e.expr(vt.function), *(e.expr(arg) for arg in vt.args)]
    parts += [f"{key}={e.expr(value)}" for key, value in vt.kwargs.items()]
    return e.bind(vt, f"{e.capture(functools.partial, 'partial')}({', '.join(parts)})")


@rebuilders.handles(k.WeakrefTracker)
def weak_reference(e: Emitter, vt: Any) -> str:
    return e.bind(vt, f"{e.capture(weakref.ref, 'ref')}({e.expr(vt.target)})")


@rebuilders.handles(k.PullTracker)
def pull(e: Emitter, vt: Any) -> str:
    raise e.refuse(vt)


@rebuilders.handles(k.RecipeTracker)
def recipe(e: Emitter, vt: Any) -> str:
    parts = [e.expr(arg) for arg in vt.args]
    parts += [f"{name}={e.expr(value)}" for name, value in vt.kwargs.items()]
    return e.bind(vt, f"{e.capture(vt.cls, vt.cls.__name__)}({', '.join(parts)})")


@rebuilders.handles(k.IteratorTracker)
def iterator(e: Emitter, vt: Any) -> str:
    text = _iterators.rebuild(e, vt)
    return e._made.get(id(vt)) or e.bind(vt, text)


@rebuilders.handles(k.GeneratorTracker)
def generator(e: Emitter, vt: Any) -> str:
    """A generator object that stands where the traced one stood."""
    if vt.state.status is GeneratorStatus.RUNNING:
        raise StillRunning(vt.state, e.refuse(vt))
    e.generators.append(vt.state)
    layout, values = layout_of_generator(vt.state, lambda frame: frame.globals.real)
    rebuild = e.capture(rebuild_generator, "rebuild_generator")
    parts = "".join(f"{e.expr(value)}, " for value in values)
    name = e.bind(vt, f"{rebuild}({e.capture(layout, 'layout')}, ({parts}))")
    renamed = k.names_of(vt.state)
    if renamed is not None:
        e.lines.append(f"{name}.__name__, {name}.__qualname__ = {renamed[0]!r}, {renamed[1]!r}")
    return name


def finalize_generators(e: Emitter, carried: Sequence[Any]) -> None:
    """Suspended generators that nothing can reach any more die with the entry, so that their `finally` blocks run."""
    known = [*carried, *e.generators]
    for vt in list(e.t.generators):
        if vt.state not in known and k.has_clean_up(vt.state):
            e.expr(vt)


@rebuilders.handles(TracebackTracker)
def traceback(e: Emitter, vt: Any) -> str:
    raise RaisedBefore(vt.exception)


# -- effects ----------------------------------------------------------------------------------------------------------
def emit_effects(e: Emitter) -> None:
    """Replay on existing objects what the traced code did to them, in the order of the first change to each."""
    for vt in list(e.t.changed.values()):
        if isinstance(vt, k.ListTracker):
            _list_effect(e, vt)
        elif isinstance(vt, k.DictTracker):
            _dict_effect(e, vt)
        elif isinstance(vt, k.SetTracker):
            _set_effect(e, vt)
        elif isinstance(vt, k.CellTracker):
            _cell_effect(e, vt)
        elif isinstance(vt, k.ObjectTracker):
            _member_effect(e, vt)
        elif isinstance(vt, k.TensorTracker):
            e.lines.append(f"{e.expr(vt)}.grad = {e.expr(vt.grad)}")
        elif not isinstance(vt, k.IteratorTracker):
            raise e.refuse(vt)
    _iterators.effects(e, [vt for vt in e.t.changed.values() if isinstance(vt, k.IteratorTracker)])
    _caching.effects(e)
    e.flush()
    e.lines += _modes.effects(e.t, e.capture)


def _list_effect(e: Emitter, vt: Any) -> None:
    name = e.expr(vt)
    if vt.unread is not None:
        e.lines.append(f"{_base(e, vt)}.extend({name}, [{', '.join(e.expr(item) for item in vt.added)}])")
        return
    if issubclass(vt.cls, collections.deque) and not vt.structure:  # iterators over it go on
        put = e.capture(collections.deque.__setitem__, "deque_setitem")
        e.lines += [f"{put}({name}, {i}, {e.expr(item)})" for i, item in enumerate(vt.items)]
        return
    items = ", ".join(e.expr(item) for item in vt.items)
    if issubclass(vt.cls, collections.deque):
        e.lines += [f"{name}.clear()", f"{name}.extend([{items}])"]
    elif vt.cls is list:
        e.lines.append(f"{name}[:] = [{items}]")
    else:
        e.lines.append(f"list.__setitem__({name}, slice(None), [{items}])")


def _dict_effect(e: Emitter, vt: Any) -> None:
    name = e.expr(vt)
    writer = _dict_writer(e, vt.cls)
    for verb, key, value in _final_writes(vt.log):
        if verb == "set":
            e.lines.append(writer(name, e.expr(key), e.expr(value)))
        else:
            e.lines.append(f"del {name}[{e.expr(key)}]")


def _final_writes(log: list[tuple[str, Any, Any, Any]]) -> list[tuple[str, Any, Any]]:
    """The log without overwritten values; deletions make the order of writes matter, so it is kept whole then."""
    if any(verb == "delete" for verb, *_ in log):
        return [(verb, key, value) for verb, _, key, value in log]
    final: dict[Any, tuple[str, Any, Any]] = {}
    for verb, hashed, key, value in log:
        final[hashed] = (verb, final[hashed][1] if hashed in final else key, value)
    return list(final.values())


def _set_effect(e: Emitter, vt: Any) -> None:
    name = e.expr(vt)
    removed = [item for item in vt.real if item not in vt.entries]
    added = [item for hashed, item in vt.entries.items() if hashed not in vt.real]
    e.lines += [f"{name}.discard({e.capture(item)})" for item in removed]
    e.lines += [f"{name}.add({e.expr(item)})" for item in added]


def _cell_effect(e: Emitter, vt: Any) -> None:
    name = e.expr(vt)
    empty = vt.content is NULL
    e.lines.append(f"del {name}.cell_contents" if empty else f"{name}.cell_contents = {e.expr(vt.content)}")


def _member_effect(e: Emitter, vt: Any) -> None:
    name = e.expr(vt)
    for member, value in vt.members.items():
        target = e.capture(member, member.__name__)
        if value is DELETED:
            e.lines.append(f"{target}.__delete__({name})")
        else:
            e.lines.append(f"{target}.__set__({name}, {e.expr(value)})")
