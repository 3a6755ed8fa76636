"""Results whose history a backward inside the graph has freed, such as the loss of a training step.

A compiler computes them without a history. In the program they have one, which raises when somebody
differentiates it again.
"""

from collections.abc import Sequence
from functools import cache
from typing import Any

import torch
from torch import Tensor
from torch.fx import GraphModule, Node

from stator_backends._alias import is_leaf
from stator_backends._backend import Compiled
from stator_backends._contracts._versions import set_versions
from stator_backends._graph_facts import example_of, results_of


def cut_freed_history(gm: GraphModule) -> list[int]:
    """Contract: results whose history a backward inside of the graph has freed raise when they are
    differentiated again.

    The graph returns them without a history; their positions are returned.
    """
    if not any("frees_history" in node.meta for node in gm.graph.nodes):
        return []

    output = gm.graph.output_node()
    results = results_of(gm)
    detached: dict[Node, Node] = {}
    positions = [i for i, node in enumerate(results) if _has_history(example_of(node))]
    for i in positions:
        node = results[i]
        if node not in detached:
            with gm.graph.inserting_before(output):
                detached[node] = gm.graph.call_method("detach", (node,))
            detached[node].meta |= {**node.meta, "example_value": example_of(node).detach()}
        results[i] = detached[node]

    output.args = (tuple(results),)
    gm.recompile()
    return positions


def _has_history(example: object) -> bool:
    return isinstance(example, Tensor) and example.requires_grad and not is_leaf(example)


def with_freed_history(compiled: Compiled, positions: Sequence[int]) -> Compiled:
    """Wrap ``compiled``: give the results at these positions a history that is freed."""

    def call(*inputs: object) -> Sequence[Any]:
        results = list(compiled(*inputs))
        with torch.enable_grad():
            for i in positions:
                if not results[i].requires_grad:  # one tensor may be several results
                    results[i] = _freed(results[i])
        return results

    return call if positions else compiled


def _freed(result: Tensor) -> Any:
    version = result._version
    freed = _Freed.apply(result, _start())  # type: ignore[no-untyped-call]
    set_versions((freed,), (version,))
    return freed


class _Freed(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, result: Tensor, start: Tensor) -> Tensor:
        if result._is_view():  # its base has no history
            return result.view_as(result)
        ctx.mark_dirty(result)
        return result

    @staticmethod
    def backward(ctx: object, *gradients: object) -> Any:
        """Raise what autograd raises for a history that it has freed."""
        with torch.enable_grad():
            squared: Any = _start().square()
        return [torch.autograd.grad(squared, _start()) for _ in range(2)]


@cache
def _start() -> Tensor:
    with torch.inference_mode(False):
        return torch.zeros((), requires_grad=True)
