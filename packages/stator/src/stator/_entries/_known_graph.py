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
from stator_backends import AmbientState, Backend, Lowered, spec_of, uses_steps
from torch import fx

if TYPE_CHECKING:
    from stator_subgraphs import CapturedGraph

_CONSTANTS = (
    *(type(None), bool, int, float, complex, str, type(Ellipsis)),
    *(torch.dtype, torch.device, torch.layout, torch.memory_format),
)
_CLASSES = (torch.Tensor, torch.nn.Parameter)


@attrs.frozen(eq=False)
class KnownGraph:
    """A compiled graph and the module that it was compiled from."""

    lowered: Lowered
    module: fx.GraphModule


class _Incomparable(Exception):
    """A graph with a value of a kind that cannot be compared for equality."""


def key_of(captured: CapturedGraph, ambient: AmbientState, backend: Backend) -> Hashable | None:
    """Return what two graphs with the same compiled code have in common; None for a graph that is
    not compared."""
    try:
        nodes = _key_of_graph(captured.graph)
        sources = tuple(item.source for item in captured.inputs if _reads_sources(backend))
        inputs = tuple(_keys_of_inputs(captured.example_inputs()))
    except _Incomparable:
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
        raise _Incomparable
    if node.op == "placeholder":  # which is named after its source
        return node.op, node.args
    given = _key_of(node.args, numbers), _key_of(node.kwargs, numbers)
    marks = tuple(node.meta.get(mark) for mark in _MARKS)
    return node.op, node.name, node.target, marks, given


_MARKS = ("handled", "native", "starts", "apart", "kept")
"""Metadata that decides how a graph is compiled, or what its code keeps."""


def _key_of(value: object, numbers: dict[fx.Node, int]) -> Hashable:
    if isinstance(value, fx.Node):
        return fx.Node, numbers[value]
    if isinstance(value, tuple | list):
        return type(value), tuple(_key_of(item, numbers) for item in value)
    if isinstance(value, dict):
        return dict, tuple((key, _key_of(item, numbers)) for key, item in value.items())
    if isinstance(value, slice):
        parts = value.start, value.stop, value.step
        return slice, tuple(_key_of(part, numbers) for part in parts)
    if type(value) not in _CONSTANTS:
        raise _Incomparable
    return type(value), repr(value)


def _keys_of_inputs(inputs: list[Any]) -> Iterator[Hashable]:
    storages: dict[int, int] = {}
    for tensor in inputs:
        if type(tensor) not in _CLASSES or tensor.layout is not torch.strided:
            raise _Incomparable
        if tensor.__dict__ or tensor.is_inference():
            raise _Incomparable
        shared = storages.setdefault(tensor.untyped_storage()._cdata, len(storages))
        flags = tensor.requires_grad, tensor.is_leaf, tensor.is_conj(), tensor.is_neg()
        layout = tuple(tensor.shape), tensor.stride(), tensor.storage_offset()
        yield type(tensor), tensor.dtype, tensor.device, *layout, *flags, shared
