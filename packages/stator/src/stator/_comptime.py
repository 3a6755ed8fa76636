"""`comptime`: a function of the user that is called while the code around it is traced, with the
trace.

    stator.comptime(lambda trace: trace.print_graph())
"""

from __future__ import annotations

import types
from collections.abc import Callable
from typing import Any

import attrs
from stator_bytecode import HandlerTable
from stator_bytecode.errors import SourceSpan
from stator_variables import (
    MISSING,
    ConstantTracker,
    FunctionTracker,
    Space,
    VariableTracker,
    is_a,
    realize,
)
from torch import fx

handlers: HandlerTable[Any, Any] = HandlerTable("function of stator")


@attrs.frozen(eq=False)
class ComptimeVar:
    """A value of the program, as a trace knows it."""

    tracker: VariableTracker

    def python_type(self) -> type:
        return self.tracker.cls

    def is_python_constant(self) -> bool:
        return self.tracker.constant() is not MISSING

    def as_python_constant(self) -> Any:
        """Return the value; raises ValueError if it is not known while tracing."""
        if not self.is_python_constant():
            raise ValueError(f"{self.tracker.describe()} is no constant")
        return self.tracker.constant()

    def as_fake(self) -> Any:
        """Return the fake tensor, or the symbol, that represents a value of the graph."""
        traced: Any = getattr(self.tracker, "traced")
        return traced.example


@attrs.frozen(eq=False)
class ComptimeContext:
    """A trace, at the place that it has come to."""

    space: Space

    def graph(self) -> fx.Graph:
        """Return the graph so far."""
        recorder: Any = self.space.graph
        return recorder.current  # type: ignore[no-any-return]  # of the default graph layer

    def print_graph(self) -> None:
        print(self.graph())

    def get_local(self, name: str) -> ComptimeVar:
        """Return a local variable of the calling frame. Raises KeyError if it has no value."""
        frame = self.space.machine.frames[-1]
        found = dict(zip(frame.code.slots, frame.slots, strict=True)).get(name)
        value = getattr(found, "content", found)  # of a cell
        if value is None:
            raise KeyError(name)
        return ComptimeVar(realize(value))

    def stack(self) -> list[SourceSpan]:
        """Return the lines of the program that are under way, the calling one first."""
        frames = self.space.machine.frames
        return [frame.code.span(frame.pc) for frame in reversed(frames) if not frame.hidden]

    def print_guards(self) -> None:
        for guard in self.space.guards.values():
            print(f"{guard.name} is {guard.kind.needed}")

    def graph_break(self, msg: str = "") -> None:
        """Break the graph here."""
        detail = ": ".join(["a call of graph_break()", *filter(None, [msg])])
        raise self.space.unsupported("graph-break", detail, "remove the call to keep one graph")


def comptime(fn: Callable[[ComptimeContext], object], fallback_fn: Any = None) -> None:
    """Call `fn` with the trace where compiled code is traced; in eager code call `fallback_fn`.

    A function that is made in the compiled code must not have closures.
    """
    if fallback_fn is not None:
        fallback_fn()


@handlers.handles(comptime)
def at_compile_time(t: Space, args: list[Any], kwargs: dict[str, Any]) -> Any:
    given: VariableTracker = [*args, *kwargs.values()][0]
    function = given.real
    if function is MISSING and is_a(given, FunctionTracker) and not given.closure:
        function = types.FunctionType(given.code, given.globals.real, given.name)
    if function is MISSING:
        raise t.unsupported("comptime", "a function for comptime that has closures")
    function(ComptimeContext(t))
    return ConstantTracker(None)
