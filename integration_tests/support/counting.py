"""A backend that does nothing but remember the graphs it was given; the same one for stator and for
torch.compile."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import attrs
import torch


@attrs.define(eq=False)
class Counting:
    """Every graph in the order of compilation; each runs as it is."""

    graphs: list[torch.fx.GraphModule] = attrs.field(factory=list)

    def __call__(
        self, graph: torch.fx.GraphModule, inputs: list[Any], **options: Any
    ) -> Callable[..., Any]:
        self.graphs.append(graph)
        return graph.forward

    @property
    def count(self) -> int:
        return len(self.graphs)


def graphs_of_torch_compile(fn: Callable[..., Any], *args: Any, **kwargs: Any) -> int:
    """How many graphs torch.compile makes for one call."""
    torch.compiler.reset()
    counting = Counting()
    torch.compile(fn, backend=counting)(*args, **kwargs)
    torch.compiler.reset()
    return counting.count
