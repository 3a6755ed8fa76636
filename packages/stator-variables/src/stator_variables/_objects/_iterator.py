"""Builtin iterators as objects: from outside, made again, advanced at the end.

The items left of an existing iterator are those of its `__reduce__`; if it was advanced, the entry
advances the real one.
"""

import collections
import gc
import itertools
import types
from collections.abc import Callable
from typing import Any

from stator_bytecode import Result
from stator_guards import CallSource, Equals, ItemSource, Length, Source, TypeIs, shown_as

from stator_variables._emitter import Emitter
from stator_variables._objects import _dict_entries, _itertools
from stator_variables._objects._builder_table import BuilderTable
from stator_variables._objects._dict import DictTracker
from stator_variables._objects._dict_view import VIEW_CLASSES, ViewTracker, of_base
from stator_variables._runtime._contents import plain_lookup
from stator_variables._runtime._support import (
    advanced,
    can_be_long,
    exhausted_by_items,
    finished,
    placed,
    pooled,
    reversed_from,
    spoiled,
    standing,
    unasked,
)
from stator_variables._space import Space
from stator_variables._tracker import VariableTracker, is_a

builders = BuilderTable()


_DICTS: tuple[dict[Any, Any], ...] = ({}, collections.OrderedDict())
_VIEWED = [getattr(of, part)() for of in _DICTS for part in VIEW_CLASSES]
_OF_TABLES = {type(iter(set())), *(type(way(view)) for view in _VIEWED for way in (iter, reversed))}
NESTED = (zip, map, filter, enumerate)
VIEWS = {cls: part for part, classes in VIEW_CLASSES.items() for cls in classes}


class IteratorTracker(VariableTracker, references=("parts",)):
    """A builtin iterator, named by `kind`; `parts` are its operands, `position` how far it is.

    Kinds: "sequence" (list, tuple), "deque", "getitem" (by items alone), each also backwards
    ("reversed", "deque reversed", "reversed getitem": `parts[1]` the length then);
    "keys"/"values"/"items", "set", "constant" (of str, range…: `parts[0]` its values), "existing"
    (from outside), "zip", "map", "filter", "enumerate", "callable"; of itertools "application" and
    "pooled": `parts[0]` steps for them.
    """

    def __init__(self, cls: type, kind: str, parts: list[Any], position: int = 0) -> None:
        self.cls = cls
        self.kind = kind
        self.parts = parts
        self.position = position
        self.start = position  # where an existing one stood
        self.since: object = None  # the mark of the graph then
        self.exhausted = False

    @property
    def index(self) -> int:
        """The place of the next item in what is gone through by places, backwards as well."""
        return int(self.parts[1]) - 1 - self.position if "reversed" in self.kind else self.position

    @property
    def steps_to_null(self) -> bool:  # type: ignore[override]
        return self.kind not in ("map", "filter")

    def iter(self, t: Space) -> "IteratorTracker":
        return self

    def next(self, t: Space) -> Result:
        return t.step(self)

    def traverse(self) -> list[Any]:
        is_released = self.exhausted and not self.kind.startswith("deque")
        return [] if is_released else super().traverse()

    def rebuild(self, e: Emitter) -> str:
        write = _itertools.write if self.kind == "application" else rebuild
        return e.bind(self, write(e, self))


def _iterator_classes() -> list[type]:
    """Builtin iterators and dict views, whose state can be read."""
    dicts: list[Any] = [{}, {}.values(), {}.items(), collections.OrderedDict()]
    made: list[Any] = [[], (), "", "é", b"", range(0), range(1 << 70), set(), *dicts]
    reversible: list[Any] = [[], {}, {}.values(), {}.items()]
    backwards = [reversed(x) for x in reversible]
    classes = [
        *map(type, map(iter, made)),
        *map(type, backwards),
        reversed,
        zip,
        map,
        filter,
        enumerate,
    ]
    return [*classes, *(view for views in VIEW_CLASSES.values() for view in views)]


# -- reading existing ones -------------------------------------------------------------------------
@builders.by_class.handles(*_iterator_classes())
def build(t: Space, real: object, source: Source) -> VariableTracker:
    t.guard(source, TypeIs(type(real)))
    if type(real) in VIEWS:
        return ViewTracker(
            type(real), VIEWS[type(real)], t.wrap(referent(real), CallSource(referent, source))
        )
    return _nested(t, real, source) if type(real) in NESTED else _positioned(t, real, source)


@shown_as("what {0} goes through")
def referent(of: object) -> object:
    """The dict or set behind a view or an iterator; None behind an iterator that is exhausted."""
    found = [obj for obj in gc.get_referents(of) if isinstance(obj, dict | set | frozenset)]
    return found[0] if found else None


