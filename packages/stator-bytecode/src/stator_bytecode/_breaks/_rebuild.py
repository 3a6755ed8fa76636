"""Generators carried as frame state, made into generator objects again.

A suspended one runs up to its own YIELD_VALUE, entered with the stack it had, so that the object
stands exactly where the frame stood: `send`, `throw`, `close`, `gi_frame.f_lineno` and
`gi_yieldfrom` find what they would have found. The value of that extra yield is dropped. One that
has not started gets its arguments before it becomes a generator, and is not run.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from typing import Any

import attrs

from stator_bytecode._breaks._body import NativeBody
from stator_bytecode._breaks._layout import (
    NULL_KIND,
    CarriedAt,
    FlatIndices,
    FrameLayout,
    VirtualizedLayout,
)
from stator_bytecode._breaks._native_frame import GeneratorPlace
from stator_bytecode._breaks._point import Point
from stator_bytecode._machine._frame import GeneratorStatus
from stator_bytecode.errors import Unsupported

AnyGenerator = Generator[Any, Any, Any]


class GeneratorFactory:
    """Makes the generator that `layout` describes, from a flat state of this frame alone. It may
    hold no others.

    An entry that has to give on a generator object captures one: the code is assembled by the first
    call.
    """

    def __init__(self, layout: FrameLayout) -> None:
        self._layout = layout
        self._rebuilder = Rebuilder(Point((), (layout,)))

    def __reduce__(self) -> tuple[type[GeneratorFactory], tuple[FrameLayout]]:
        return GeneratorFactory, (self._layout,)

    def __call__(self, values: Sequence[Any]) -> AnyGenerator:
        generator: AnyGenerator
        (generator,) = self._rebuilder.rebuild(values, (0,))
        return generator


class Rebuilder:
    """Makes what one Point carries: suspended generators and objects in parts, with what these
    hold.

    It lives as long as its Point is used, and assembles the code of a generator once. The extended
    state has an object for each after the flat state.
    """

    def __init__(
        self, point: Point, running_place: Callable[[int], int | None] = lambda index: None
    ) -> None:
        self.point = point
        self.running_place = running_place
        self.functions: dict[int, Callable[[Any], AnyGenerator]] = {}

    def rebuild(self, state: Sequence[Any], numbers: Sequence[int]) -> list[Any]:
        """Return what the Point carries under `numbers`."""
        full = self.extended(state)
        for number in numbers:
            self.fill(full, number)
        return [full[self.point.count + number] for number in numbers]

    def extended(self, state: Sequence[Any]) -> list[Any]:
        return [*state, *[None] * len(self.point.carried)]

    def place(self, kind: CarriedAt) -> int | None:
        return self.running_place(kind.index) if kind.running else self.point.count + kind.index

    def fill(self, full: list[Any], number: int) -> None:
        """Make generator or object `number`, those it holds first."""
        place = self.point.count + number
        if full[place] is not None:
            return
        layout = self.point.carried[number]
        for kind in (*layout.slots, *layout.stack):
            if isinstance(kind, CarriedAt) and not kind.running and kind.index != number:
                self.fill(full, kind.index)
        if isinstance(layout, VirtualizedLayout):
            full[place] = self._object(full, layout, self._places(number))
            return

        if number not in self.functions:
            self.functions[number] = generator_function(layout, self._places(number), self.place)
        full[place] = generator = self.functions[number](full)
        if layout.generator is GeneratorStatus.SUSPENDED:
            next(generator)
        elif layout.generator is GeneratorStatus.CLOSED:
            generator.close()

    def _places(self, number: int) -> FlatIndices:
        return self.point.places[len(self.point.frames) + number]

    def _object(self, full: list[Any], layout: VirtualizedLayout, places: FlatIndices) -> Any:
        at = [
            self.place(kind) if isinstance(kind, CarriedAt) else place
            for kind, place in zip(layout.slots, places.slots, strict=True)
        ]
        return layout.recipe.build([full[place] for place in at if place is not None])


def generator_function(
    layout: FrameLayout, places: FlatIndices, place: GeneratorPlace
) -> Callable[[Any], AnyGenerator]:
    if layout.generator is GeneratorStatus.SUSPENDED:
        return _suspended(NativeBody(layout, places, place))
    return _created(NativeBody(layout, places, place))


def _suspended(body: NativeBody) -> Callable[[Any], AnyGenerator]:
    """Restored when it is run for the first time, up to its yield."""
    layout, frame = body.layout, body.frame
    pc = layout.pc - 1
    if layout.code.instructions[pc].op != "YIELD_VALUE":
        raise Unsupported(
            "generator-state", f"a generator suspended after {layout.code.instructions[pc].op}"
        )
    frame.start(generator=True)
    frame.restore_slots()
    body.restore_stack()
    body.glue.constant(None)
    frame.restore_first_slot()
    body.go_on_at(pc)
    return body.function(generator=True)


def _created(body: NativeBody) -> Callable[[Any], AnyGenerator]:
    """Restored before it becomes a generator, with the iterator that a generator expression has
    then (3.15). What is sent first comes from the interpreter."""
    frame, layout = body.frame, body.layout
    frame.start_cells()
    frame.restore_slots()
    for depth in range(len(layout.stack)):
        frame.push(depth)
    frame.restore_first_slot()
    frame.become_generator(keep_sent=True)
    pc = layout.pc
    if layout.code.instructions[pc].op == "RETURN_GENERATOR":
        pc += 1
    body.go_on_at(pc)
    return body.function(generator=True)


def closed_generator(layout: FrameLayout) -> GeneratorFactory:
    """Makes exhausted generators with the names of `layout`'s; they hold no values."""
    nothing: dict[str, Any] = {
        "slots": (NULL_KIND,) * len(layout.slots),
        "stack": (),
        "handled": False,
        "then": None,
    }
    return GeneratorFactory(attrs.evolve(layout, pc=0, generator=GeneratorStatus.CLOSED, **nothing))
