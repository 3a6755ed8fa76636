"""Operators that write to their arguments, seen by what they did to the fakes.

A fake shows a write: its version counter moves, or its shape or gradient flag changes. The operator's name only decides
how closely to look. Observation covers custom operators and bodies, where names and schemas say little.
"""

from __future__ import annotations

import operator
from collections.abc import Iterable
from typing import Any

import attrs
import torch
from stator_bytecode.errors import Unsupported
from torch._prims_common import is_non_overlapping_and_dense_or_false
from torch.utils._python_dispatch import is_traceable_wrapper_subclass

WRITING_FUNCTIONS = frozenset({setattr, delattr, operator.setitem, operator.delitem})


def may_write(target: Any, kwargs: dict[str, Any]) -> bool:
    """Whether the name promises a write, or an attribute is set: then more than the version is compared."""
    if "out" in kwargs or target in WRITING_FUNCTIONS:
        return True
    name = target if isinstance(target, str) else getattr(target, "__name__", "")
    name = name.partition(".")[0]
    return (name.endswith("_") and not name.endswith("__")) or (name.startswith("__i") and name not in NOT_IN_PLACE)


NOT_IN_PLACE = frozenset({"__int__", "__invert__", "__index__", "__iter__", "__init__"})


def refuse_partial_overlap(target: Any, tensors: list[torch.Tensor]) -> None:
    """Raises Unsupported for an operator in place that writes to memory which it reads shifted or transposed.

    Real kernels raise then, fakes do not (`at::get_overlap_status`): so it runs natively, where its `try` is.
    """
    name = target if isinstance(target, str) else getattr(target, "__name__", "")
    in_place = (name.endswith("_") and not name.endswith("__")) or target in IN_PLACE_OPERATORS
    if in_place and any(_overlaps_in_part(tensors[0], other) for other in tensors[1:]):
        raise Unsupported("operator-error", f"{name}: it writes to memory that it also reads in another order")


IN_PLACE_OPERATORS = frozenset(
    {operator.iadd, operator.isub, operator.imul, operator.itruediv, operator.ifloordiv, operator.imod, operator.ipow}
    | {operator.iand, operator.ior, operator.ixor, operator.ilshift, operator.irshift}
)


def _overlaps_in_part(written: torch.Tensor, other: torch.Tensor) -> bool:
    if written is other or written.layout is not torch.strided or storage_of(written) != storage_of(other):
        return False
    ours, theirs = _reach(written), _reach(other)
    if None in (*ours, *theirs) or ours[0] >= theirs[1] or theirs[0] >= ours[1]:
        return False
    dense = is_non_overlapping_and_dense_or_false(written) and is_non_overlapping_and_dense_or_false(other)
    return dense and ours != theirs


def refuse_expanded(target: Any, written: list[torch.Tensor]) -> None:
    """Raises Unsupported where elements of what was written to share memory: real kernels raise, or warn of it. The few
    that do neither (`fill_`) are no nodes, either: functionalised, an element of the base becomes a sum of its copies.
    """
    for tensor in written:
        strides = tensor.stride() if tensor.layout is torch.strided else ()
        if any(_now(stride) == 0 and _now(size) > 1 for size, stride in zip(tensor.size(), strides, strict=False)):
            name = getattr(target, "__name__", target)
            raise Unsupported("operator-error", f"{name}: it writes to a tensor of which elements share memory")


def _reach(tensor: torch.Tensor) -> Any:
    """Bytes from and to, and the strides. Symbols are taken for what they are now: all that hangs on it is a break."""
    start, count, size = tensor.storage_offset(), tensor.numel(), tensor.element_size()
    return tuple(map(_now, (start * size, (start + count) * size, *tensor.stride())))


def _now(number: Any) -> Any:
    return number if type(number) is int else number.node.hint


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

    def refuse_resizing(self, target: Any, inputs: Iterable[Any]) -> None:
        """Raises Unsupported where `out=` had elements and got another shape: a real kernel warns of it. An input has
        the symbols that it came with."""
        for tensor, before in zip(self.tensors, self.before, strict=True):
            shape = before[5][0] if type(before) is tuple else tensor.size()
            if _same_shape(shape, tensor.size()):
                continue
            if 0 not in map(_now, shape) or any(tensor is given for given in inputs):
                raise Unsupported("operator-error", f"{getattr(target, '__name__', target)}: it resizes its `out`")

    def refuse_reshaping(self, target: Any) -> None:
        """Raises Unsupported where a tensor with others in it got another shape: compilers lose that."""
        for tensor, before in zip(self.tensors, self.before, strict=True):
            if not is_traceable_wrapper_subclass(tensor) or type(before) is not tuple:
                continue
            if not _same_shape(before[5], state_of(tensor, True)[5]):
                name = target if isinstance(target, str) else getattr(target, "__name__", target)
                raise Unsupported("tensor-subclass", f"{name} of a tensor with others in it, which changes its shape")


def state_of(tensor: torch.Tensor, thorough: bool) -> Any:
    if tensor.is_inference():
        # No version counter: what is called in-place is taken to be.
        return object() if thorough else None
    if not thorough:
        return tensor._version
    strided = tensor.layout is torch.strided
    shape = (tensor.size(), tensor.stride(), tensor.storage_offset()) if strided else (tensor.size(),)
    return (tensor._version, tensor.requires_grad, _history(tensor), tensor.dtype, storage_of(tensor), shape)


def _history(tensor: torch.Tensor) -> Any:
    """Autograd refuses to tell that of a view made without gradients, once another view of the base has been written to
    with them. That is a state, too: what uses the view next raises."""
    try:
        return tensor.grad_fn
    except RuntimeError:
        return RuntimeError


def _same(before: Any, after: Any) -> bool:
    if type(before) is not tuple:
        return bool(before == after)
    return before[:5] == after[:5] and _same_shape(before[5], after[5])


def _same_shape(before: Any, after: Any) -> bool:
    """Compares expressions as written: comparing the numbers would put guards into the `ShapeEnv`."""
    return repr(before) == repr(after)


def storage_of(tensor: torch.Tensor) -> int:
    """Equal for tensors over one storage. One with others in it may not tell it of itself, but its parts do."""
    if tensor.layout is not torch.strided:
        return id(tensor)
    if is_traceable_wrapper_subclass(tensor):
        parts: Any = tensor.__tensor_flatten__()[0]
        return storage_of(getattr(tensor, parts[0])) if parts else id(tensor)
    return int(tensor.untyped_storage()._cdata)