@shown_as("the parts of {0}")
def operands(iterator: Any) -> tuple[Any, ...]:
    """Return the operands of a builtin iterator, by its `__reduce__`."""
    return iterator.__reduce__()[1]  # type: ignore[no-any-return]


@shown_as("what is left of {0}")
def ahead(iterator: Any) -> Any:
    """Return the items left of a builtin iterator, in order, up to `AHEAD`.

    Raises ValueError, which fails a guard, if its set or dict has changed.
    """
    try:
        state = iterator.__reduce__()
    except RuntimeError as changed:
        raise ValueError(str(changed)) from None
    whole, start = state[1][0], state[2] if len(state) > 2 else None
    cls = type(whole)
    if state[0] is not reversed:
        start = start or 0
        if cls in _BASES:
            return whole[start : start + AHEAD]
        # A class may read its items in its own way.
        return _base(cls).__getitem__(whole, slice(start, start + AHEAD))
    base = _base(cls)
    left = (
        slice(start, None, -1)
        if start is not None and 0 <= start < base.__len__(whole)
        else slice(0)
    )
    return base.__getitem__(base.__getitem__(whole, left), slice(AHEAD))


def _base(cls: type) -> Any:
    return next(base for base in _BASES if issubclass(cls, base))


_BASES: tuple[Any, ...] = (list, tuple, str, bytes, range)


def _positioned(t: Space, real: object, source: Source) -> IteratorTracker:
    """Build the tracker of an existing iterator. Its position is not guarded, but those of its next
    items that are read."""
    over = referent(real) if type(real) in _OF_TABLES else operands(real)[0]
    if type(real) is reversed:
        if type(over) not in (list, tuple):  # else methods of its class are called
            raise t.unsupported(
                "existing-iterator", f"a reversed {type(over).__name__} from outside"
            )
        t.guard(ItemSource(CallSource(operands, source), 0), TypeIs(type(over)))
    _dict_entries.refuse_user_key_order(t, over)
    try:
        left = ahead(real)
    except ValueError:
        raise t.unsupported(
            "changed-during-iteration", "an iterator over a container that has changed"
        ) from None
    return IteratorTracker(type(real), "existing", [id(over), CallSource(ahead, source), left])


def _nested(t: Space, real: object, source: Source) -> IteratorTracker:
    parts, whole = operands(real), CallSource(operands, source)
    t.guard(whole, Length(len(parts)))
    vts = [t.wrap(part, ItemSource(whole, i)) for i, part in enumerate(parts)]
    if type(real) is zip:
        t.guard(CallSource(_is_strict, source), Equals(_is_strict(real)))
        return IteratorTracker(zip, "zip", [vts, _is_strict(real)])
    if type(real) is map:
        return IteratorTracker(map, "map", [vts[0], vts[1:]])
    return IteratorTracker(type(real), type(real).__name__, vts)


@shown_as("the strictness of {0}")
def _is_strict(iterator: object) -> bool:
    return len(iterator.__reduce__()) > 2


# -- making new ones again -------------------------------------------------------------------------
def rebuild(e: Emitter, vt: IteratorTracker) -> str:
    """An expression for an iterator made while tracing, where it stands."""
    if vt.exhausted and vt.kind == "getitem":
        return f"{e.capture(exhausted_by_items)}()"
    if vt.exhausted:
        if (text := _EMPTY.get(vt.cls)) is None:
            raise e.refuse(vt)
        return f"{e.capture(finished)}({text})"
    if (make := _MAKE.get(vt.kind)) is None:
        raise e.refuse(vt)
    if any(vt.parts[0] is unfilled for unfilled in e.unfilled):
        raise e.refuse(vt)
    if vt.kind in WATCHFUL and not _is_intact(e, vt):
        return _spoiled(e, vt)
    if _is_over_changed(e, vt):
        return _over_changed(e, vt)
    text = make(e, vt)
    if vt.kind in _IN_LISTS and vt.parts[0].base is list and _has_place(vt):
        return _placed(e, vt, text)
    if vt.kind == "reversed getitem" or (vt.position and vt.kind == "getitem"):
        return _standing(e, vt, text)
    if vt.position and vt.kind not in NOT_ADVANCED:
        text = f"{e.capture(advanced)}({text}, {vt.position})"
    is_keyed = vt.kind == "set" or vt.kind in VIEW_CLASSES
    return (
        str(e.bind_later(e.last, vt, text))
        if is_keyed and vt.parts[0].fills_by_user_code(e.t)
        else text
    )


def _standing(e: Emitter, vt: IteratorTracker, text: str) -> str:
    """Neither items nor length of a user-defined class are read once more."""
    if (
        vt.kind == "getitem"
        or type(plain_lookup(vt.parts[0].cls, "__len__")) is types.WrapperDescriptorType
    ):
        return f"{e.capture(standing)}({text}, {vt.index})"
    if not can_be_long(vt.parts[0].cls):
        raise e.refuse(vt)
    return f"{e.capture(reversed_from)}({e.expr(vt.parts[0])}, {vt.index})"


