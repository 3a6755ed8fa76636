"""What autograd knows of a tensor, asked so that it stays as it is."""

from typing import Any

import torch
from stator_guards import Custom

_requires_grad = torch._C.TensorBase.requires_grad_
_creation: Any = torch._C._autograd._get_creation_meta
_DEFAULT: Any = torch._C._autograd.CreationMeta.DEFAULT


def is_behind(tensor: torch.Tensor) -> bool:
    """Whether it is a view, and its base was written to since with gradients. Autograd gives such a view its history
    when that is asked for (`grad_fn`, `is_leaf`), and refuses to write to it before (`check_inplace` of
    `torch/csrc/autograd/VariableTypeUtils.h`).

    The one question that leaves it as it is: tensors with a history refuse to do without gradients.
    """
    if not _has_flag_of_base(tensor) or tensor._base is None or tensor._base.grad_fn is None:
        return False
    if _creation(tensor) != _DEFAULT:
        return False
    try:
        _requires_grad(tensor, False)
    except RuntimeError:
        return False
    return True


UNTOLD = object()
"""The history of a view that is behind; and of one that was made without gradients, once its base, or another view of
that, has been written to with them: autograd refuses to tell it."""


def history_of(tensor: torch.Tensor) -> Any:
    """Its `grad_fn`, or UNTOLD."""
    try:
        return UNTOLD if is_behind(tensor) else tensor.grad_fn
    except RuntimeError:
        return UNTOLD


def keeps_flag(tensor: torch.Tensor) -> bool:
    """Whether it is the same with `requires_grad` set to what it is. A view that was made under `no_grad` has that from
    its base, and gets one of its own, with gradients of its own."""
    return not _has_flag_of_base(tensor) or is_no_leaf(tensor)


def _has_flag_of_base(tensor: torch.Tensor) -> bool:
    return tensor.requires_grad and tensor._is_view()


def is_leaf(tensor: torch.Tensor) -> bool:
    """False as well for a view whose history is UNTOLD."""
    return history_of(tensor) is not UNTOLD and tensor.is_leaf


def is_no_leaf(tensor: torch.Tensor) -> bool:
    """False as well for a view whose history is UNTOLD."""
    return history_of(tensor) is not UNTOLD and not tensor.is_leaf


LEAF = Custom("{fn}({value}) if {value}._is_view() else {value}.is_leaf", is_leaf, "a leaf")
NO_LEAF = Custom(
    "{fn}({value}) if {value}._is_view() else not {value}.is_leaf", is_no_leaf, "no leaf"
)
