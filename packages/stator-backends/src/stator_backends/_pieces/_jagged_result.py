"""Jagged results with gradients: a compiler gives their values, and the driver makes the tensors.

    relu = linear.relu()              values = relu.values()                  compiled
    return (relu,)                    made = jagged_view(values, offsets)     native
                                      return (made,)

AOTAutograd guesses the class of the gradient of a result that is a wrapper tensor. Values are plain
tensors, and the view is differentiated by autograd itself.
"""

from __future__ import annotations

import sys
from typing import Any

import attrs
import torch
from torch import Tensor
from torch.fx import GraphModule, Node

from stator_backends._graph_facts import example_of, results_of
from stator_backends._pieces._division import NATIVE


@attrs.frozen(eq=False)
class _Layout:
    """The parts of a jagged tensor besides its values. `owner` has these offsets."""

    offsets: Node | None
    owner: Node | None
    ragged: int


def give_values(gm: GraphModule) -> None:
    """Let the graph give the values of jagged results with gradients, and make the results of
    them, where their offsets are known."""
    results = results_of(gm)
    layouts: dict[Node, _Layout] = {}
    for node in results:
        if isinstance(node, Node) and node.op != "placeholder" and _is_trained(example_of(node)):
            layout = _layout_of(gm, node)
            if layout is not None:
                layouts[node] = layout
    if not layouts:
        return

    output = gm.graph.output_node()
    with gm.graph.inserting_before(output):
        made = {node: _made(gm, node, layout) for node, layout in layouts.items()}
    output.args = (tuple(made.get(node, node) for node in results),)
    gm.recompile()


def _is_trained(example: Any) -> bool:
    is_jagged = isinstance(example, Tensor) and example.layout is torch.jagged
    return is_jagged and example.requires_grad


def _layout_of(gm: GraphModule, node: Node) -> _Layout | None:
    """Find what has the offsets of a result; None if nothing has, or if there is more to it."""
    example: Any = example_of(node)
    if example._lengths is not None:
        return None

    for other in gm.graph.nodes:
        value: Any = example_of(other)
        if value is example._offsets:
            return _Layout(other, None, example._ragged_idx)
        is_input = other.op == "placeholder" and getattr(value, "layout", None) is torch.jagged
        if is_input and value._offsets is example._offsets:
            return _Layout(None, other, example._ragged_idx)
    return None


def _made(gm: GraphModule, node: Node, layout: _Layout) -> Node:
    """Add the nodes that give the values of a result, and make it of them."""
    example: Any = example_of(node)
    graph = gm.graph
    values = graph.call_function(values_of, (node,))
    with torch.enable_grad():  # `_values` has no history
        values.meta = {**node.meta, "example_value": example.values()}
    offsets = layout.offsets
    if offsets is None:
        assert layout.owner is not None
        offsets = graph.call_method("offsets", (layout.owner,))
        offsets.meta = {**node.meta, "example_value": example._offsets, NATIVE: ""}

    limits = [_limit(gm, node, name) for name in ("_min_seqlen_tensor", "_max_seqlen_tensor")]
    made = graph.call_function(jagged_view, (values, offsets, layout.ragged, *limits))
    made.meta = {**node.meta, NATIVE: ""}
    return made


def _limit(gm: GraphModule, node: Node, name: str) -> Node | None:
    """Return the shortest or longest length, which torch keeps as the size of an empty tensor."""
    value = getattr(example_of(node), name)
    if value is None:
        return None
    made = gm.graph.call_function(getattr, (node, name))
    made.meta = {**node.meta, "example_value": value}
    return made


def values_of(tensor: Tensor) -> Tensor:
    """Return the values of a jagged tensor themselves: `values()` would be one view more."""
    module: Any = sys.modules["torch.nested._internal.nested_tensor"]
    made: Tensor = module.buffer_from_jagged(tensor)
    return made


def jagged_view(
    values: Tensor,
    offsets: Tensor,
    ragged: int,
    shortest: Tensor | None,
    longest: Tensor | None,
) -> Tensor:
    """Make a jagged tensor, which autograd knows as a view of its values."""
    module: Any = sys.modules["torch.nested._internal.nested_tensor"]
    view: Any = torch._nested_view_from_jagged
    made: Tensor = view(values, offsets, module._nt_view_dummy(), None, ragged, shortest, longest)
    return made
