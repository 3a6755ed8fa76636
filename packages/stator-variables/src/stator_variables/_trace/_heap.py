"""The existing objects that a trace has met, and those that it made."""

from collections.abc import Callable, Iterable, Iterator
from typing import Any

from attrs import Factory, define
from stator_guards import AllDistinct, CapturedSource, Equals, Guard, Kind, SameObject, Source

from stator_variables._trace._entry_calls import is_entry_value
from stator_variables._tracker import VariableTracker, is_pending, pending, real_of, source_of


@define(eq=False)
class Heap:
    """The trackers of objects, and what guards rely on of the objects' identities."""

    trackers: dict[int, VariableTracker] = Factory(dict)
    """Trackers by the identity of the real object."""
    by_source: dict[Source, VariableTracker] = Factory(dict)
    """The trackers by the first path to each."""
    aliases: list[tuple[Any, Source, Source]] = Factory(list)
    """Trackers to which another path was found: first path, other path."""
    escaped: set[int] = Factory(set)
    """The ids of unread trackers that the entry passes on."""
    alive: list[Any] = Factory(list)
    """Objects whose identities are keys above."""
    changed: dict[int, Any] = Factory(dict)
    """Existing trackers with effects, by id, in the order of their first changes."""
    writes: list[Any] = Factory(list)
    """The trackers that were changed, new ones included, once for each change: a rollback leaves
    them."""
    assumed_distinct: dict[int, Any] = Factory(dict)
    """Trackers of existing objects that are taken for distinct ones, by identity."""
    named: list[Any] = Factory(list)
    """New containers and objects whose `id` was read."""
    present: list[tuple[Guard, VariableTracker]] = Factory(list)
    """Items and attributes that were found in existing objects. The guards on those that were read
    imply the guard."""
    repeated: list[Callable[[], Iterable[tuple[type, Source, int | None]]]] = Factory(list)
    """The objects that calls read which repeat an earlier one: classes and sources."""
    selected: dict[Source, int] = Factory(dict)
    """Numbers of which only that they are the index of an item was used, see `AccessLog`."""
    made: dict[int, VariableTracker] = Factory(dict)
    """Classes made while tracing, by the identity of what represents them."""

    def track(
        self, real: object, source: Source, build: Callable[[], VariableTracker]
    ) -> VariableTracker:
        """Return the one tracker of an existing object, made lazily; a second path to it is kept
        for an aliasing guard. None leads to what stands in for a value, while a class of the
        program is written to."""
        if (found := self.trackers.get(id(real))) is not None:
            known = source_of(found) if real_of(found) is real else None
            if known is not None and known is not source and known != source:
                self.aliases.append((found, known, source))
            return found
        lazy = self.trackers[id(real)] = self.by_source[source] = pending(source, real, build)
        self.alive.append(real)
        return lazy

    def is_of_made(self, source: Source) -> bool:
        """Return True if a source reads from a class that was made while tracing: each call makes
        its own."""
        return bool(self.made) and any(
            isinstance(step, CapturedSource) and id(step.held.get()) in self.made
            for step in source.steps()
        )

    def release(self) -> None:
        """Take apart what refers to trackers, and they to each other."""
        for tracker in self.trackers.values():
            tracker.__dict__.clear()  # a tracker and that of its `__dict__` refer to each other
        for tracker in self.named:
            # its `id` may be a key in what it holds, as in the memo of `copy.deepcopy`
            vars(tracker).clear()
        for table in (self.made, self.trackers, self.changed, self.assumed_distinct):
            table.clear()
        self.selected.clear()
        self.by_source.clear()
        records = self.named, self.alive, self.aliases, self.present, self.repeated, self.writes
        for record in records:
            record.clear()

    def facts(self) -> Iterator[tuple[Source, Kind]]:
        """Yield what an entry relies on: aliasing between paths that were used, indices of items,
        and distinctness of what was changed."""
        for tracker, known, other in self.aliases:
            if not is_pending(tracker) or id(tracker) in self.escaped:
                yield other, SameObject(known)
        for source, index in self.selected.items():
            yield source, Equals(index)
        yield from self._distinctness()

    def guards_on_unread(self) -> Iterator[Guard]:
        """Yield that items are there of which nothing was read: what was read of the others is
        guarded through their containers."""
        for guard, tracker in self.present:
            if is_pending(tracker):
                yield guard

    def _distinctness(self) -> Iterator[tuple[Source, Kind]]:
        """Yield that changed objects and keys are no other object of their class that this trace
        read."""
        owners = [owner_of(tracker) for tracker in self.changed.values()]
        classes = {id(owner.cls) for owner in owners}
        looked_at = [owner_of(found) for found in self.trackers.values() if not is_pending(found)]
        found = {
            id(vt.real): vt
            for vt in (*self.assumed_distinct.values(), *looked_at)
            if id(vt.cls) in classes
        }
        found |= self.assumed_distinct

        groups: dict[int, list[Source]] = {}
        for vt in found.values():
            if vt.source is None or is_entry_value(vt.source):
                continue
            if not self.is_of_made(vt.source):
                groups.setdefault(id(vt.cls), []).append(vt.source)

        known: set[int | None] = {*found}
        for read in self.repeated if classes else ():
            for cls, source, identity in read():
                group = groups.setdefault(id(cls), [])
                is_known = source in group or (identity is not None and identity in known)
                if id(cls) in classes and not is_known:
                    group.append(source)
                    known.add(identity)

        for sources in groups.values():
            first = next((each for each in sources if type(each) is not CapturedSource), None)
            if len(sources) > 1 and first is not None:
                others = tuple(source for source in sources if source is not first)
                yield first, AllDistinct(others, first)


def owner_of(tracker: VariableTracker) -> VariableTracker:
    """Return the object itself, for an instance dictionary."""
    return tracker if (owner := getattr(tracker, "owner", None)) is None else owner
