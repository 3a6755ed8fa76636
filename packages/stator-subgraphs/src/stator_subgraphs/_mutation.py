"""Operators that write to their arguments, detected by their effect on the fakes.

A fake shows a write: its version counter moves, or its shape or gradient flag changes. The
operator's name only decides how thorough the comparison is. Observation covers custom operators and
bodies, whose names and schemas are not informative.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable
from typing import Any

import attrs
import torch
from stator_bytecode.errors import Unsupported
from stator_variables import UNTOLD, Kwargs, history_of
from torch import Tensor
from torch.utils._python_dispatch import is_traceable_wrapper_subclass

NodeTarget = Callable[..., Any] | str
WRITING_FUNCTIONS = frozenset(
    {setattr, delattr, operator.setitem, operator.delitem, "__setitem__", "__setattr__"}
)


def called(target: NodeTarget) -> str:
    """The name that an operator or method goes by; empty where it has none."""
    return target if isinstance(target, str) else str(getattr(target, "__name__", ""))


IN_PLACE_OPERATORS = frozenset(
    {
        operator.iadd,
        operator.isub,
        operator.imul,
        operator.itruediv,
        operator.ifloordiv,
        operator.imod,
        operator.ipow,
    }
    | {operator.iand, operator.ior, operator.ixor, operator.ilshift, operator.irshift}
)
NOT_IN_PLACE = frozenset({"__int__", "__invert__", "__index__", "__iter__", "__init__"})


def is_in_place(target: NodeTarget) -> bool:
    """Return True if the operator writes to its first argument.

    A schema decides, where there is one. Of the functions of `operator` the augmented assignments
    are in place: `and_`, `or_` and `is_` end in an underscore because the words without it are
    keywords.
    """
    if isinstance(target, torch._ops.OpOverload):
        return _writes_to_first(target)
    if isinstance(target, torch._ops.OpOverloadPacket):
        return any(map(_writes_to_first, overloads_of(target)))
    if getattr(target, "__module__", "") == operator.add.__module__:
        return target in IN_PLACE_OPERATORS

    name = called(target)
    return (name.endswith("_") and not name.endswith("__")) or (
        name.startswith("__i") and name not in NOT_IN_PLACE
    )


def overloads_of(packet: Any) -> list[torch._ops.OpOverload[..., Any]]:
    return [getattr(packet, name) for name in packet.overloads()]


def _writes_to_first(overload: torch._ops.OpOverload[..., Any]) -> bool:
    alias = next((argument.alias_info for argument in overload._schema.arguments), None)
    return alias is not None and alias.is_write


def may_write(target: NodeTarget, kwargs: Kwargs) -> bool:
    """Return True if more than the versions of the tensors has to be compared: the operator is in
    place, or sets."""
    return "out" in kwargs or target in WRITING_FUNCTIONS or is_in_place(target)


@attrs.define(eq=False)
class Watched:
    """The state of some fakes before an operator runs."""

    tensors: list[Tensor]
    thorough: bool
    before: list[Any]

    @classmethod
    def of(cls, tensors: list[Tensor], thorough: bool) -> Watched:
        return cls(tensors, thorough, [state_of(tensor, thorough) for tensor in tensors])

    def changed(self) -> list[Tensor]:
        states = zip(self.tensors, self.before, strict=True)
        return [
            tensor
            for tensor, before in states
            if not _same(before, state_of(tensor, self.thorough))
        ]

    def with_new_history(self) -> list[Tensor]:
        states = zip(self.tensors, self.before, strict=True)
        return [
            one
            for one, before in states
            if one.requires_grad and type(before) is tuple and not before[1]
        ]

    def refuse_resizing(self, name: str, inputs: Iterable[object]) -> None:
        """Raises Unsupported where `out=` had elements and got another shape: a real kernel warns
        of it. An input has the symbols that it came with."""
        for tensor, before in zip(self.tensors, self.before, strict=True):
            shape = before[5][0] if type(before) is tuple else tensor.size()
            if _same_shape(shape, tensor.size()):
                continue
            if 0 not in map(now, shape) or any(tensor is given for given in inputs):
                raise Unsupported("operator-error", f"{name}: it resizes its `out`")

    def refuse_reshaping(self, name: str) -> None:
        """Raises Unsupported where a tensor with others in it got another shape: compilers lose
        that."""
        for tensor, before in zip(self.tensors, self.before, strict=True):
            if not is_traceable_wrapper_subclass(tensor) or type(before) is not tuple:
                continue
            if not _same_shape(before[5], state_of(tensor, True)[5]):
                raise Unsupported(
                    "tensor-subclass",
                    f"{name} of a tensor with others in it, which changes its shape",
                )


def state_of(tensor: Tensor, thorough: bool) -> object:
    if tensor.is_inference():
        # No version counter: what is called in-place is taken to be.
        return object() if thorough else None
    if not thorough:
        return tensor._version

    strided = tensor.layout is torch.strided
    shape = (
        (tensor.size(), tensor.stride(), tensor.storage_offset()) if strided else (tensor.size(),)
    )
    return (
        tensor._version,
        tensor.requires_grad,
        history_of(tensor),
        tensor.dtype,
        storage_of(tensor),
        shape,
    )


def _same(before: Any, after: Any) -> bool:
    if type(before) is not tuple:
        return bool(before == after)
    same_history = before[2] in (UNTOLD, after[2])  # to read an unknown history is no write
    return (
        same_history
        and before[:2] == after[:2]
        and before[3:5] == after[3:5]
        and _same_shape(before[5], after[5])
    )


def _same_shape(before: object, after: object) -> bool:
    """Compares expressions as written: comparing the numbers would put guards into the
    `ShapeEnv`."""
    return repr(before) == repr(after)


def now(size: Any) -> Any:
    """Return the value of a size in this trace. Only a break may depend on it."""
    return size if type(size) is int else size.node.hint


def storage_of(tensor: Tensor) -> int:
    """Return a number equal for tensors over one storage. A wrapper may not have one of its own,
    but its parts do."""
    if tensor.layout is not torch.strided:
        return id(tensor)
    if is_traceable_wrapper_subclass(tensor):
        parts: Any = tensor.__tensor_flatten__()[0]
        return storage_of(getattr(tensor, parts[0])) if parts else id(tensor)
    return int(tensor.untyped_storage()._cdata)
