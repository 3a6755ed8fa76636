"""Iterators from outside over containers, strings and ranges.

The items left of one are those of its `__reduce__`; if it was advanced, the entry advances the real
one.
"""

import operator
from collections import OrderedDict
from collections.abc import Sequence
from typing import Any

from stator_bytecode import NULL, Result
from stator_guards import CallSource, ItemSource, Length, Source, Truth, TypeIs, shown_as

from stator_variables._objects import _dict_entries
from stator_variables._objects._builder_table import BuilderTable
from stator_variables._objects._dict_view import viewed
from stator_variables._objects._iterators._iterator import PositionedTracker, operands
from stator_variables._runtime._finalizers import exhausts_unobserved
from stator_variables._space import Space
from stator_variables._trace._progress import Progress
from stator_variables._tracker import VariableTracker, source_of

builders = BuilderTable()

AHEAD = 256
"""The limit of items that are read of an existing iterator."""


class ExistingIteratorTracker(PositionedTracker):
    """An iterator from outside; its real items left are `left`, and `ahead` their source."""

    since: object = None  # the mark of the graph at its first step

    def __init__(self, cls: type, over: object, ahead: Source, left: Sequence[object]) -> None:
        self.cls = cls
        self.identity = id(over)
        self.ahead = ahead
        self.left = left

    def item(self, t: Space) -> Result:
        at = self.position
        if self.waits_for_effects(t):
            raise t.unsupported(
                "changed-during-iteration", f"a step of a {self.cls.__name__} over what was changed"
            )
        if at == 0:
            self.since = t.graph.mark()
        if at == AHEAD:
            raise self._too_far(t)
        if at == len(self.left):
            self._rely_on_end(t)
            return NULL
        t.need_length(self.ahead, at + 1)
        return t.wrap(self.left[at], ItemSource(self.ahead, at))

    def waits_for_effects(self, t: Space) -> bool:
        over = t.heap.trackers.get(self.identity)
        return over is not None and id(over) in t.heap.changed

    def _rely_on_end(self, t: Space) -> None:
        if self.cls not in _OF_PLAIN_ITEMS:
            if not exhausts_unobserved(self.real):
                raise t.unsupported(
                    "object-dropped", f"a {self.cls.__name__} at its end, with what it held"
                )
            t.guard(CallSource(exhausts_unobserved, source_of(self)), Truth(True))
        t.guard(self.ahead, Length(self.position))

    def _too_far(self, t: Space) -> Exception:
        """Return the refusal of many more rounds, without an operation of the graph in those
        before: a long loop."""
        length = operator.length_hint(self.real)
        if length > 8 * AHEAD and self.since == t.graph.mark():
            t.state(Progress).looping = len(t.machine.frames) - 1
            return t.unsupported(
                "long-loop", f"a loop over {length} items without a tensor operation"
            )
        return t.unsupported("long-container", f"more than {AHEAD} items of a {self.cls.__name__}")


_OF_PLAIN_ITEMS = {*map(type, map(iter, (range(1), range(1 << 70), "", "é", b"")))}
"""Iterators whose end releases nothing that the program can observe, whatever they go through."""


_MADE: list[Any] = [[], (), "", "é", b"", range(0), range(1 << 70)]
_MADE += [{}, {}.values(), {}.items(), OrderedDict()]


@builders.by_class.handles(
    *{type(way(each)) for way in (iter, reversed) for each in _MADE}, type(iter(set()))
)
def build_iterator(t: Space, real: object, source: Source) -> VariableTracker:
    """Build the tracker of an existing iterator. Its position is not guarded, but those of its next
    items that are read."""
    t.guard(source, TypeIs(type(real)))
    if (over := viewed(real)) is None:
        over = operands(real)[0]
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
    return ExistingIteratorTracker(type(real), over, CallSource(ahead, source), left)


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
    base = cls if cls in _BASES else next(base for base in _BASES if issubclass(cls, base))
    if state[0] is not reversed:
        part = slice(start or 0, (start or 0) + AHEAD)
    elif start is not None and 0 <= start < base.__len__(whole):
        part = slice(start, start - AHEAD if start >= AHEAD else None, -1)
    else:
        part = slice(0)
    # A class may read its items in its own way.
    return whole[part] if base is cls else base.__getitem__(whole, part)


_BASES: tuple[Any, ...] = (list, tuple, str, bytes, range)
