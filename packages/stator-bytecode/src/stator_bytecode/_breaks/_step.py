"""What a Site does when it is reached: three kinds of step, each a function of the flat state.

- `Shuffling`: the instruction only moves values, so the step edits the state;
- `Materializing`: an operand is a generator carried as frame state; it becomes an object first;
- `NativeStep`: stubs run the instruction. Exceptions go to the handler that would have got them.
"""

import dis
from collections.abc import Callable
from typing import Any

from stator_bytecode._breaks._complete import forget_note, note
from stator_bytecode._breaks._exit import Draft, Exit, State, exit_to, materialized
from stator_bytecode._breaks._layout import CarriedAt, FrameLayout, RaisedAt
from stator_bytecode._breaks._native_stack import NativeStack
from stator_bytecode._breaks._point import Point
from stator_bytecode._breaks._rebuild import Rebuilder
from stator_bytecode._breaks._shape import shapes_of
from stator_bytecode._breaks._shuffle import raises, shuffles
from stator_bytecode._breaks._traceback import after, drop_at, drop_outer, hide, outermost, passed_over
from stator_bytecode._fields import exception_field, set_exception_field
from stator_bytecode._machine._unwind import CAUGHT
from stator_bytecode.errors import Unsupported

Step = tuple[Point, State]
Take = Callable[[State], Step]


def prepare(point: Point) -> Take:
    layout = point.frames[-1]
    instr = layout.instruction
    if instr.op in shuffles and not raises(layout):
        return Shuffling(point)
    touched = _touched(point)
    return Materializing(point, touched) if touched else NativeStep(point)


def _touched(point: Point) -> tuple[int, ...]:
    """The suspended generators among the operands, with all that these hold."""
    layout = point.frames[-1]
    used = [layout.stack[-depth] for depth in shapes_of(layout.instruction).used]
    found: list[int] = []
    for kind in used:  # which grows under this loop
        if isinstance(kind, CarriedAt) and kind.running:
            raise Unsupported("running-generator", "an instruction uses a generator that is running itself")
        if isinstance(kind, CarriedAt) and kind.index not in found:
            found.append(kind.index)
            held = point.carried[kind.index]
            used += [*held.slots, *held.stack]
    return tuple(found)


class Shuffling:
    def __init__(self, point: Point) -> None:
        draft, instr = Draft.after(point, len(point.frames) - 1), point.frames[-1].instruction
        self.rebuilder = Rebuilder(point)
        self.make = shuffles[instr.op](draft, instr)
        self.exit = exit_to(draft, 1)

    def __call__(self, state: State) -> Step:
        made = None if self.make is None else self.make(state)
        finalize(self.rebuilder, self.exit, state)
        return self.exit.point, self.exit.pick((*state, made))


class Materializing:
    def __init__(self, point: Point, touched: tuple[int, ...]) -> None:
        self.rebuilder = Rebuilder(point)
        self.touched = touched
        self.exit = materialized(point, touched)
        self.take = prepare(self.exit.point)

    def __call__(self, state: State) -> Step:
        handed_on = [self.exit.pick((*state, *self.rebuilder.rebuild(state, self.touched)))]
        state = ()  # what the step raises keeps this frame alive
        return self.take(handed_on.pop())


def finalize(rebuilder: Rebuilder, taken: Exit, state: State) -> None:
    """Close generators that nothing can see any more as Python closes them: their `finally` blocks run."""
    if taken.dropped:
        rebuilder.rebuild(state, taken.dropped)


