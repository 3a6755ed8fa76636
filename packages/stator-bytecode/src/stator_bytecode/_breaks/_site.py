"""Sites: the places of breaks, where one instruction runs natively.

`Site(point).step(*state)` runs the instruction that the innermost frame stands before, in stubs
that look like the user's frames (`_stub.py`), and gives the Point after it with its flat state. An
exception is taken to the handler that would have got it; without one it leaves, with the user's
traceback entries only. `drive` is the loop that goes on from there.

    point: f parked at g(), g before LOAD_ATTR      state: (x, f1_y, f1_stack0)
    => (point: …, g after LOAD_ATTR, (x, f1_y, attribute)), or f's `except` clause, with g gone
"""

from collections.abc import Callable, Sequence
from typing import Any, Protocol

import attrs

from stator_bytecode._breaks import _step
from stator_bytecode._breaks._layout import FrameLayout
from stator_bytecode._breaks._point import Point
from stator_bytecode._breaks._propagation import PointState
from stator_bytecode._breaks._shuffle import NO_STEP
from stator_bytecode._breaks._step import Take, Throw, ThrowingStep
from stator_bytecode._breaks._traceback import hide, passed_over
from stator_bytecode.errors import Unsupported


class StepRunner(Protocol):
    """Whatever runs natively between two graphs, as a `Site` does."""

    def step(self, *state: Any) -> PointState: ...


class Site:
    """The place of a break. Stateless but for the code that it makes at its first step; safe to
    share."""

    def __init__(self, point: Point) -> None:
        self.point = point
        self._take: Take | None = None
        self._throw: Throw | None = None
        _refuse(point)

    @property
    def layout(self) -> FrameLayout:
        return self.point.frames[-1]

    def step(self, *state: Any) -> PointState:
        """Run the instruction natively: the Point after it, and its flat state."""
        try:
            if (take := self._take) is None:
                take = self._take = _step.prepare(self.point)
            return take(state)
        except BaseException as error:
            hide(error, OWN_CODES)
            raise
        finally:
            del state  # it may hold an exception whose traceback holds this frame

    def throw(self, error: BaseException, *state: Any) -> PointState:
        """Raise `error` where the instruction stands, instead of running it: the Point of its
        handler, and its state.

        The traceback that `error` has becomes the tail of the entries of the user's frames. Without
        a handler the exception leaves, with these entries only.
        """
        try:
            if (throw := self._throw) is None:
                throw = self._throw = ThrowingStep(self.point).throw
            return throw(error, state)
        except BaseException as raised:
            hide(raised, OWN_CODES)
            raise
        finally:
            del state  # like `error`, whose traceback may hold this frame
            del error

    def __repr__(self) -> str:
        raw, instr = self.layout.raw, self.layout.instruction
        return f"<Site {raw.co_qualname}:{instr.positions[0]} {instr.op}>"


def _refuse(point: Point) -> None:
    op = point.frames[-1].instruction.op
    if op in NO_STEP and not _leaves(point, op):
        raise Unsupported("no-native-step", f"{op}: {NO_STEP[op]}")


def _leaves(point: Point, op: str) -> bool:
    """Return True if completing the caller's instruction runs something natively."""
    if len(point.frames) < 2:
        return False
    kind = point.frames[-2].waits_with
    if point.frames[-1].generator is not None:
        return (op, kind) in {("RETURN_VALUE", "value"), ("YIELD_VALUE", "close")}
    return op == "RETURN_VALUE" and kind != "send"


@attrs.frozen(eq=False)
class Arrival:
    """The site of a state that is at its Point already: nothing is to be run before the
    continuation."""

    point: Point

    def step(self, *state: Any) -> PointState:
        return self.point, state


@attrs.define(eq=False)
class Goto:
    """Go on at `site` with `state`."""

    site: StepRunner
    state: Sequence[Any]

    def take(self) -> Sequence[Any]:
        """The state, kept here no longer: frames that hold a Goto are held by every exception that
        passes them."""
        state = self.state
        self.state = ()
        return state


Dispatch = Callable[[Point, list[Any]], Any]
"""A function that runs the continuation of a Point and returns a `Goto`, if it broke again, or the
final value.

The list is its own: it empties the list, so that objects die when the program releases them.
"""


def drive(site: StepRunner, state: Sequence[Any], dispatch: Dispatch) -> Any:
    """Step, continuation, step … until a continuation gives a value. One Python frame, however many
    breaks there are.

    A state that is a list is emptied, so that nothing of it is kept alive here or by the caller.
    """
    try:
        while True:
            point, after = site.step(*state)
            if type(state) is list:
                state.clear()
            state = list(after)
            del after
            result = dispatch(point, state)
            # this frame may live as long as an exception that passed through the step
            state.clear()
            if type(result) is not Goto:
                return result
            site, state = result.site, result.take()
            del result
    except BaseException as error:
        hide(error, OWN_CODES)
        if type(state) is list:
            state.clear()
        state = ()
        raise


OWN_CODES = passed_over(Site.step, Site.throw, drive, _step.prepare) | _step.OWN_CODES
