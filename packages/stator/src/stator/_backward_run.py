"""Runs of a captured backward that need more than its function: callbacks, and the search for
nan."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor
from torch.autograd.variable import Variable
from torch.fx import GraphModule, Interpreter, Node

if TYPE_CHECKING:
    from stator_subgraphs import CapturedBackward


class _Engine:
    """Stands for the engine while a backward runs: callbacks for its end are collected."""

    def __init__(self, engine: Any) -> None:
        self._engine = engine
        self._task = torch._C._current_graph_task_id()
        self.callbacks: list[Callable[[], None]] = []

    def __getattr__(self, name: str) -> Any:
        return getattr(self._engine, name)

    def queue_callback(self, callback: Callable[[], None]) -> None:
        if torch._C._current_graph_task_id() == self._task:
            self.callbacks.append(callback)
        else:  # of another backward, inside this one or in another thread
            self._engine.queue_callback(callback)


@contextmanager
def final_callbacks() -> Iterator[None]:
    """Call at the end what hooks inside have queued for the end of the backward."""
    engine: Any = Variable._execution_engine
    collecting: Any = _Engine(engine)
    Variable._execution_engine = collecting
    try:
        yield
        for callback in collecting.callbacks:  # which may queue more of them
            callback()
    finally:
        Variable._execution_engine = engine


def checking_nan(captured: CapturedBackward, arguments: list[Any]) -> Sequence[Tensor | None]:
    """Run node by node; raise the error of anomaly mode for the first that gives nan."""
    module = GraphModule(torch.nn.Module(), captured.graph, "backward")
    return [*_NanCheck(module).boxed_run(arguments)]


class _NanCheck(Interpreter):
    def run_node(self, n: Node) -> Any:
        results = super().run_node(n)
        if getattr(n.target, "__module__", "") == "autograd":
            for i, result in enumerate(results):
                if isinstance(result, Tensor) and bool(result.isnan().any()):
                    name = getattr(n.target, "__name__", "")
                    raise RuntimeError(
                        f"Function '{name}' returned nan values in its {i}th output."
                    )
        return results
