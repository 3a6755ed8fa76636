"""Operators that write to their arguments, seen by what they did to the fakes.

A fake shows a write: its version counter moves, or its shape or gradient flag changes. The operator's name only decides
how closely to look. Observation covers custom operators and bodies, where names and schemas say little.
"""

from __future__ import annotations

import operator
from typing import Any

import attrs
import torch

WRITING_FUNCTIONS = frozenset({setattr, delattr, operator.setitem, operator.delitem})


def may_write(target: Any, kwargs: dict[str, Any]) -> bool:
    """Whether the name promises a write, or an attribute is set: then more than the version is compared."""
    if "out" in kwargs or target in WRITING_FUNCTIONS:
        return True
    name = target if isinstance(target, str) else getattr(target, "__name__", "")
    name = name.partition(".")[0]
    return (name.endswith("_") and not name.endswith("__")) or (name.startswith("__i") and name not in NOT_IN_PLACE)


NOT_IN_PLACE = frozenset({"__int__", "__invert__", "__index__", "__iter__", "__init__"})


@attrs.define(eq=False)
class Watched:
    """The state of some fakes before an operator runs."""

    tensors: list[torch.Tensor]
    thorough: bool
    before: list[Any]

    @classmethod
    def of(cls, tensors: list[torch.Tensor], thorough: bool) -> Watched:
        return cls(tensors, thorough, [state_of(tensor, thorough) for tensor in tensors])

    def changed(self) -> list[torch.Tensor]:
        states = zip(self.tensors, self.before, strict=True)
        return [tensor for tensor, before in states if not _same(before, state_of(tensor, self.thorough))]


def state_of(tensor: torch.Tensor, thorough: bool) -> Any:
    if tensor.is_inference():
        # No version counter: what is called in-place is taken to be.
        return object() if thorough else None
    if not thorough:
        return tensor._version
    shape = (tensor.size(), tensor.stride(), tensor.storage_offset())
    return (tensor._version, tensor.requires_grad, tensor.grad_fn, tensor.dtype, storage_of(tensor), shape)


def _same(before: Any, after: Any) -> bool:
    if type(before) is not tuple:
        return bool(before == after)
    return before[:5] == after[:5] and _same_shape(before[5], after[5])


def _same_shape(before: Any, after: Any) -> bool:
    """Compares expressions as written: comparing the numbers would put guards into the `ShapeEnv`."""
    return repr(before) == repr(after)


def storage_of(tensor: torch.Tensor) -> int:
    """Equal for tensors over one storage."""
    if tensor.layout is not torch.strided:
        return id(tensor)
    return int(tensor.untyped_storage()._cdata)
