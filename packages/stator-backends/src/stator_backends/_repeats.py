"""Outputs that were computed twice, alike: two tensors, as the program sees them.

AOTAutograd computes equal calls of a training graph once. It spares what is given back, but not an
operator with several results behind it: `x.argsort(0), x.argsort(0)` would be one tensor, and a
write to it seen in both.
"""

from enum import Enum
from typing import Any

import torch
from torch import fx
from torch.utils._pytree import tree_leaves

from ._alias import has_storage


def gives_repeats(gm: torch.fx.GraphModule) -> bool:
    """Return True if two equal calls determine memory that this graph, or one of its bodies,
    returns."""
    return any(
        _gives_repeats(module.graph)
        for module in gm.modules()
        if isinstance(module, fx.GraphModule)
    )


def _gives_repeats(graph: fx.Graph) -> bool:
    numbers: dict[fx.Node, str] = {}  # equal for equal calls
    known: dict[str, str] = {}
    given = {storage for node in graph.output_node().all_input_nodes for storage in _storages(node)}
    met = set()

    def written(leaf: object) -> Any:
        return (
            numbers[leaf]
            if isinstance(leaf, fx.Node)
            else id(leaf)
            if isinstance(leaf, Enum)
            else leaf
        )

    for node in graph.nodes:
        call = repr(
            (node.op, node.target, fx.node.map_aggregate((node.args, node.kwargs), written))
        )
        number = numbers[node] = known.setdefault(call, f"%{len(known)}")
        if not given.isdisjoint(_storages(node)):
            if number in met:
                return True
            met.add(number)
    return False


def _storages(node: fx.Node) -> list[Any]:
    tensors = (
        leaf
        for leaf in tree_leaves(node.meta.get("example_value"))
        if isinstance(leaf, torch.Tensor)
    )
    return [tensor.untyped_storage()._cdata for tensor in tensors if has_storage(tensor)]
