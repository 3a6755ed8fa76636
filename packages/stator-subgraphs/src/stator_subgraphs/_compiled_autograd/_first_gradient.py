"""Accumulation of gradients as part of a graph, for hooks that follow it.

The first gradient of a variable becomes its `.grad` without a copy if nothing else has its memory,
as in the engine; the graph shows that when it is complete.
"""

from collections import defaultdict
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor
from torch._prims_common import is_non_overlapping_and_dense_or_false
from torch.fx import Graph, Node

from stator_subgraphs._mutation import storage_of


def accumulated(variable: Tensor, gradient: Tensor | None, is_hooked: bool) -> None:
    """Add a gradient to `variable.grad`, as the engine does where others refer to the gradient."""
    if gradient is None:
        return

    if variable.grad is None:
        variable.grad = _first_gradient(variable, gradient)
    else:
        variable.grad.add_(gradient)


def _copied(variable: Tensor, gradient: Tensor) -> Tensor:
    """Return the first gradient in a tensor of its own.

    Hooks may write to it, which the gradient must not show where others have it.
    """
    if gradient.layout is not torch.strided:
        raise NotImplementedError("a gradient that is sparse")
    if is_non_overlapping_and_dense_or_false(variable):
        copied = gradient.new_empty_strided(
            variable.size(), variable.stride(), dtype=variable.dtype
        )
        return copied.copy_(gradient)
    return gradient.clone(memory_format=torch.contiguous_format)


def in_graph(target: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function that a trace records as one operator."""

    def call(*args: object, **keywords: object) -> Any:
        return target(*args, **keywords)

    call.__name__ = call.__qualname__ = target.__name__
    call.__module__ = "autograd"
    call._stator_in_graph = True  # type: ignore[attr-defined]
    return call


_first_gradient = in_graph(_copied)


def take_first_gradients(graph: Graph) -> None:
    """Remove the copies that cannot be distinguished from the gradient itself."""
    copies = graph.find_nodes(op="call_function", target=_first_gradient)
    if not copies:
        return

    order = {node: i for i, node in enumerate(graph.nodes)}
    sharing: defaultdict[int, list[Node]] = defaultdict(list)
    for node in graph.nodes:
        if isinstance(example := node.meta.get("example_value"), Tensor):
            sharing[storage_of(example)].append(node)
    for copy in copies:
        _, gradient = copy.args
        relatives = sharing[storage_of(gradient.meta["example_value"])]
        if _is_like(copy, gradient) and _ends_at(copy, gradient, relatives, order):
            copy.target, copy.args = _detached, (gradient,)


_detached = in_graph(Tensor.detach)


def _is_like(copy: Node, gradient: Node) -> bool:
    """Return True if the gradient has the layout and the type of the copy, whatever its sizes."""
    one, other = (node.meta["example_value"] for node in (copy, gradient))
    numbers = [*one.shape, *other.shape, *one.stride(), *other.stride()]
    is_static = all(isinstance(number, int) for number in numbers)
    return is_static and one.stride() == other.stride() and one.dtype == other.dtype


def _ends_at(copy: Node, gradient: Node, relatives: Sequence[Node], order: Any) -> bool:
    """Return True if nothing uses the memory of the gradient besides the copy, from there on."""
    if len(gradient.users) > 1 or any(node.op == "placeholder" for node in relatives):
        return False
    later = [user for node in relatives for user in node.users if user is not copy]
    return all(order[user] < order[copy] for user in later)
