"""The ends of objects in a trace: see docs/explanation/object-lifetime.md."""

import operator
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from attrs import Factory, define
from stator_guards import (
    CallSource,
    CapturedSource,
    FunctionPartSource,
    InstanceDictSource,
    Kind,
    ParameterSource,
    PartSource,
    Source,
    Truth,
)

from stator_variables._runtime._finalizers import (
    are_released_unobserved,
    has_observable_end,
    have_unobservable_ends,
    may_have_observable_end,
    stores,
)
from stator_variables._trace._heap import Heap, owner_of
from stator_variables._tracker import MISSING, VariableTracker, is_pending, real_of, source_of


@define(eq=False)
class Lifetimes:
    """The objects that traced code releases, and what it relies on of their ends."""

    heap: Heap
    observable: set[int] = Factory(set)
    """The identities of objects that the frames alone hold, and whose end is observable."""
    local_places: dict[int, int] = Factory(dict)
    """The places of local values at the start, by identity."""
    ended_locals: set[int] = Factory(set)
    """The places of those whose values died, by assumption unobserved."""
    released: list[Any] = Factory(list)
    """Values that containers released in the step that is being done."""
    assumed_unobserved: dict[Source, bool] = Factory(dict)
    """Sources of such values by assumption unobserved; True if others may release them, too."""
    stack_only: list[Any] = Factory(list)
    """Released values that the stack alone may hold."""
    paths: dict[int, list[Any]] = Factory(dict)
    """Paths from the stack to these, by their identity."""
    generators: list[Any] = Factory(list)
    """Generators that were made, or came as frame state."""
    cleaning_up: list[Any] = Factory(list)
    """Generators whose code may see that they are closed."""

    def exchange(self, before: Any, after: Any, holder: VariableTracker) -> None:
        """Note what a field of `holder` releases when its value is replaced."""
        old, new = _parts(before), _parts(after)
        if type(old) is type(new) is list and _is_part(old, new):
            return
        kept = set(map(id, new))
        for value in old:
            if id(value) not in kept:
                self.note_release(value, holder)

    def note_release(self, value: Any, holder: VariableTracker) -> None:
        """Note that `holder`, a container, releases `value`."""
        if (real := real_of(value)) is MISSING:
            self.released += [value] * bool(self.observable or self.local_places)
        elif is_pending(value) or may_have_observable_end(type(real)):
            source = source_of(value)
            if not self._is_held_where_found(source, real, holder):
                self._note_release(real, source, value, is_whole=type(source) is ParameterSource)

    def note_release_unread(
        self,
        read: Callable[..., Any],
        holder: VariableTracker,
        key: object,
        origin: Source | None = None,
    ) -> None:
        """Note the same of what nobody has read, `read(holder.real, key)`: a key without an origin
        stays as it is."""
        real = read(holder.real, key)
        captured = CapturedSource("key", key, weak=type(key) is not frozenset)
        whole = CapturedSource("holder", holder.real) if holder.source is None else holder.source
        source = CallSource(read, whole, origin or captured)
        tracker = self.heap.trackers.get(id(real))
        self._note_release(real, source, tracker, is_whole=type(real) is list)

    def _note_release(
        self, real: Any, source: Source, tracker: VariableTracker | None, is_whole: bool
    ) -> None:
        if has_observable_end(real):
            self.observable.add(id(real))
            self.released.append(tracker)
        elif not self.heap.is_of_made(source):
            self.assumed_unobserved[source] = is_whole or self.assumed_unobserved.get(source, False)

    def _is_held_where_found(self, source: Source, real: object, holder: VariableTracker) -> bool:
        """Return whether a value is still in the existing container that it was read from, and that
        is not `holder`.

        Then it does not die here: if that container is released as well, the value is checked
        there.
        """
        if not isinstance(source, PartSource):
            return False
        of_object = isinstance(source.whole, InstanceDictSource | FunctionPartSource)
        part: Any = source.whole if of_object else None
        found = self.heap.by_source.get(source.whole if part is None else part.whole)
        if found is None or found is owner_of(holder):
            return False

        owner = real_of(found)
        place = owner if part is None else part.read(owner)
        changed = {
            id(real_of(each)) for vt in self.heap.changed.values() for each in (vt, owner_of(vt))
        }
        return changed.isdisjoint((id(owner), id(place))) and stores(place, real)

    def has_relevant_end(self, tracker: Any) -> bool:
        """Return whether the end of an existing object has to be known: it may be observable, in
        some call."""
        number = id(real := real_of(tracker))
        is_local = number in self.local_places and (
            is_pending(tracker) or _may_be_observed(tracker, real)
        )
        return is_local or number in self.observable

    def changed_holders(self) -> list[Any]:
        """Return what was changed, but for local values: they may be held by what is being
        released."""
        return [
            vt
            for vt in self.heap.changed.values()
            if id(real_of(owner_of(vt))) not in self.local_places
        ]

    def release(self) -> None:
        """Empty what leads to trackers and real objects."""
        self.paths.clear()
        for record in (self.generators, self.cleaning_up, self.stack_only, self.released):
            record.clear()

    def facts(self) -> Iterator[tuple[Source, Kind]]:
        """Yield that the end of objects which containers release is unobservable.

        Where locals die as well, they may hold the only other references to them: then all of it is
        checked.
        """
        alone: list[Source] = []
        whole: list[Source] = []
        for source, is_whole in self.assumed_unobserved.items():
            (whole if is_whole or self.ended_locals else alone).append(source)
        if alone:
            yield CallSource(are_released_unobserved, *alone), Truth(True)
        if whole:
            yield CallSource(have_unobservable_ends, *whole), Truth(True)


def _may_be_observed(tracker: Any, real: object) -> bool:
    """Return whether the end of an existing object may be observable; an iterator at its end refers
    to nothing."""
    return bool(tracker.traverse()) and may_have_observable_end(type(real))


def _parts(held: Any) -> Iterable[Any]:
    return held.values() if type(held) is dict else held if type(held) is list else (held,)


def _is_part(before: list[Any], after: list[Any]) -> bool:
    """Return True if the one begins or ends the other, as after most changes of long lists."""
    same = len(before) <= len(after) and all(map(operator.is_, before, after))
    return same or (
        len(before) <= len(after) and all(map(operator.is_, reversed(before), reversed(after)))
    )
