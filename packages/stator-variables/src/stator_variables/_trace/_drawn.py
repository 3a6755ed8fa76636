"""Steps on streams of random numbers, as data: see `_streams`, which makes them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from attrs import frozen
from stator_guards import Renderer, Source, State

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