WATCHFUL = ("deque", "deque reversed", "set")
"""Kinds that raise when what they go through has changed; a dict is not changed under its
iterators."""


def _is_intact(e: Emitter, vt: IteratorTracker) -> bool:
    """Return True if the next step will succeed. Raises Unsupported if C would continue with other
    items."""
    of, size, before = vt.parts
    if vt.kind != "set":
        return bool(len(of.items) == size and of.structure == before)
    now = list(of.entries.values())
    if len(now) == size and now != before:
        raise e.refuse(vt)
    return bool(len(now) == size)


def _spoiled(e: Emitter, vt: Any) -> str:
    name, of = e.expr(vt.parts[0]), vt.parts[0]
    verb = "reversed" if vt.kind == "deque reversed" else "iter"
    most = len(of.entries if vt.kind == "set" else of.items)
    return f"{e.capture(spoiled)}({name}, {verb}, {most})"


def _is_over_changed(e: Emitter, vt: IteratorTracker) -> bool:
    """Return True if effects, which come later, change the existing container below, so that the
    iterator detects it."""
    if vt.kind == "existing":
        return is_over_changed(e.t, vt)
    if is_a(of := vt.parts[0], DictTracker) and of.source is not None:
        return bool(_dict_entries.deletions(of)) or len(of.entries) != dict.__len__(of.real)
    return any(id(part) in e.t.heap.changed for part in vt.parts if is_a(part, VariableTracker))


def _over_changed(e: Emitter, vt: IteratorTracker) -> str:
    """An iterator over an existing container that is changed by effects, which come later."""
    if vt.kind == "set" or vt.kind in VIEW_CLASSES:
        text = f"{e.capture(advanced)}({_MAKE[vt.kind](e, vt)}, {vt.position})"
        return str(e.bind_later(e.last, vt, text))
    if vt.kind not in _IN_LISTS:
        raise e.refuse(vt)
    name = e.bind(vt, _MAKE[vt.kind](e, vt))
    e.last.lines.append(_placed(e, vt, name))
    return str(name)


_IN_LISTS = ("sequence", "reversed")


def _has_place(vt: IteratorTracker) -> bool:
    """Return True if steps from the start may not lead to its position.

    A new list may have been longer, and a list that holds the iterator is still empty. A list from
    outside is unchanged.
    """
    return vt.parts[0].source is None and bool(vt.position or vt.kind == "reversed")


def _placed(e: Emitter, vt: IteratorTracker, iterator: str) -> str:
    return f"{e.capture(placed)}({iterator}, {e.expr(vt.parts[0])}, {vt.index})"


NOT_ADVANCED = ("enumerate", "zip", "map", "filter", "callable", "pooled")
POOLED = (
    itertools.product,
    itertools.permutations,
    itertools.combinations,
    itertools.combinations_with_replacement,
)
"""Go through copies of what they were made of: those can be moved on from the start again."""

_EMPTY = {
    type(iter([])): "iter([])",
    type(iter(())): "iter(())",
    zip: "zip()",
    type(iter(range(0))): "iter(range(0))",
}
_EMPTY |= {
    type(iter("")): "iter('')",
    type(iter(b"")): "iter(b'')",
    type(iter(int, 0)): "iter(int, 0)",
}
_EMPTY |= {type(iter({})): "iter({})", type(iter({}.values())): "iter({}.values())"}
_EMPTY |= {type(iter({}.items())): "iter({}.items())", type(reversed([])): "reversed([])"}


def _through(method: str, otherwise: str) -> Callable[[Any, Any], str]:
    return lambda e, vt: of_base(e, vt.parts[0], method, otherwise)


def _view(e: Emitter, vt: IteratorTracker) -> str:
    verb = "reversed" if vt.parts[2] else "iter"
    return f"{verb}({of_base(e, vt.parts[0], vt.kind, '{}.' + vt.kind + '()')})"


def again(e: Emitter, vts: list[Any]) -> list[str]:
    """Return the texts of iterators whose `__iter__` C calls once more."""
    overridden = [
        type(plain_lookup(vt.cls, "__iter__")) is not types.WrapperDescriptorType for vt in vts
    ]
    return [
        f"{e.capture(unasked)}({e.expr(vt)})" if by else e.expr(vt)
        for vt, by in zip(vts, overridden, strict=True)
    ]


def _zip(e: Emitter, vt: IteratorTracker) -> str:
    return (
        f"zip({', '.join(again(e, vt.parts[0]))}{', ' if vt.parts[0] else ''}strict={vt.parts[1]})"
    )


