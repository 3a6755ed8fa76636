"""Steps on streams of random numbers, and their lines in an entry: see `_streams`, which makes
them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, ClassVar

import torch
from attrs import Factory, define, frozen
from stator_guards import Renderer, Source, State

from stator_variables._runtime._literals import has_no_literal
from stator_variables._trace._capture_state import CaptureState, Phase
from stator_variables._trace._graph import GraphValue

Early = Any
"""An argument that is there before the graph runs: a Source, a Literal, or a tuple or list of
these."""


@frozen(eq=False)
class DrawnSource(Source):
    """A local variable of the entry, with what a step on a stream gave. No guard can use it."""

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
class Step:
    """One native call on a stream of random numbers."""

    function: Any
    args: tuple[Early, ...]
    kwargs: Mapping[str, Early]
    stream: Source | None  # what owns the stream
    drawn: DrawnSource  # what it gives
    is_late: bool  # made after the graph
    is_of_torch: bool  # the stream is that of torch's own generators
    changes: bool  # False: it only reads the state
    begun: int  # how many instructions of the trace had begun

    @property
    def key(self) -> Source | None:
        """The identity of a stream: the owner, or what the step makes; None for torch's own
        generators."""
        if self.is_of_torch:
            return None
        return self.drawn if self.stream is None else self.stream


def is_drawn(source: Source | None) -> bool:
    """Return True if a value comes from a step, and not from the state at the start."""
    if source is None:
        return False
    return type(source) is DrawnSource or any(map(is_drawn, source.children))


@define(eq=False)
class Streams(CaptureState):
    """The steps of one trace, in program order."""

    phase: ClassVar[Phase] = Phase.AROUND_GRAPH
    may_repeat: ClassVar[bool] = True  # bodies that run again are refused with each step

    steps: list[Step] = Factory(list)
    count: int = 0
    """The number of the steps that were ever made, rolled back ones included."""

    @property
    def early(self) -> list[Step]:
        return [step for step in self.steps if not step.is_late]

    def emit(self, e: Any) -> None:
        e.ahead += lines_of(e, self.early)
        e.behind += lines_of(e, [step for step in self.steps if step.is_late])

    def moment(self) -> tuple[Any, ...] | None:
        return None if self.steps else ()

    def needs_guard(self, t: Any, source: Source) -> bool:
        if self.steps and is_drawn(source):
            detail = "a decision by a value that is drawn at random on each call"
            raise t.unsupported("random-value", detail)
        return True

    def check_operator(self, t: Any, traced: GraphValue) -> None:
        if any(step.is_late for step in self.steps) and t.graph.may_draw(traced):
            detail = "random numbers that are drawn after a step on torch's own generators"
            raise t.unsupported("random-stream", detail)

    def bound_to_process(self) -> str:
        return ""


# -- the lines of the entry ------------------------------------------------------------------------
def lines_of(e: Any, steps: Sequence[Step]) -> Iterator[str]:
    """Yield one line per step, for the emitter `e` of an entry."""
    for each in steps:
        given = [_text(e, part) for part in each.args]
        given += [f"{name}={_text(e, part)}" for name, part in each.kwargs.items()]
        yield f"{each.drawn.name} = {e.capture(each.function)}({', '.join(given)})"


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
