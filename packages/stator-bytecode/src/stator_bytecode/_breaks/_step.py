"""Steps of a Site, taken when it is reached: each a function of the flat state.

- `Shuffling`: the instruction only moves values, so the step edits the state;
- `Materializing`: an operand is a generator carried as frame state; it becomes an object first;
- `NativeStep`: stubs run the instruction. Exceptions go to the handler that would have got them;
- `ThrowingStep`: stubs raise a given exception instead of running the instruction.
"""

import dis
from collections.abc import Callable
from typing import Any

from stator_bytecode._breaks import _propagation
from stator_bytecode._breaks._complete import forget_note
from stator_bytecode._breaks._exit import Draft, FlatState, exit_to, materialized
from stator_bytecode._breaks._layout import CarriedAt
from stator_bytecode._breaks._native_stack import NativeStack, ThrowingStack
from stator_bytecode._breaks._point import Point
from stator_bytecode._breaks._propagation import PointState, Propagation, finalize, take
from stator_bytecode._breaks._rebuild import Rebuilder
from stator_bytecode._breaks._shape import shapes_of
from stator_bytecode._breaks._shuffle import raises, shuffles
from stator_bytecode._breaks._traceback import drop_at, hide, passed_over
from stator_bytecode.errors import Unsupported

Take = Callable[[FlatState], PointState]
Throw = Callable[[BaseException, FlatState], PointState]


def prepare(point: Point) -> Take:
    """The step at `point`: a method, since calling one pushes a Python frame and calling an object
    runs C first."""
    layout = point.frames[-1]
    instr = layout.instruction
    if instr.op in shuffles and not raises(layout):
        return Shuffling(point).take
    touched = _touched(point)
    return Materializing(point, touched).take if touched else NativeStep(point).take


def _touched(point: Point) -> tuple[int, ...]:
    """The suspended generators among the operands, with all that these hold."""
    layout = point.frames[-1]
    used = [layout.stack[-depth] for depth in shapes_of(layout.instruction).used]
    found: list[int] = []
    for kind in used:  # which grows under this loop
        if isinstance(kind, CarriedAt) and kind.running:
            raise Unsupported(
                "running-generator", "an instruction uses a generator that is running itself"
            )
        if isinstance(kind, CarriedAt) and kind.index not in found:
            found.append(kind.index)
            held = point.carried[kind.index]
            used += [*held.slots, *held.stack]
    return tuple(found)


class Shuffling:
    """Edits the state."""

    def __init__(self, point: Point) -> None:
        draft, instr = Draft.after(point, len(point.frames) - 1), point.frames[-1].instruction
        self.rebuilder = Rebuilder(point)
        self.make = shuffles[instr.op](draft, instr)
        self.exit = exit_to(draft, 1)

    def take(self, state: FlatState) -> PointState:
        made = None if self.make is None else self.make(state)
        finalize(self.rebuilder, self.exit, state)
        return self.exit.point, self.exit.pick((*state, made))


class Materializing:
    """Makes generators among the operands objects, and runs the instruction on these."""

    def __init__(self, point: Point, touched: tuple[int, ...]) -> None:
        self.rebuilder = Rebuilder(point)
        self.touched = touched
        self.exit = materialized(point, touched)
        self.take_on = prepare(self.exit.point)

    def take(self, state: FlatState) -> PointState:
        handed_on = [self.exit.pick((*state, *self.rebuilder.rebuild(state, self.touched)))]
        state = ()  # what the step raises keeps this frame alive
        return self.take_on(handed_on.pop())


class NativeStep:
    """Runs the instruction in stubs."""

    def __init__(self, point: Point) -> None:
        self.point = point
        self.stack = stack = NativeStack(point)
        self.run, self.exits = (
            stack.run,
            stack.exits,
        )  # at hand: `take` is most of what crossing a break costs
        self.rebuilder = Rebuilder(point)
        self.propagation = Propagation(point, stack.innermost, stack.visible, self.rebuilder)

    def take(self, state: FlatState) -> PointState:
        try:
            result = self.run(state)
        except BaseException as error:
            handed_on: list[Any] = [state]
            state = ()  # it may hold `error`, whose traceback holds this frame
            return self._raised(error, handed_on)
        taken = self.exits[result[-1]]
        if taken.ends_generators:
            return take(self.rebuilder, taken, state, result[:-1])
        return taken.point, taken.pick(state + result)

    def _raised(self, error: BaseException, handed_on: list[Any]) -> PointState:
        """Go on at the handler of `error`. `handed_on` is a list with the state, which is taken
        out."""
        hide(error, OWN_CODES)
        if self.stack.shows_hidden:
            drop_at(error, len(self.stack.visible))
        if self.point.frames[-1].instruction.op == "LOAD_METHOD" and "LOAD_METHOD" in dis.opmap:
            self._forget_note(error, handed_on[0])
        return self.propagation.go_on(error, handed_on)

    def _forget_note(self, error: BaseException, state: FlatState) -> None:
        """The receiver is None where it is carried in parts, and not the program's."""
        last = len(self.point.frames) - 1
        receiver = self.point.places[last].stack[-1]
        if receiver is not None:
            forget_note(error, state[receiver], self.point.frames[last].instruction.arg)


class ThrowingStep:
    """Raises an exception where the innermost frame stands."""

    def __init__(self, point: Point) -> None:
        self.stack = stack = ThrowingStack(point)
        self.propagation = Propagation(point, stack.innermost, stack.visible, Rebuilder(point))

    def throw(self, error: BaseException, state: FlatState) -> PointState:
        try:
            self.stack.run((*state, error))
        except BaseException as raised:
            handed_on: list[Any] = [state]
            state = ()  # like `error`, whose traceback holds this frame
            del error
            hide(raised, OWN_CODES)
            return self.propagation.go_on(raised, handed_on)
        raise AssertionError("a throwing stub raises")


_PASSED = (
    *(NativeStep.take, NativeStep._raised, ThrowingStep.throw),
    *(Shuffling.take, Materializing.take),
)
OWN_CODES = passed_over(*_PASSED) | _propagation.OWN_CODES
"""Frames of ours that an exception passes on its way out."""
