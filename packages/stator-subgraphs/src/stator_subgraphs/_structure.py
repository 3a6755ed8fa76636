"""Arguments and results: nested Python structures with traced values inside, seen as nodes and seen
as examples."""

import enum
from collections.abc import Callable
from typing import Any

import torch
from stator_bytecode.errors import InternalError, Unsupported
from stator_variables import GraphValue
from torch._library.opaque_object import is_opaque_value_type
from torch.fx.node import base_types

from stator_subgraphs._symbol import SymbolicTypes, expression_of

CONSTANTS = (*base_types, type(None), type(Ellipsis), range, bytes, torch.finfo, torch.iinfo)
DTYPES: dict[Any, torch.dtype] = {
    float: torch.float64,
    int: torch.int64,
    bool: torch.bool,
    complex: torch.complex128,
}
"""Operators take these classes for dtypes; generated code cannot name a class."""
LEAVES = frozenset(
    {
        int,
        float,
        bool,
        str,
        type(None),
        torch.dtype,
        torch.device,
        torch.layout,
        torch.memory_format,
    }
)


def rebuild(value: Any, leaf: Callable[[Any], Any]) -> Any:
    """A copy of a nested structure, with `leaf` applied to what is not a tuple, list, dict or
    slice."""
    kind = type(value)
    if kind in LEAVES:
        return value
    if kind is GraphValue:
        return leaf(value)
    if kind is slice:
        return slice(
            rebuild(value.start, leaf), rebuild(value.stop, leaf), rebuild(value.step, leaf)
        )

    if isinstance(value, dict):
        return {key: rebuild(item, leaf) for key, item in value.items()}
    if kind is tuple or kind is torch.Size:
        return tuple([rebuild(item, leaf) for item in value])
    if isinstance(value, list):  # a node has lists of a class of fx
        return [rebuild(item, leaf) for item in value]
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return kind(*[rebuild(item, leaf) for item in value])
    return leaf(value)


def constant_argument(value: object) -> Any:
    """A leaf that is no traced value, if a graph can write it down."""
    if isinstance(value, SymbolicTypes):
        return _constant_number(value)
    if isinstance(value, torch.Tensor):
        raise InternalError("a real tensor as an argument: install it, or make it an input")
    if isinstance(value, CONSTANTS) or _is_written_down(value):
        return value
    if isinstance(value, type) and value in DTYPES:
        return DTYPES[value]
    detail = f"an argument that is a {type(value).__module__}.{type(value).__qualname__}"
    raise Unsupported("unrepresentable-argument", detail)


def _is_written_down(value: object) -> bool:
    """Return True for an object that torch writes into generated code by its value: a placement. It
    would do so with any enumeration, too, by a name that others may have."""
    return is_opaque_value_type(type(value)) and not isinstance(value, enum.Enum)


def _constant_number(value: Any) -> Any:
    """A symbolic number may have turned out to be constant; one with symbols must come with the
    node that binds it."""
    if expression_of(value) is not None:
        raise InternalError(f"the symbolic number {value} as an argument without its node")
    return value.node.pytype(value)


def tensors_in(example: object) -> list[torch.Tensor]:
    """The tensors of an example, which may be a nested result."""
    if isinstance(example, torch.Tensor):
        return [example]
    if isinstance(example, tuple | list):
        return [tensor for item in example for tensor in tensors_in(item)]
    if isinstance(example, dict):
        return [tensor for item in example.values() for tensor in tensors_in(item)]
    return []
