"""Exits: the Point after a step, and how its flat state is made of the one before and what the step
gave.

state before (x, y, stack0, stack1) + results (sum,)   =>   pick 0, 1, 4   =>   (x, y, stack0)
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from operator import itemgetter
from typing import Any

from attrs import define, evolve, field, frozen

from stator_bytecode._breaks._layout import VALUE, CarriedAt, SlotKind, VirtualizedLayout
from stator_bytecode._breaks._point import Point
from stator_bytecode._breaks._rebuild import GeneratorFactory, closed_generator

FlatState = tuple[Any, ...]
Cell = tuple[SlotKind, "int | None"]
"""The kind of one slot or stack position, and the place of its value (if it carries one)."""


@frozen(eq=False)
class Exit:
    """`pick` takes the old state, the results, and one object for each of `closed`, in that
    order."""

    point: Point
    pick: Callable[[FlatState], FlatState]
    closed: tuple[GeneratorFactory, ...] = ()
    """Makers of running generators that ended and can still be seen: they are objects then, after
    the results."""
    dropped: tuple[int, ...] = ()
    """Suspended generators, and objects in parts, that nothing can see any more."""
    ends_generators: bool = field(init=False)

    @ends_generators.default
    def _ends_generators(self) -> bool:
        return bool(self.dropped or self.closed)


@define(eq=False)
class Draft:
    """Frame `index` of a Point, or what it carries under a number that goes on from there, with the
    places of what it has; to be edited where it is the innermost frame after a step. Places from
    `Point.count` on are results."""

    point: Point
    index: int
    layout: Any
    slots: list[Cell]
    stack: list[Cell]
    handled: int | None
    then: tuple[int, ...]

    @classmethod
    def of(cls, point: Point, index: int) -> Draft:
        layout, places = point.laid_out[index], point.places[index]
        slots = list(zip(layout.slots, places.slots, strict=True))
        stack = list(zip(layout.stack, places.stack, strict=True))
        return cls(point, index, layout, slots, stack, places.handled, places.then)

    @classmethod
    def after(cls, point: Point, index: int, pc: int | None = None) -> Draft:
        """The draft of the innermost frame before its next instruction, or that at `pc`."""
        draft = cls.of(point, index)
        draft.go_to(draft.layout.pc + 1 if pc is None else pc)
        draft.then = ()
        return draft

    def go_to(self, pc: int) -> None:
        self.layout = evolve(self.layout, pc=pc, then=None)

    def push_result(self, number: int = 0) -> None:
        self.stack.append((VALUE, self.point.count + number))

    @property
    def rest(self) -> list[int]:
        """The places of the values after slots and stack."""
        return [place for place in (self.handled, *self.then) if place is not None]


def exit_to(draft: Draft, results: int) -> Exit:
    """The exit with `draft` as the innermost frame from now on; `results` values follow the
    state."""
    return _ExitBuilder(draft, results, ()).build()


def materialized(point: Point, generators: tuple[int, ...]) -> Exit:
    """Return the same place with these suspended generators as objects; the objects follow the
    state, in that order."""
    return _ExitBuilder(Draft.of(point, len(point.frames) - 1), len(generators), generators).build()


class _ExitBuilder:
    def __init__(self, draft: Draft, results: int, objects: tuple[int, ...]) -> None:
        self.point = draft.point
        self.index = draft.index
        self.parts = [*(Draft.of(draft.point, outer) for outer in range(draft.index)), draft]
        """The parts that stay: the frames, then the objects they refer to."""
        self.next_place = self.point.count + results
        self.closed: dict[int, int] = {}
        self.objects = {number: self.point.count + order for order, number in enumerate(objects)}
        self.numbers: dict[int, int] = {}

    def build(self) -> Exit:
        point = self.point
        self._add_reachable()
        layouts = [self._renumbered(part) for part in self.parts]
        after = Point(tuple(layouts[: self.index + 1]), tuple(layouts[self.index + 1 :]))
        sources = tuple(place for part in self.parts for place in self._sources(part))
        assert len(sources) == after.count
        closed = tuple(closed_generator(point.frames[running]) for running in self.closed)
        gone = set(range(len(point.carried))) - set(self.numbers) - set(self.objects)
        return Exit(after, picker(sources), closed, tuple(sorted(gone)))

    def _add_reachable(self) -> None:
        """The suspended generators that the parts refer to, and those that they refer to; numbers
        them."""
        for part in self.parts:  # which grows under this loop
            for kind, _ in (*part.slots, *part.stack):
                if (
                    isinstance(kind, CarriedAt)
                    and self._is_state(kind)
                    and kind.index not in self.numbers
                ):
                    self.numbers[kind.index] = len(self.numbers)
                    self.parts.append(Draft.of(self.point, len(self.point.frames) + kind.index))

    def _renumbered(self, part: Draft) -> Any:
        slots, stack = (
            tuple(self._kind(kind) for kind, _ in cells) for cells in (part.slots, part.stack)
        )
        if isinstance(part.layout, VirtualizedLayout):
            return VirtualizedLayout(part.layout.recipe, slots)
        return evolve(part.layout, slots=slots, stack=stack, handled=part.handled is not None)

    def _is_state(self, kind: CarriedAt) -> bool:
        """Return True for a suspended generator that stays one."""
        return not kind.running and kind.index not in self.objects

    def _kind(self, kind: SlotKind) -> SlotKind:
        if not isinstance(kind, CarriedAt):
            return kind
        if self._is_state(kind):
            return CarriedAt(self.numbers[kind.index], False)
        return kind if self._object(kind) is None else VALUE

    def _object(self, kind: CarriedAt) -> int | None:
        """The place of the object that replaces the generator from now on, if one does."""
        if not kind.running:
            return self.objects.get(kind.index)
        if kind.index <= self.index:
            return None
        if kind.index not in self.closed:
            self.closed[kind.index] = self.next_place + len(self.closed)
        return self.closed[kind.index]

    def _sources(self, part: Draft) -> Iterator[int]:
        for kind, place in (*part.slots, *part.stack):
            source = self._object(kind) if isinstance(kind, CarriedAt) else place
            if source is not None:
                yield source
        yield from part.rest


def picker(sources: tuple[int, ...]) -> Callable[[FlatState], FlatState]:
    """`itemgetter` gives a bare item for one place and refuses none."""
    if len(sources) > 1:
        return itemgetter(*sources)
    if sources:
        only = sources[0]
        return lambda state: (state[only],)
    return lambda state: ()
