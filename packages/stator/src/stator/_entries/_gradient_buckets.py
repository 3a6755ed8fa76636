"""Graphs inside of DistributedDataParallel: divided where the buckets of its gradients end.

    forward    layers 0, 1  ->  layers 2, 3          two pieces
    backward   layers 2, 3  ->  layers 0, 1
    reduction                   of layers 2, 3  ->  of layers 0, 1

All gradients of a compiled graph arrive when its backward pass ends, so nothing would be reduced
meanwhile. Pieces have a backward pass each, whatever the backend: the reducer gets a bucket while
the gradients of the next one are computed.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import torch
from torch.fx import Node
from torch.nn.parallel import DistributedDataParallel

if TYPE_CHECKING:
    from stator_subgraphs import CapturedGraph

FIRST_BUCKET = 1 << 20
"""The size in bytes of the first bucket, which is to be reduced early, unless all are smaller."""


def mark_buckets(captured: CapturedGraph) -> None:
    """Let pieces of a graph begin where buckets do, if a wrapped module is running."""
    wrapper: Any = getattr(DistributedDataParallel, "_active_ddp_module")
    if wrapper is None or not torch.is_grad_enabled():
        return
    sizes = _sizes_of_parameters(captured, wrapper)
    cap = wrapper.bucket_bytes_cap
    for node in _starts(captured, sizes, min(FIRST_BUCKET, cap), cap):
        node.meta["starts"] = True


def _sizes_of_parameters(captured: CapturedGraph, wrapper: Any) -> dict[Node, int]:
    """Return the parameters that the reducer has among the inputs of a graph, with their bytes."""
    reduced = {id(each) for each in wrapper._module_parameters if each.requires_grad}
    nodes = captured.graph.find_nodes(op="placeholder")
    inputs = zip(nodes, captured.example_inputs(), strict=True)
    return {node: value.nbytes for node, value in inputs if id(value) in reduced}


def _starts(
    captured: CapturedGraph, sizes: dict[Node, int], first: int, cap: int
) -> Iterator[Node]:
    """Yield the first node of each piece but that at the beginning.

    Gradients arrive from the end of the graph on, so buckets are filled from there.
    """
    limit, filled, left = first, 0, dict(sizes)
    for node in reversed(captured.graph.nodes):
        if not node.op.startswith("call_"):
            continue
        filled += sum(left.pop(given, 0) for given in node.all_input_nodes)
        if not left:  # what is before the last parameter belongs to its bucket
            return
        if filled >= limit:
            yield node
            limit, filled = cap, 0
