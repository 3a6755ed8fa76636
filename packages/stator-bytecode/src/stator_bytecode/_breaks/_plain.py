"""The native continuation of a whole frame stack: original code entered at its middle, in every
frame.

    F0 at its parked call: <prologue>; call F1; <completion>; JUMP → after the call, in its own code
    F1 at its instruction: <prologue>; JUMP → instruction `pc`, in F1's own code

Outer frames run their own exception regions around the call, so every handler, `finally` and `with`
is met as always. A running generator is made a generator object that goes on in the middle when its
parent requests the next value.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from operator import methodcaller
from typing import Any

from stator_bytecode._breaks._body import NativeBody
from stator_bytecode._breaks._complete import FrameCompletion, write_completion
from stator_bytecode._breaks._layout import CarriedAt, FrameLayout
from stator_bytecode._breaks._point import Point
from stator_bytecode._breaks._rebuild import Rebuilder
from stator_bytecode._breaks._traceback import hide, passed_over
from stator_bytecode._codec._raw_instruction import RawHandler
from stator_bytecode.errors import Unsupported


def plain(point: Point) -> NativeContinuation:
    """A function of the flat state that runs the rest of the program natively: it returns the first
    frame's value."""
    return NativeContinuation(point)


def rest_of(point: Point, first: int) -> Callable[[Any], Any]:
    """A function of the flat state that runs the frames from number `first` on: it returns what
    that one returns.

    Raises Unsupported for generators, which are entered when they are resumed.
    """
    if point.carried or any(layout.generator is not None for layout in point.frames[first:]):
        raise Unsupported("native-continuation", "a generator that is to be run to its end")
    return NativeContinuation(point, first).functions[0]


class NativeContinuation:
    def __init__(self, point: Point, first: int = 0) -> None:
        if point.frames[first].generator is not None:
            raise Unsupported("native-continuation", "the outermost frame is a generator's")
        self.point = point
        self.generators = Rebuilder(point, self._running_place)
        self.first_running = point.count + len(point.carried)
        self.running = [
            index for index, layout in enumerate(point.frames) if layout.generator is not None
        ]
        self.functions: list[Callable[[Any], Any]] = []
        inner: Callable[[Any], Any] | None = None
        for index in reversed(range(first, len(point.frames))):
            inner = self._function(index, inner)
            self.functions.insert(0, inner)

    def __call__(self, *state: Any) -> Any:
        """The flat state in, the outermost frame's value out. The caller keeps alive what it
        passes; see `consume`."""
        try:
            return self.consume(list(state))
        except BaseException as error:
            hide(error, OWN_CODES)
            raise

    def consume(self, state: list[Any]) -> Any:
        """Do the same, and take the state out of the list: objects die when the program releases
        them."""
        try:
            full = [self._extended(state)]
            state.clear()
            return self.functions[0](full.pop())
        except BaseException as error:
            hide(error, OWN_CODES)
            raise

    def _extended(self, state: Sequence[Any]) -> list[Any]:
        """The state with objects for the generators, running ones first: those take what they hold
        when they go on."""
        full = [*self.generators.extended(state), *[None] * len(self.running)]
        for order, index in enumerate(self.running):
            full[self.first_running + order] = generator = self.functions[index](full)
            next(generator)
        for number in range(len(self.point.carried)):
            self.generators.fill(full, number)
        return full

    def _running_place(self, index: int) -> int | None:
        return self.first_running + self.running.index(index)

    def _function(self, index: int, inner: Callable[[Any], Any] | None) -> Callable[[Any], Any]:
        layout = self.point.frames[index]
        body = NativeBody(layout, self.point.places[index], self.generators.place)
        is_generator = layout.generator is not None
        body.frame.start(is_generator)
        if is_generator:
            _prime(body)

        body.frame.restore_slots()
        body.restore_stack()
        if inner is None:
            body.frame.restore_first_slot()
            body.go_on_at(layout.pc)
        elif self.point.frames[index + 1].generator is None:
            self._write_call(body, inner)
        else:
            self._write_resumption(body, CarriedAt(index + 1, True))
        return body.function(is_generator or _becomes_generator(layout))

    def _write_call(self, body: NativeBody, inner: Callable[[Any], Any]) -> None:
        body.glue.handler = body.raw_at(body.layout.pc).handler
        write_completion(FrameCompletion(body.frame, inner, body.leave))

    def _write_resumption(self, body: NativeBody, generator: CarriedAt) -> None:
        """The instruction that waits for a generator is run again, on a generator that goes on
        where it was."""
        layout, frame, glue = body.layout, body.frame, body.glue
        kind = layout.waits_with
        place = self.generators.place(generator)
        assert place is not None
        glue.handler = body.raw_at(layout.pc).handler

        if (layout.instruction.op, kind) in (("FOR_ITER", "next"), ("SEND", "send")):
            if kind == "send":
                glue.constant(None)
            frame.restore_first_slot()
            body.go_on_at(layout.pc)
        elif kind in ("value", "close"):
            frame.load(place)
            frame.restore_first_slot()
            glue.call_on_top(methodcaller("close") if kind == "close" else next)
            body.leave(False, made=1)
        else:
            raise Unsupported(
                "native-continuation",
                f"{layout.instruction.op} waits for a generator with {kind!r}",
            )


def _becomes_generator(layout: FrameLayout) -> bool:
    """Return True before the RETURN_GENERATOR of a generator expression, which makes its iterator
    first (3.15)."""
    rest = layout.code.instructions[layout.pc :]
    return any(instr.op == "RETURN_GENERATOR" for instr in rest)


def _prime(body: NativeBody) -> None:
    """A new generator takes no value, so it is run to here first. Whatever is sent or thrown next
    has been before."""
    glue = body.glue
    glue.constant(None)
    priming = glue.emit("YIELD_VALUE")
    resumed = glue.emit("RESUME", 1)
    drop = glue.emit("POP_TOP")
    for raw in (priming, resumed):
        raw.handler = RawHandler(drop, 0, False)


OWN_CODES = passed_over(
    NativeContinuation.__call__, NativeContinuation.consume, NativeContinuation._extended
)
