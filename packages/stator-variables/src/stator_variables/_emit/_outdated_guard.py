"""Guards of an entry that its own effects make fail.

    if self.kind is None:           guard: self.kind is None
        self.kind = "regression"    effect: self.kind = "regression"

The entry serves no second call, unless the program sets the state back. Found by comparing what
guards need of a place with what the trace left there: items of dicts (attributes and globals are
such), cells, and the lengths of lists. Where the trace left a value that is not known, such as the
size of another input, nothing is found.
"""

from collections.abc import Iterable, Iterator
from typing import Any

from attrs import Factory, define
from stator_bytecode import NULL
from stator_guards import (
    CellSource,
    DictItemSource,
    Equals,
    Guard,
    Is,
    IsNone,
    KeyAbsent,
    KeyPresent,
    KeysAre,
    Kind,
    Length,
    Source,
    TypeIs,
)

from stator_variables._objects._cell import CellTracker
from stator_variables._objects._dict import DictTracker
from stator_variables._objects._list import ListTracker
from stator_variables._space import Space
from stator_variables._tracker import MISSING, is_a, is_pending, real_of

_NUMBERS = (int, float)


@define(eq=False)
class _Outcome:
    """The state that a trace leaves in existing objects, by their sources."""

    values: dict[Source, Any] = Factory(dict)
    """Trackers by place; None where an item was deleted."""
    keys: dict[Source, dict[object, bool]] = Factory(dict)
    """The keys of a dict that were written, and whether each is there."""
    lengths: dict[Source, int] = Factory(dict)

    @classmethod
    def of(cls, t: Space) -> "_Outcome":
        made = cls()
        for vt in t.heap.changed.values():
            if is_a(vt, DictTracker):
                made.add_items(vt)
            elif is_a(vt, CellTracker):
                made.values[CellSource(vt.source)] = None if vt.content is NULL else vt.content
            elif is_a(vt, ListTracker) and vt.unread is None:
                made.lengths[vt.source] = len(vt.items)
        return made

    def add_items(self, vt: DictTracker) -> None:
        assert vt.source is not None
        for _, _, key, value in vt.log:
            # those of which no `__hash__` is the program's
            name = MISSING if is_pending(key) else key.constant()
            if name is not MISSING:
                self.values[DictItemSource(vt.source, name)] = value
                self.keys.setdefault(vt.source, {})[name] = value is not None

    def contradicts(self, guard: Guard) -> bool:
        """Return True if a guard does not hold in this state."""
        kind, source = guard.kind, guard.source
        if source is None:
            return False
        if isinstance(kind, KeyAbsent | KeyPresent):
            is_there = self.keys.get(source, {}).get(kind.key)
            return is_there is not None and is_there is isinstance(kind, KeyAbsent)
        if isinstance(kind, KeysAre) and source in self.keys:
            return any((key in kind.keys) is not now for key, now in self.keys[source].items())
        if isinstance(kind, Length) and source in self.lengths:
            return kind.length != self.lengths[source]
        return source in self.values and _excludes(kind, self.values[source])


def _excludes(kind: Kind, vt: Any) -> bool:
    """Return True if a fact about an object cannot hold of what took its place."""
    if vt is None:
        return True
    if not isinstance(kind, Is | IsNone | TypeIs | Equals):
        return False
    if (value := _value_of(vt)) is not MISSING:
        return not kind.holds(value, {})
    if isinstance(kind, TypeIs):
        return kind.cls is not vt.cls
    return isinstance(kind, Is | IsNone)


def _value_of(vt: Any) -> object:
    """Return the object that a tracker represents, if it is known."""
    real = real_of(vt)
    return real if real is not MISSING or is_pending(vt) else vt.constant()


def outdated_guards(t: Space, guards: Iterable[Guard]) -> Iterator[Guard]:
    """Yield the guards that do not hold any more when the effects of the trace are done."""
    if t.heap.changed:
        outcome = _Outcome.of(t)
        yield from filter(outcome.contradicts, guards)


def is_of_number(guard: Guard) -> bool:
    """Return True for a guard on a number, which may be symbolic in the next trace, or on the
    length of a list that was not empty, which may not matter there."""
    kind = guard.kind
    if isinstance(kind, Length):
        return kind.length > 0
    return isinstance(kind, Equals) and type(kind.value) in _NUMBERS
