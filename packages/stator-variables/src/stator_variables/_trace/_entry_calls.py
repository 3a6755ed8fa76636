"""Native calls that an entry makes once per call, beside its graph, and their lines.

    drawn0 = uniform(v0, 0.0, 1.0)       # ahead of the graph, where the program made the call
    g = graph(x, drawn0)

What a call gives is new each time: an input of the graph, and no fact that a guard can use. Streams
of random numbers are used in this way (`_library/_random`). `_tensors/_entry_values` makes the
calls, and the trackers of what they give.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, ClassVar

import torch
from attrs import Factory, define, frozen
from stator_guards import Renderer, Source, State

from stator_variables._runtime._literals import has_no_literal
from stator_variables._trace._capture_state import CaptureState, Phase

Early = Any
"""An argument that is there before the graph runs: a Source, a Literal, or a tuple or list of
these."""


@frozen(eq=False)
class EntryValue(Source):
    """A local variable of the entry, with what a call gave. No guard can use it."""

    number: int

    @property
    def name(self) -> str:
        return f"drawn{self.number}"

    def expression(self, render: Renderer) -> str:
        return self.name

    def evaluate(self, state: State) -> Any:
        return state[self.name]


@frozen(eq=False)
class Literal:
    value: Any


@frozen(eq=False)
class EntryCall:
    """One native call of an entry, which may change a state of the process."""

    function: Any
    args: tuple[Early, ...]
    kwargs: Mapping[str, Early]
    state: Source | None  # the object whose state the call uses
    value: EntryValue  # the result
    is_late: bool  # made after the graph
    is_of_torch: bool  # the state is torch's own, which the graph may change, too
    changes: bool  # False: the call only reads the state
    begun: int  # how many instructions of the trace had begun
    save: Callable[[Any], Callable[[], object]]  # a function of the object, to put its state back

    @property
    def key(self) -> Source | None:
        """The identity of a state: the object, or what the call makes; None for torch's own."""
        if self.is_of_torch:
            return None
        return self.value if self.state is None else self.state


def is_entry_value(source: Source | None) -> bool:
    """Return True if a value comes from a call, and not from the state at the start."""
    if source is None:
        return False
    return type(source) is EntryValue or any(map(is_entry_value, source.children))


@define(eq=False)
class EntryCalls(CaptureState):
    """The calls of one trace, in program order."""

    phase: ClassVar[Phase] = Phase.AROUND_GRAPH
    may_repeat: ClassVar[bool] = True  # who adds a call refuses bodies that run again

    calls: list[EntryCall] = Factory(list)
    count: int = 0
    """The number of the calls that were ever added, rolled back ones included."""

    @property
    def early(self) -> list[EntryCall]:
        return [call for call in self.calls if not call.is_late]

    @property
    def late(self) -> list[EntryCall]:
        return [call for call in self.calls if call.is_late]

    def emit(self, e: Any) -> None:
        e.ahead += lines_of(e, self.early)
        e.behind += lines_of(e, self.late)

    def moment(self) -> tuple[Any, ...] | None:
        return None if self.calls else ()

    def needs_guard(self, t: Any, source: Source) -> bool:
        if self.calls and is_entry_value(source):
            detail = "a decision by a value that is drawn at random on each call"
            raise t.unsupported("random-value", detail)
        return True

    def bound_to_process(self) -> str:
        return ""


# -- the lines of the entry ------------------------------------------------------------------------
def lines_of(e: Any, calls: Sequence[EntryCall]) -> Iterator[str]:
    """Yield one line per call, for the emitter `e` of an entry."""
    for each in calls:
        given = [_text(e, part) for part in each.args]
        given += [f"{name}={_text(e, part)}" for name, part in each.kwargs.items()]
        yield f"{each.value.name} = {e.capture(each.function)}({', '.join(given)})"


def _text(e: Any, part: Early) -> str:
    if isinstance(part, tuple | list):
        items = "".join(f"{_text(e, item)}, " for item in part)
        return f"({items})" if isinstance(part, tuple) else f"[{items}]"
    if isinstance(part, Literal):
        value = part.value
        is_plain = type(value) in (int, float, str, bytes, bool, type(None))
        if is_plain and not has_no_literal(value):
            return repr(value)
        is_dtype = isinstance(value, torch.dtype)
        hint = repr(value).removeprefix("torch.") if is_dtype else type(value).__name__
        return str(e.capture(value, hint))
    return str(e.load(part))
