"""The innermost frames of a Point, run natively to their end: a call that was traced up to here is
finished by Python.

    frames F0 parked at `g()`, F1 of g, F2 before its instruction;  first = 1
    =>  stub of F0: calls F1, which calls F2, each entered at its middle;
        (F0 after the call, its state)

The frames outside of `first` are stubs, as in a step, and go on as data. Those from `first` on are
functions of the original code, as in a native continuation, and take their values out of the state:
objects die when the program drops them.
"""

from typing import Any

from stator_bytecode._breaks._exit import FlatState, materialized
from stator_bytecode._breaks._native_stack import NativeStack
from stator_bytecode._breaks._plain import rest_of
from stator_bytecode._breaks._point import Point
from stator_bytecode._breaks._propagation import PointState, Propagation, take
from stator_bytecode._breaks._rebuild import Rebuilder
from stator_bytecode._breaks._site import Arrival, Goto
from stator_bytecode._breaks._traceback import hide, passed_over


class InnermostFrames:
    """The frames of `point` from number `first` on. Raises Unsupported if they cannot run natively.

    Generators carried as frame state are made objects before.
    """

    def __init__(self, point: Point, first: int) -> None:
        self.start, self.first = point, first
        carried = tuple(range(len(point.carried)))
        self.carried = carried
        self.carrier = Rebuilder(point)
        self.enter = materialized(point, carried)
        self.point = inner = self.enter.point
        self.kept = inner.places[first].start
        self.lost = (None,) * (inner.count - self.kept)
        stack = NativeStack(inner, rest_of(inner, first), first)
        self.run, self.exits = stack.run, stack.exits
        self.rebuilder = Rebuilder(inner)
        self.propagation = Propagation(inner, stack.innermost, stack.visible, self.rebuilder)

    def consume(self, state: list[Any]) -> Goto:
        """Run the frames, and return where their caller goes on. The state is taken out of the
        list."""
        full = [self.enter.pick((*state, *self.carrier.rebuild(state, self.carried)))]
        state.clear()
        outer = full[0][: self.kept]
        try:
            result = self.run(full.pop())
        except BaseException as error:
            hide(error, OWN_CODES)
            handed_on: list[Any] = [(*outer, *self.lost)]
            outer = ()  # it may hold `error`, whose traceback holds this frame
            return arrived(self.propagation.go_on(error, handed_on))
        left: FlatState = (*outer, *self.lost)
        taken = self.exits[result[-1]]
        if taken.ends_generators:
            return arrived(take(self.rebuilder, taken, left, result[:-1]))
        return arrived((taken.point, taken.pick(left + result)))


def arrived(step: PointState) -> Goto:
    point, state = step
    return Goto(Arrival(point), list(state))


OWN_CODES = passed_over(InnermostFrames.consume)
