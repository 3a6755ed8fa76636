"""Graphs that a region has compiled already: an equal graph of another entry runs the same compiled
code.

A table that is filled by the first call is read by the second, so that two entries differ in guards
and side effects and not in the graph. So do the rounds of a loop over equal layers, if each ends at
a break. Only graphs without symbols are compared: the code of these follows from their nodes,
bodies of operators included, the metadata of their inputs and the modes around them. Where the
inputs come from matters to few backends.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from typing import TYPE_CHECKING, Any

import attrs
import torch
from stator_backends import (
    AmbientState,
    Backend,
    Lowered,
    NotCompared,
    argument_key,
    spec_of,
    uses_steps,
)
from torch import fx

if TYPE_CHECKING:
    from stator_subgraphs import CapturedGraph

_CLASSES = (torch.Tensor, torch.nn.Parameter)


@attrs.frozen(eq=False)
class KnownGraph:
    """A compiled graph and the module that it was compiled from."""

    lowered: Lowered
    module: fx.GraphModule


@attrs.frozen(eq=False)
class KnownGraphs:
    """Compiled graphs of a region, and compiled pieces of those that were divided: graphs that
    differ may have pieces in common."""

    graphs: dict[Hashable, KnownGraph] = attrs.field(factory=dict)
    pieces: dict[Hashable, Any] = attrs.field(factory=dict)

    def clear(self) -> None:
        self.graphs.clear()
        self.pieces.clear()


def key_of(captured: CapturedGraph, ambient: AmbientState, backend: Backend) -> Hashable | None:
    """Return what two graphs with the same compiled code have in common; None for a graph that is
    not compared."""
    try:
        nodes = _key_of_graph(captured.graph)
        sources = tuple(item.source for item in captured.inputs if _reads_sources(backend))
        inputs = tuple(_keys_of_inputs(captured.example_inputs()))
    except NotCompared:
        return None
    return nodes, sources, inputs, captured.keeps_history, ambient


def _reads_sources(backend: Backend) -> bool:
    """Return True for a backend that sees where the inputs of a graph come from: which of them keep
    their addresses."""
    return uses_steps(backend) or spec_of(backend).wants_graph_spec


def _key_of_graph(graph: fx.Graph) -> Hashable:
    numbers = {node: index for index, node in enumerate(graph.nodes)}
    return tuple(_key_of_node(node, numbers) for node in graph.nodes)


def _key_of_node(node: fx.Node, numbers: dict[fx.Node, int]) -> Hashable:
    if node.op == "get_attr":
        body = getattr(node.graph.owning_module, str(node.target), None)
        if isinstance(body, fx.GraphModule):
            return node.op, node.name, _key_of_graph(body.graph)
    if node.op in ("get_attr", "call_module"):
        raise NotCompared
    if node.op == "placeholder":  # which is named after its source
        return node.op, node.args
    given = argument_key(node.args, numbers), argument_key(node.kwargs, numbers)
    marks = tuple(node.meta.get(mark) for mark in _MARKS)
    return node.op, node.name, node.target, marks, given


_MARKS = ("handled", "native", "starts", "apart", "kept")
"""Metadata that decides how a graph is compiled, or what its code keeps."""


def _keys_of_inputs(inputs: list[Any]) -> Iterator[Hashable]:
    storages: dict[int, int] = {}
    for tensor in inputs:
        if type(tensor) not in _CLASSES or tensor.layout is not torch.strided:
            raise NotCompared
        if tensor.__dict__ or tensor.is_inference():
            raise NotCompared
        shared = storages.setdefault(tensor.untyped_storage()._cdata, len(storages))
        flags = tensor.requires_grad, tensor.is_leaf, tensor.is_conj(), tensor.is_neg()
        layout = tuple(tensor.shape), tensor.stride(), tensor.storage_offset()
        yield type(tensor), tensor.dtype, tensor.device, *layout, *flags, shared
