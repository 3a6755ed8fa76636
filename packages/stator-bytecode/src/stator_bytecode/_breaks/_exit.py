"""Exits: the Point after a step, and how its flat state is made of the one before and what the step gave.

state before (x, y, stack0, stack1) + results (sum,)   =>   pick 0, 1, 4   =>   (x, y, stack0)
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from operator import itemgetter
from typing import Any

import attrs

from stator_bytecode._breaks._layout import VALUE, CarriedAt, FrameLayout, Kind, Layout, Places
from stator_bytecode._breaks._point import Point

State = tuple[Any, ...]
Cell = tuple[Kind, "int | None"]
"""What one slot or stack position has: its kind, and where its value is (if it carries one)."""


@attrs.frozen(eq=False)
class Exit:
    """`pick` takes the old state, the results, and one object for each of `closed`, in that order."""

    point: Point
    pick: Callable[[State], State]
    closed: tuple[FrameLayout, ...] = ()
    """Running generators that ended and can still be seen: they are objects from now on, made after the results."""
    dropped: tuple[int, ...] = ()
    """Suspended generators, and objects in parts, that nothing can see any more."""


@attrs.define(eq=False)
class Draft:
    """The innermost frame after a step, to be edited. Places from `Point.count` on are results."""

    layout: FrameLayout
    slots: list[Cell]
    stack: list[Cell]
    handled: int | None
    pc: int
    names: int | None

    @classmethod
    def of(cls, layout: FrameLayout, places: Places) -> Draft:
        slots = list(zip(layout.slots, places.slots, strict=True))
        stack = list(zip(layout.stack, places.stack, strict=True))
        return cls(layout, slots, stack, places.handled, layout.pc + 1, places.names)

    def finished(self) -> FrameLayout:
        return attrs.evolve(
            self.layout,
            pc=self.pc,
            slots=tuple(kind for kind, _ in self.slots),
            stack=tuple(kind for kind, _ in self.stack),
            handled=self.handled is not None,
            then=None,
        )


def exit_to(point: Point, index: int, draft: Draft, results: int) -> Exit:
    """The exit with `draft` as frame `index`, the innermost from now on; `results` values follow the state."""
    return _ExitBuilder(point, index, draft, results, ()).build()


def materialized(point: Point, generators: tuple[int, ...]) -> Exit:
    """The same place with these suspended generators as objects; the objects follow the state, in that order."""
    index = len(point.frames) - 1
    draft = Draft.of(point.frames[index], point.places[index])
    draft.pc -= 1
    return _ExitBuilder(point, index, draft, len(generators), generators).build()


@attrs.define(eq=False)
class _Part:
    """What stays: a layout, and the places of its values (`rest`: those after slots and stack)."""

    layout: Layout
    slots: Sequence[Cell]
    stack: Sequence[Cell]
    rest: list[int]


class _ExitBuilder:
    def __init__(self, point: Point, index: int, draft: Draft, results: int, objects: tuple[int, ...]) -> None:
        self.point = point
        self.index = index
        self.draft = draft
        self.next_place = point.count + results
        self.closed: dict[int, int] = {}
        self.objects = {number: point.count + order for order, number in enumerate(objects)}
        self.numbers: dict[int, int] = {}

    def build(self) -> Exit:
        point, index, draft = self.point, self.index, self.draft
        parts = [self._part(layout, places) for layout, places in self._with_places(0, index)]
        own = [place for place in (draft.handled, draft.names) if place is not None]
        parts.append(_Part(draft.finished(), draft.slots, draft.stack, own))
        parts.extend(self._reachable(parts))
        frames = [self._renumbered(part) for part in parts]
        after = Point(tuple(frames[: index + 1]), tuple(frames[index + 1 :]))
        sources = tuple(place for part in parts for place in self._sources(part))
        assert len(sources) == after.count
        closed = tuple(point.frames[running] for running in self.closed)
        gone = set(range(len(point.carried))) - set(self.numbers) - set(self.objects)
        return Exit(after, picker(sources), closed, tuple(sorted(gone)))

    def _with_places(self, start: int, stop: int) -> Iterator[tuple[Layout, Places]]:
        layouts = (*self.point.frames, *self.point.carried)
        return zip(layouts[start:stop], self.point.places[start:stop], strict=True)

    def _part(self, layout: Layout, places: Places) -> _Part:
        rest = [place for place in (places.handled, places.names, *places.then) if place is not None]
        slots = list(zip(layout.slots, places.slots, strict=True))
        return _Part(layout, slots, list(zip(layout.stack, places.stack, strict=True)), rest)

    def _reachable(self, parts: list[_Part]) -> list[_Part]:
        """The suspended generators that these parts refer to, and those that they refer to; numbers them."""
        found: list[_Part] = []
        for part in _growing(parts, found):
            for kind, _ in (*part.slots, *part.stack):
                if isinstance(kind, CarriedAt) and self._is_state(kind) and kind.index not in self.numbers:
                    self.numbers[kind.index] = len(found)
                    position = len(self.point.frames) + kind.index
                    found.extend(self._part(*pair) for pair in self._with_places(position, position + 1))
        return found

    def _renumbered(self, part: _Part) -> Any:
        slots = tuple(self._kind(kind) for kind, _ in part.slots)
        return attrs.evolve(part.layout, slots=slots, stack=tuple(self._kind(kind) for kind, _ in part.stack))

    def _is_state(self, kind: CarriedAt) -> bool:
        """Whether it is a suspended generator that stays one."""
        return not kind.running and kind.index not in self.objects

    def _kind(self, kind: Kind) -> Kind:
        if not isinstance(kind, CarriedAt):
            return kind
        if self._is_state(kind):
            return CarriedAt(self.numbers[kind.index], False)
        return kind if self._object(kind) is None else VALUE

    def _object(self, kind: CarriedAt) -> int | None:
        """The place of the object that stands for the generator from now on, if one does."""
        if not kind.running:
            return self.objects.get(kind.index)
        if kind.index <= self.index:
            return None
        if kind.index not in self.closed:
            self.closed[kind.index] = self.next_place + len(self.closed)
        return self.closed[kind.index]

    def _sources(self, part: _Part) -> Iterator[int]:
        for kind, place in (*part.slots, *part.stack):
            source = self._object(kind) if isinstance(kind, CarriedAt) else place
            if source is not None:
                yield source
        yield from part.rest


def _growing(parts: list[_Part], found: list[_Part]) -> Iterator[_Part]:
    yield from parts
    yield from found  # a list may grow under its iterator


def picker(sources: tuple[int, ...]) -> Callable[[State], State]:
    """`itemgetter` gives a bare item for one place and refuses none."""
    if len(sources) > 1:
        return itemgetter(*sources)
    if sources:
        only = sources[0]
        return lambda state: (state[only],)
    return lambda state: ()
