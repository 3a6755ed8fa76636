"""`comptime`: a function of the user that is called while the code around it is traced, with the
trace.

    stator.comptime(lambda trace: trace.print_graph())
"""

from __future__ import annotations

import time
import types
from collections.abc import Callable
from typing import Any, TextIO

import attrs
import torch
from stator_bytecode import NULL, Frame, HandlerTable
from stator_bytecode.errors import InvalidUse, SourceSpan, StatorError
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
    """A value of the program, as it is represented in a trace."""

    tracker: VariableTracker

    def __repr__(self) -> str:
        return repr(self.as_fake()) if self.is_proxy() else self.tracker.describe()

    def python_type(self) -> type:
        return self.tracker.cls

    def is_python_constant(self) -> bool:
        return self.tracker.constant() is not MISSING

    def as_python_constant(self) -> Any:
        """Return the value; raises ValueError if it is not known while tracing."""
        if not self.is_python_constant():
            raise ValueError(f"{self.tracker.describe()} is no constant")
        return self.tracker.constant()

    def is_proxy(self) -> bool:
        """Return True for a value of the graph."""
        return hasattr(self.tracker, "traced")

    def as_proxy(self) -> Any:
        """Return the node of a value of the graph."""
        return getattr(self.tracker, "traced").node

    def as_fake(self) -> Any:
        """Return the fake tensor, or the symbol, that represents a value of the graph."""
        return getattr(self.tracker, "traced").example

    def size(self, dim: int | None = None) -> Any:
        """Return the size of a tensor, which may be symbolic."""
        return self.as_fake().size(dim)

    def is_dynamic(self) -> bool:
        """Return True for a number that is a symbol of the graph."""
        return self.is_proxy() and hasattr(self.as_fake(), "node")

    def force_static(self) -> None:
        """Make the number a constant of the graph, or the sizes of the tensor constants."""
        example = self.as_fake()
        for number in example.shape if isinstance(example, torch.Tensor) else [example]:
            int(number)  # which adds a guard


@attrs.frozen(eq=False)
class ComptimeContext:
    """A trace, at the place that it has come to; `stacklevel` counts the calling frames from it."""

    space: Space
    stacklevel: int = 0

    def graph(self) -> fx.Graph:
        """Return the graph so far."""
        recorder: Any = self.space.graph
        return recorder.current  # type: ignore[no-any-return]  # of the default graph layer

    def print_graph(self, *, verbose: bool = True, file: TextIO | None = None) -> None:
        print(self.graph(), file=file)

    def parent(self) -> ComptimeContext:
        """Return the trace as the calling frame has it."""
        return ComptimeContext(self.space, self.stacklevel + 1)

    def _frame(self, stacklevel: int) -> Frame:
        frame: Frame = self.space.machine.frames[-1 - self.stacklevel - stacklevel]
        return frame

    def _locals(self, stacklevel: int) -> dict[str, ComptimeVar]:
        frame, found = self._frame(stacklevel), {}
        for name, slot in zip(frame.code.slots, frame.slots, strict=True):
            value = getattr(slot, "content", slot)  # of a cell
            if value is not NULL and value is not None:
                found[name] = ComptimeVar(realize(value))
        return found

    def get_local(self, name: str, *, stacklevel: int = 0) -> ComptimeVar:
        """Return a local variable of the calling frame. Raises KeyError if it has no value."""
        return self._locals(stacklevel)[name]

    def print(self, value: object, *, file: TextIO | None = None) -> None:
        print(repr(value), file=file)

    def print_locals(self, *, file: TextIO | None = None, stacklevel: int = 0) -> None:
        for name, value in self._locals(stacklevel).items():
            print(f"{name} = {value!r}", file=file)

    def print_value_stack(self, *, file: TextIO | None = None, stacklevel: int = 0) -> None:
        for value in self._frame(stacklevel).stack:
            print(f"- {value!r}", file=file)

    def print_disas(self, *, file: TextIO | None = None, stacklevel: int = 0) -> None:
        """Print the instructions of the frame, with a mark at the one that has been reached."""
        frame = self._frame(stacklevel)
        for instruction in frame.code.instructions:
            mark = "-->" if instruction.index == frame.pc else "   "
            print(f"{mark} {instruction.op} {instruction.arg!r}", file=file)

    def stack(self) -> list[SourceSpan]:
        """Return the lines of the program that are under way, the calling one first."""
        frames = self.space.machine.frames[: len(self.space.machine.frames) - self.stacklevel]
        return [frame.code.span(frame.pc) for frame in reversed(frames) if not frame.hidden]

    def print_bt(self, *, file: TextIO | None = None, stacklevel: int = 0) -> None:
        for span in reversed(self.stack()[stacklevel:]):
            print(span, file=file)

    def print_guards(self, *, file: TextIO | None = None) -> None:
        for guard in self.space.every_guard():
            print(f"{guard.name} is {guard.kind.needed}", file=file)

    def assert_static(self, value: ComptimeVar) -> None:
        """Raise AssertionError for a number that is a symbol."""
        if value.is_dynamic():
            raise AssertionError(f"expected a constant, but {value} is a symbol of the graph")

    def sleep(self, seconds: float) -> None:
        time.sleep(seconds)

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
    try:
        function(ComptimeContext(t))
    except StatorError:
        raise
    except Exception as error:  # a function of the user may raise anything
        raise InvalidUse(f"a function for comptime raised {error!r}") from error
    return ConstantTracker(None)