def _constant(e: Emitter, vt: IteratorTracker) -> str:
    verb = "reversed" if vt.cls is reversed else "iter"
    return f"{verb}({e.expr(vt.parts[1])})"


def _pooled(e: Emitter, vt: IteratorTracker) -> str:
    rows, args, named = vt.parts
    texts = e.expr(rows), f"({''.join(f'{e.expr(arg)}, ' for arg in args)})", _named(e, named)
    return f"{e.capture(pooled)}({e.capture(vt.cls, vt.cls.__name__)}, {', '.join(texts)})"


def _named(e: Emitter, vts: dict[str, Any]) -> str:
    return f"{{{', '.join(f'{name!r}: {e.expr(vt)}' for name, vt in vts.items())}}}"


_MAKE: dict[str, Callable[[Any, Any], str]] = {
    **dict.fromkeys(("sequence", "deque", "set"), _through("__iter__", "iter({})")),
    "getitem": lambda e, vt: f"iter({e.expr(vt.parts[0])})",
    **dict.fromkeys(("reversed", "deque reversed"), _through("__reversed__", "reversed({})")),
    "reversed getitem": lambda e, vt: f"reversed({e.expr(vt.parts[0])})",
    "constant": _constant,
    **dict.fromkeys(VIEW_CLASSES, _view),
    "zip": _zip,
    "map": lambda e, vt: f"map({', '.join([e.expr(vt.parts[0]), *again(e, vt.parts[1])])})",
    "filter": lambda e, vt: f"filter({e.expr(vt.parts[0])}, {again(e, vt.parts[1:])[0]})",
    "enumerate": lambda e, vt: (
        f"enumerate({again(e, vt.parts[:1])[0]}, {e.expr(vt.parts[1])} + {vt.position})"
    ),
    "callable": lambda e, vt: f"iter({e.listed(vt.parts)})",
    "pooled": _pooled,
}


# -- moving existing ones on -----------------------------------------------------------------------
def effects(e: Emitter, changed: list[Any]) -> None:
    """Move the real iterators as far as the traced ones went, before what they go through is
    changed: they took no step after that. An enumerate moves what is below it too."""
    below: set[int] = set()
    for vt in changed:
        if vt.kind == "enumerate" and not _in_step(vt.parts[0], _steps(vt), _has_ended(vt), below):
            raise e.refuse(vt)
    for vt in changed:
        if id(vt) in below or vt.kind in ("zip", "map", "filter"):
            continue
        name = e.expr(vt)
        if _has_ended(vt):
            e.lines.append(f"{e.capture(finished)}({name})")
        elif steps := _steps(vt):
            several = f"{e.capture(advanced)}({name}, {steps})"
            e.lines.append(f"next({name})" if steps == 1 else several)


def _steps(vt: IteratorTracker) -> int:
    return int(vt.position - vt.start)


def _has_ended(vt: VariableTracker) -> bool:
    """An enumerate and a zip have no end of their own."""
    if is_a(vt, IteratorTracker) and vt.kind in ("enumerate", "zip"):
        return any(map(_has_ended, vt.parts[0] if vt.kind == "zip" else vt.parts[:1]))
    return bool(getattr(vt, "exhausted", False))


def _in_step(vt: VariableTracker, steps: int, ended: bool, below: set[int]) -> bool:
    """Return True if an iterator is at the position to which so many steps of its consumer lead;
    `below` collects those that advance."""
    if not is_a(vt, IteratorTracker):
        return False
    below.add(id(vt))
    if vt.kind == "zip":
        parts, strict = vt.parts
        return _parts_in_step(parts, strict, steps, ended, below)
    if vt.kind == "enumerate":
        return _steps(vt) == steps and _in_step(vt.parts[0], steps, ended, below)
    return _steps(vt) == steps and vt.exhausted == ended


def _parts_in_step(
    parts: list[Any], strict: bool, steps: int, ended: bool, below: set[int]
) -> bool:
    """The parts of a zip have all given as many items, but for those before the one that had no
    more, after which a strict one finds no more in the others."""
    ends = [*map(_has_ended, parts)]
    if len({*map(id, parts)}) < len(parts) or ended not in ends:
        return False
    if strict:
        return all(_in_step(part, steps, ended, below) for part in parts)
    last = ends.index(True) if ended else len(parts)
    return all(
        _in_step(part, steps + (ended and i < last), i == last, below)
        for i, part in enumerate(parts)
    )


AHEAD = 256
"""The limit of items that are read of an existing iterator."""


def is_over_changed(t: Space, it: IteratorTracker) -> bool:
    """Return True if the container of an existing iterator was changed while tracing."""
    over = t.heap.trackers.get(it.parts[0])
    return over is not None and id(over) in t.heap.changed
