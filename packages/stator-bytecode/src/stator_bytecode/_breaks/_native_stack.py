"""The natively visible stack of a step: one stub per visible frame, nested, and the exits of the
innermost one.

    F0 call stub  →  F1 call stub  →  F2 step stub        (hidden frames have none)

At RETURN_VALUE the innermost stub returns, and its caller's stub completes the instruction that
waits for the value.
"""

from collections.abc import Callable

from stator_bytecode._breaks._complete import FrameCompletion, write_completion
from stator_bytecode._breaks._exit import Draft, Exit, exit_to
from stator_bytecode._breaks._layout import NULL_KIND, FrameLayout
from stator_bytecode._breaks._native_frame import NativeFrame
from stator_bytecode._breaks._point import Point
from stator_bytecode._breaks._shape import StepEffect, null_of, shapes_of
from stator_bytecode._breaks._stub import (
    FRAME_BOUND,
    Stub,
    call_stub,
    leave,
    merged_step_stub,
    raise_stub,
    return_stub,
    step_stub,
)


class NativeStack:
    """`run(state)` gives the results and the number of the exit. `innermost` is the frame that goes
    on, or raises.

    With `rest`, a function of the state that runs the frames from number `first` on, `innermost` is
    their caller.
    """

    def __init__(self, point: Point, rest: Stub | None = None, first: int = 0) -> None:
        self.point = point
        self.exits: list[Exit] = []
        self.visible = [index for index, layout in enumerate(point.frames) if not layout.hidden]
        # whether an app-level frame, in place of C code, runs natively as the innermost
        self.shows_hidden = False
        last = len(point.frames) - 1
        if rest is not None:
            self.innermost = self.outside = first - 1
            stub = self._completing(rest)
        elif point.frames[last].instruction.op in ("RETURN_VALUE", "YIELD_VALUE"):
            self.innermost = self.outside = last - 1
            stub = self._completing(return_stub(point.frames[last], point.places[last]))
        else:
            self.innermost = self.outside = last
            stub = self._stepping()
        self.run: Stub = _in_callers(point, self.outside, stub)

    def _stepping(self) -> Stub:
        layout, places = self.point.frames[-1], self.point.places[self.innermost]
        shapes = shapes_of(layout.instruction)
        self._add_exit(shapes, False, null_of(layout))
        if layout.instruction.op == "CHECK_EG_MATCH":
            self._add_exit(shapes, False, None, handled=1)
        elif shapes.jumps:
            self._add_exit(shapes, True, None)
        host = self._host()
        # that adds no entry
        self.shows_hidden = host is None and layout.hidden and layout.instruction.op != "RERAISE"
        if host is None:
            return step_stub(layout, places, places.handled)
        self.outside = host
        handled = _handled_in(self.point, host, self.innermost)
        return merged_step_stub(
            self.point.frames[host], self.point.places[host], layout, places, handled
        )

    def _host(self) -> int | None:
        """The frame in which a hidden frame's instruction runs; None: in its own."""
        layout = self.point.frames[-1]
        if not layout.hidden or layout.instruction.op in FRAME_BOUND or not self.visible:
            return None
        return self.visible[-1]

    def _add_exit(
        self, shapes: StepEffect, jump: bool, null: str | None, handled: int | None = None
    ) -> None:
        """`handled`: which of the values made is the exception being handled from then on."""
        used, kept, made = shapes.used, shapes.kept[jump], shapes.made[jump]
        draft = Draft.after(self.point, self.innermost)
        lowest = used[0] if used else 0
        if len(used) == lowest:
            del draft.stack[len(draft.stack) - lowest + kept :]
        else:  # the container lies deeper, and stays; what is added leaves
            del draft.stack[len(draft.stack) - used[1] :]
        _push_made(draft, made, null)
        if handled is not None:
            draft.handled = self.point.count + handled
        self._finish_exit(draft, jump, made)

    def _finish_exit(self, draft: Draft, jump: bool, made: int) -> int:
        if jump:
            draft.go_to(self.point.frames[self.innermost].instruction.target)
        self.exits.append(exit_to(draft, made))
        return len(self.exits) - 1

    def _completing(self, inner: Stub) -> Stub:
        """`inner` gives its value to the frame that waits, which does with it what its instruction
        does."""
        point = self.point
        callee, layout = point.frames[self.innermost + 1], point.frames[self.innermost]
        frame = NativeFrame(layout, point.places[self.innermost])
        begin = frame.open(frame.places.handled)
        if callee.generator is not None:
            _raise_end(frame, callee, inner)
        else:
            write_completion(FrameCompletion(frame, inner, self._leave(frame)))
        frame.clean_up(frame.places.handled, frame.glue.raws[begin:])
        return frame.function()

    def _leave(self, frame: NativeFrame) -> Callable[..., None]:
        def go_on(jump: bool, popped: int = 0, made: int = 0, null: str | None = None) -> None:
            draft = Draft.after(self.point, self.innermost)
            del draft.stack[len(draft.stack) - popped :]
            _push_made(draft, made, null)
            frame.glue.constant(self._finish_exit(draft, jump, made))
            frame.glue.emit("BUILD_TUPLE", made + 1)
            leave(frame, frame.places.handled)

        return go_on


class ThrowingStack:
    """`run(state + (error,))` raises `error` in the innermost frame that plain Python shows
    there."""

    def __init__(self, point: Point) -> None:
        last = len(point.frames) - 1
        is_left = point.frames[last].instruction.op in ("RETURN_VALUE", "YIELD_VALUE")
        self.innermost = last - 1 if is_left and last else last
        self.visible = [
            index for index in range(self.innermost + 1) if not point.frames[index].hidden
        ]

        host = self.visible[-1] if self.visible else self.innermost
        handled = _handled_in(point, host, self.innermost)
        stub = raise_stub(point.frames[host], point.places[host], handled, point.count)
        self.run: Stub = _in_callers(point, host, stub)


def _handled_in(point: Point, outer: int, inner: int) -> int | None:
    """The place of the exception that frame `inner`, which runs natively in frame `outer`, is
    handling."""
    handled = [
        places.handled for places in point.places[outer : inner + 1] if places.handled is not None
    ]
    return handled[-1] if handled else None


def _in_callers(point: Point, outside: int, stub: Stub) -> Stub:
    """Nest the stub of frame `outside` in those of its visible callers."""
    for index in reversed(range(outside)):
        if not point.frames[index].hidden:
            stub = call_stub(point.frames[index], point.places[index], stub)
    return stub


def _push_made(draft: Draft, made: int, null: str | None) -> None:
    if null == "before":
        draft.stack.append((NULL_KIND, None))
    for number in range(made):
        draft.push_result(number)
        if null == "between" and not number:
            draft.stack.append((NULL_KIND, None))
    if null == "after":
        draft.stack.append((NULL_KIND, None))


def _raise_end(frame: NativeFrame, callee: FrameLayout, inner: Stub) -> None:
    """Raise what the end of a generator is to `next` or `send`, and its yield to `close`."""
    glue = frame.glue
    glue.call(inner, frame.hand_on)
    glue.call_on_top(_stop if callee.instruction.op == "RETURN_VALUE" else _ignored_exit)
    glue.emit("RAISE_VARARGS", 1)


def _stop(value: object) -> StopIteration:
    return StopIteration() if value is None else StopIteration(value)


def _ignored_exit(value: object) -> RuntimeError:
    return RuntimeError("generator ignored GeneratorExit")