class NativeStep:
    """Runs the instruction in stubs. Exits are made when first taken."""

    def __init__(self, point: Point) -> None:
        self.point = point
        self.rebuilder = Rebuilder(point)
        self.stack = NativeStack(point)
        self.handlers: dict[int, Exit] = {}
        self.answers: dict[int, Exit] = {}

    def __call__(self, state: State) -> Step:
        try:
            result = self.stack.run(state)
        except BaseException as error:
            handed_on: list[Any] = [state]
            state = ()  # it may hold `error`, whose traceback holds this frame
            return self._raised(error, handed_on)
        taken = self.stack.exits[result[-1]]
        if taken.dropped or taken.closed:
            return self._take(taken, state, result[:-1])
        return taken.point, taken.pick(state + result)

    def _take(self, taken: Exit, state: State, results: State) -> Step:
        finalize(self.rebuilder, taken, state)
        closed = [make(()) for make in taken.closed]
        return taken.point, taken.pick((*state, *results, *closed))

    def _raised(self, error: BaseException, handed_on: list[Any]) -> Step:
        """Where plain Python would go on after `error`; raises it again when that is nowhere in these frames.

        `handed_on` is a list with the state. What it holds in the end lives as long as the traceback: the generators
        that the frames left suspended.
        """
        hide(error, OWN_CODES)
        if self.stack.shows_hidden:
            drop_at(error, len(self.stack.visible))
        state = handed_on.pop()
        frames = self.point.frames
        if (instr := frames[-1].instruction).op == "LOAD_METHOD" and "LOAD_METHOD" in dis.opmap:
            receiver = self.point.places[len(frames) - 1].stack[
                -1
            ]  # None: it is carried in parts, and not the program's
            if receiver is not None:
                forget_note(error, state[receiver], instr.arg)
        for index in range(self.stack.innermost, -1, -1):
            layout = frames[index]
            if index < self.stack.innermost:
                self._note(index, error, state)
                if (answer := self._answer(index, error)) is not None:
                    return self._take(*answer[:1], state, answer[1])
            if layout.instruction.handler is not None:
                drop_outer(error, self.stack.visible_before(index))
                return self._take(self._handler_exit(index), state, (error,))
            if layout.generator is not None and isinstance(error, StopIteration):
                error = self._stop_iteration_error(error, index)
        handed_on += self.rebuilder.rebuild(state, range(len(self.point.carried)))
        try:
            raise error
        finally:
            del error, state

    def _note(self, index: int, error: BaseException, state: State) -> None:
        if (then := self.point.frames[index].then) is not None and then.kind == "attribute":
            note(error, state[self.point.places[index].then[0]], then.name)

    def _stop_iteration_error(self, error: StopIteration, index: int) -> RuntimeError:
        """What CPython 3.11 makes of a StopIteration that leaves a generator; later its own code does it."""
        outer = self.stack.visible_before(index)
        replaced = RuntimeError("generator raised StopIteration")
        traceback = exception_field(error, "__traceback__")
        replaced.__traceback__ = outermost(traceback, outer)
        replaced.__cause__ = replaced.__context__ = error
        set_exception_field(error, "__traceback__", after(traceback, outer))
        return replaced

    def _handler_exit(self, index: int) -> Exit:
        if index not in self.handlers:
            layout = self.point.frames[index]
            handler = layout.instruction.handler
            assert handler is not None
            draft = Draft.after(self.point, index, handler.target)
            del draft.stack[handler.depth :]
            if handler.lasti:
                draft.stack.append((RaisedAt(_raised_at(layout)), None))
            draft.push_result()
            self.handlers[index] = exit_to(draft, 1)
        return self.handlers[index]

    def _answer(self, index: int, error: BaseException) -> tuple[Exit, State] | None:
        """The exit and result if `error` is an answer to frame `index`, which waits: the end of an iteration."""
        kind = self.point.frames[index].waits_with
        if not isinstance(error, CAUGHT.get(kind, ())):
            return None
        if index not in self.answers:
            self.answers[index] = self._answer_exit(index, kind)
        return self.answers[index], (error.value if kind == "send" else None,)  # type: ignore[attr-defined]

    def _answer_exit(self, index: int, kind: str) -> Exit:
        draft, instr = Draft.after(self.point, index), self.point.frames[index].instruction
        if kind in ("next", "send"):
            draft.go_to(instr.target)
            if kind == "next" or not instr.arg:
                draft.stack.pop()
        if kind != "next":
            draft.push_result()
        return exit_to(draft, 1)


def _raised_at(layout: FrameLayout) -> int:
    """The instruction to blame: a RERAISE with an argument says which."""
    instr = layout.instruction
    if instr.op == "RERAISE" and instr.arg and isinstance(marker := layout.stack[-1 - instr.arg], RaisedAt):
        return marker.index
    return layout.pc


_PASSED = (NativeStep.__call__, NativeStep._raised, Shuffling.__call__, Materializing.__call__)
OWN_CODES = passed_over(*_PASSED)
"""Frames of ours that an exception passes on its way out."""
