"""A backend whose graphs return outputs that were cached from a real run.

What remains of a call is what the compiler added to the graph. A graph runs for real in the call in
which it was compiled, and its outputs are kept in order; later calls return them in the same order,
starting again after the last. In-place writes of the graph to its inputs happen in the real run
only, under either compiler; later calls count them, as the real ones would.
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable, Sequence
from typing import Any

import attrs
import torch


@attrs.define(eq=False)
class RecordedGraph:
    """The outputs of one graph. ``next_output`` is None while they are being recorded; ``written``
    has the position of an input for each write to one."""

    forward: Callable[..., Any]
    run: Callable[..., Any] | None = None
    outputs: list[Any] = attrs.field(factory=list)
    inputs: Sequence[Any] = ()
    written: list[int] = attrs.field(factory=list)
    next_output: Callable[[], Any] | None = None

    def replay(self) -> None:
        """Return the recorded outputs from now on, if there are any."""
        if self.outputs and self.next_output is None:
            self.next_output = itertools.cycle(self.outputs).__next__

    def record(self) -> None:
        """Forget the recorded outputs and run the graph for real in the next call."""
        self.outputs = []
        self.next_output = None


@attrs.define(eq=False)
class Replay:
    """The backend. ``real_seconds`` is the time that graphs ran for real since it was last
    taken."""

    graphs: list[RecordedGraph] = attrs.field(factory=list)
    real_seconds: float = 0.0

    def __call__(
        self, graph: torch.fx.GraphModule, inputs: list[Any], **options: Any
    ) -> Callable[..., Any]:
        recorded = RecordedGraph(graph.forward)

        def run(*inputs: Any) -> Any:
            if recorded.next_output is not None:
                if recorded.written:
                    torch._C._increment_version([inputs[i] for i in recorded.written])
                return recorded.next_output()
            return self._run_for_real(recorded, inputs)

        recorded.run = run
        self.graphs.append(recorded)
        return run

    def _run_for_real(self, recorded: RecordedGraph, inputs: tuple[Any, ...]) -> Any:
        start = time.process_time()
        before = [_version(value) for value in inputs]
        output = recorded.forward(*inputs)
        recorded.outputs.append(output)
        counts = [_version(value) - count for value, count in zip(inputs, before, strict=True)]
        recorded.written = [i for i, count in enumerate(counts) for _ in range(count)]
        recorded.inputs = inputs if recorded.written else (None,) * len(inputs)
        self.real_seconds += time.process_time() - start
        return output

    def take_real_seconds(self) -> float:
        seconds, self.real_seconds = self.real_seconds, 0.0
        return seconds

    def end_call(self) -> None:
        """Replay from now on what ran for real in the call that has ended."""
        for recorded in self.graphs:
            recorded.replay()

    def record_next_call(self) -> None:
        """Run every graph for real in the next call, and record it anew."""
        for recorded in self.graphs:
            recorded.record()

    def graph_calls(self) -> int:
        """Return how many graph calls were recorded last."""
        return sum(len(recorded.outputs) for recorded in self.graphs)

    def seconds_per_call(self) -> float:
        """Return the time that the replaying graphs themselves take in one recorded call."""
        return sum(self._seconds(recorded) for recorded in self.graphs)

    def _seconds(self, recorded: RecordedGraph, repeats: int = 200, rounds: int = 10) -> float:
        if recorded.next_output is None or recorded.run is None:
            return 0.0

        run, inputs = recorded.run, recorded.inputs
        best = float("inf")
        for _ in range(rounds):
            start = time.process_time()
            for _ in range(repeats):
                run(*inputs)
            best = min(best, time.process_time() - start)
        return best / repeats * len(recorded.outputs)


def _version(value: object) -> int:
    is_counted = isinstance(value, torch.Tensor) and not value.is_inference()
    return value._version if is_counted else 0  # type: ignore[attr-defined]
