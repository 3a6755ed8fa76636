"""Propagation of an exception out of the native stack of a step: where plain Python would go on.

From the raising frame outwards: an exception region of a frame, or an instruction that waits for
this exception (the end of an iteration). Without either the exception leaves, and its traceback has
the entries of the user's frames only.

    frames F0, F1; F1 raised; F0 parked inside `try:`  =>  (Point of F0 at its handler, (…, error))
"""

from collections.abc import Callable
from typing import Any

from attrs import Factory, define

from stator_bytecode._breaks._complete import note
from stator_bytecode._breaks._exit import Draft, Exit, FlatState, exit_to
from stator_bytecode._breaks._layout import FrameLayout, RaisedAt
from stator_bytecode._breaks._point import Point
from stator_bytecode._breaks._rebuild import Rebuilder
from stator_bytecode._breaks._traceback import after, drop_outer, outermost, passed_over
from stator_bytecode._fields import exception_field, set_exception_field
from stator_bytecode._machine._unwind import CAUGHT

PointState = tuple[Point, FlatState]


def take(rebuilder: Rebuilder, exit: Exit, state: FlatState, results: FlatState) -> PointState:
    """Leave by an exit where generators end."""
    finalize(rebuilder, exit, state)
    closed = [make(()) for make in exit.closed]
    return exit.point, exit.pick((*state, *results, *closed))


def finalize(rebuilder: Rebuilder, exit: Exit, state: FlatState) -> None:
    """Close generators that nothing can see any more as Python closes them: their `finally` blocks
    run."""
    if exit.dropped:
        rebuilder.rebuild(state, exit.dropped)


@define(eq=False)
class Propagation:
    """The handlers of one native stack; exits are made when first taken.

    `innermost` is the frame that raises, `visible` are the frames that have an entry in the
    traceback.
    """

    point: Point
    innermost: int
    visible: list[int]
    rebuilder: Rebuilder
    handlers: dict[int, Exit] = Factory(dict)
    results: dict[int, Exit] = Factory(dict)

    def go_on(self, error: BaseException, handed_on: list[Any]) -> PointState:
        """The handler of `error` and the state there; raises it again when there is none.

        `handed_on` is a list with the state. What it holds in the end lives as long as the
        traceback: the generators that the frames left suspended.
        """
        state = handed_on.pop()
        frames = self.point.frames

        for index in range(self.innermost, -1, -1):
            layout = frames[index]
            if index < self.innermost:
                self._note(index, error, state)
                if (found := self._result(index, error)) is not None:
                    return take(self.rebuilder, *found[:1], state, found[1])
            if layout.instruction.handler is not None:
                drop_outer(error, self.visible_before(index))
                return take(self.rebuilder, self._handler_exit(index), state, (error,))
            if layout.generator is not None and isinstance(error, StopIteration):
                error = self._stop_iteration_error(error, index)

        handed_on += self.rebuilder.rebuild(state, range(len(self.point.carried)))
        try:
            raise error
        finally:
            del error, state

    def visible_before(self, index: int) -> int:
        """The number of native frames outside of frame `index`."""
        return sum(outer < index for outer in self.visible)

    def _note(self, index: int, error: BaseException, state: FlatState) -> None:
        if (then := self.point.frames[index].then) is not None and then.kind == "attribute":
            note(error, state[self.point.places[index].then[0]], then.name)

    def _stop_iteration_error(self, error: StopIteration, index: int) -> RuntimeError:
        """The error that CPython 3.11 makes of a StopIteration that leaves a generator; later its
        own code does it."""
        outer = self.visible_before(index)
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

    def _result(self, index: int, error: BaseException) -> tuple[Exit, FlatState] | None:
        """The exit and result if `error` ends what frame `index` waits for: the end of an
        iteration."""
        kind = self.point.frames[index].waits_with
        if not isinstance(error, CAUGHT.get(kind, ())):
            return None
        if index not in self.results:
            self.results[index] = self._result_exit(index, kind)
        is_sent = kind == "send"
        value = error.value if is_sent and isinstance(error, StopIteration) else None
        return self.results[index], (value,)

    def _result_exit(self, index: int, kind: str) -> Exit:
        draft, instr = Draft.after(self.point, index), self.point.frames[index].instruction
        if kind in ("next", "send"):
            draft.go_to(instr.target)
            if kind == "next" or not instr.arg:
                draft.stack.pop()
        if kind != "next":
            draft.push_result()
        return exit_to(draft, 1)


def _raised_at(layout: FrameLayout) -> int:
    """Return the instruction that raised first, which a RERAISE with an argument names."""
    instr = layout.instruction
    if (
        instr.op == "RERAISE"
        and instr.arg
        and isinstance(marker := layout.stack[-1 - instr.arg], RaisedAt)
    ):
        return marker.index
    return layout.pc


_PASSED: tuple[Callable[..., Any], ...] = (Propagation.go_on,)
OWN_CODES = passed_over(*_PASSED)
