"""What an outside distribution can add to stator: backends by name, an operator, a tracker with its
guard and handlers, a layer in place of ours."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import attrs
import torch
from stator_backends import BackendSpec
from stator_guards import Guard, GuardSet, compile_guards

from ._array import ArrayTracker, ContentIs, builders, handlers
from ._defects import DEFECTS, defective, interpreted
from ._operator import ENTERED, operators, region

__all__ = [
    "DEFECTS",
    "ENTERED",
    "SEEN",
    "CountingGuards",
    "compile_graph",
    "defective",
    "interpreted",
]
__all__ += ["operators", "region"]
__all__ += ["LIMITED", "ArrayTracker", "ContentIs", "builders", "handlers", "limited"]

SEEN: list[torch.fx.GraphModule] = []


def compile_graph(graph: torch.fx.GraphModule, inputs: list[Any]) -> Callable[..., Any]:
    """The backend ``example_plugin``: remembers the graph and runs it as it is."""
    SEEN.append(graph)
    return graph.forward


LIMITED: list[list[torch.Size]] = []


@attrs.frozen
class Limited:
    """The backend ``example_limited``, which takes neither symbolic sizes nor gradients."""

    spec: BackendSpec = attrs.field(
        default=BackendSpec("example_limited", symbolic_shapes=False, training=False)
    )

    def __call__(self, graph: torch.fx.GraphModule, inputs: list[Any]) -> Callable[..., Any]:
        assert not any(each.requires_grad for each in inputs)
        LIMITED.append([each.shape for each in inputs])
        return graph.forward


limited = Limited()


@attrs.define
class CountingGuards:
    """A guard compiler that counts guards and leaves the rest to the one it wraps."""

    count: int = 0

    def __call__(self, guards: list[Guard], parameters: tuple[str, ...]) -> GuardSet:
        self.count += len(guards)
        return compile_guards(guards, parameters)
