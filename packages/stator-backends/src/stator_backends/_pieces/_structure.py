"""The structure of a piece: pieces with the same one are compiled once.

    h = piece_0(x, w0)      # h = relu(x @ w0)
    y = piece_0(h, w1)      # y = relu(h @ w1)

The code of a piece follows from its nodes, from the metadata of its inputs, memory that they share
included, and from the modes around it. A piece with symbols, bodies, constants of other kinds or
tensors of other classes has no structure here, and is compiled by itself. A structure holds the
functions that are called, so that it may outlive the graph.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Any

import torch
from torch import Tensor
from torch.fx import Node

from stator_backends._alias import has_storage, is_leaf
from stator_backends._graph_facts import example_of, memory_of
from stator_backends._pieces._division import APART, KEPT
from stator_backends._pieces._driver import Piece

_CONSTANTS = (
    *(type(None), bool, int, float, complex, str, type(Ellipsis)),
    *(torch.dtype, torch.device, torch.layout, torch.memory_format),
)
ALIGNMENT = 16
"""The bytes by which Inductor's kernels expect inputs to be aligned."""
_CLASSES = (Tensor, torch.nn.Parameter)
_MARKS = (KEPT, APART, "version")


class NotCompared(Exception):
    """A graph with a value of a kind that is not compared."""


def structure_of(piece: Piece, examples: Sequence[Any], modes: Hashable) -> Hashable | None:
    """Return what pieces with the same compiled code have in common; None for a piece that is not
    compared. `examples` are what it is compiled for, under `modes`."""
    graph = piece.module.graph
    numbers = {node: index for index, node in enumerate(graph.nodes)}
    try:
        nodes = tuple(_node_key(node, numbers) for node in graph.nodes)
        values = _values_key([example_of(node) for node in graph.nodes])
        inputs = _values_key(examples)
    except NotCompared:
        return None
    return nodes, values, inputs, modes


def _node_key(node: Node, numbers: dict[Node, int]) -> Hashable:
    if node.op in ("get_attr", "call_module"):
        raise NotCompared
    marks = tuple(node.meta.get(mark) for mark in _MARKS)
    if node.op == "placeholder":  # named after its source
        return node.op, marks
    given = argument_key(node.args, numbers), argument_key(node.kwargs, numbers)
    if not isinstance(node.target, Hashable):
        raise NotCompared
    return node.op, node.target, marks, "writes" in node.meta, given


def argument_key(value: object, numbers: dict[Node, int]) -> Hashable:
    """Return what equal arguments of nodes have in common; `numbers` are those of the nodes.

    Raises NotCompared for a value that is no constant.
    """
    if isinstance(value, Node):
        return Node, numbers[value]
    if isinstance(value, tuple | list):
        return type(value), tuple(argument_key(item, numbers) for item in value)
    if isinstance(value, dict):
        items = value.items()
        return dict, tuple((key, argument_key(item, numbers)) for key, item in items)
    if isinstance(value, slice):
        parts = value.start, value.stop, value.step
        return slice, tuple(argument_key(part, numbers) for part in parts)
    if type(value) not in _CONSTANTS:
        raise NotCompared
    return type(value), repr(value)


def _values_key(values: Sequence[Any]) -> Hashable:
    memory: dict[int, int] = {}
    return tuple(_value_key(value, memory) for value in values)


def _value_key(value: Any, memory: dict[int, int]) -> Hashable:
    if isinstance(value, tuple | list):
        return type(value), tuple(_value_key(item, memory) for item in value)
    if isinstance(value, Tensor):
        return _tensor_key(value, memory)
    if type(value) not in _CONSTANTS:
        raise NotCompared
    return type(value), repr(value)


def _tensor_key(tensor: Tensor, memory: dict[int, int]) -> Hashable:
    is_fake = isinstance(tensor, torch._subclasses.FakeTensor)
    if not (is_fake or type(tensor) in _CLASSES) or not has_storage(tensor):
        raise NotCompared
    layout = (*tensor.shape, *tensor.stride(), tensor.storage_offset())
    if tensor.is_inference() or not all(type(number) is int for number in layout):
        raise NotCompared

    # a compiler relies on the alignment of an input that keeps its address
    is_aligned = is_fake or tensor.data_ptr() % ALIGNMENT == 0
    shared = memory.setdefault(memory_of(tensor), len(memory))
    kind = tensor.dtype, tensor.device, tensor.is_conj(), tensor.is_neg()
    history = tensor.requires_grad, is_leaf(tensor), tensor._is_view()
    is_parameter = isinstance(tensor, torch.nn.Parameter)
    return tensor.dim(), layout, kind, history, is_parameter, is_aligned, shared
