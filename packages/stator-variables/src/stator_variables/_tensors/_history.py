"""The autograd history of a tensor, read without changing it."""

from collections.abc import Sequence
from typing import Any

import torch
from stator_guards import Custom, history_words
from torch import Tensor

from stator_variables._emitter import Emitter
from stator_variables._tracker import VariableTracker

_requires_grad = torch._C.TensorBase.requires_grad_
_creation: Any = torch._C._autograd._get_creation_meta
PLAIN = (Tensor, torch.nn.Parameter)
"""The classes of tensors whose history is read here."""
_DEFAULT: Any = torch._C._autograd.CreationMeta.DEFAULT


def is_behind(tensor: Tensor) -> bool:
    """Return True for a view whose base was written to since, with gradients.

    Autograd gives such a view its history when that is read (`grad_fn`, `is_leaf`), and raises for
    a write to it before (`check_inplace` of `torch/csrc/autograd/VariableTypeUtils.h`). The query
    here does not change it: setting `requires_grad` to False raises for tensors with a history.
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
"""The history of a view that is behind; and of one made without gradients, once its base, or
another view of that, has been written to with them: autograd raises for it."""


def history_of(tensor: Tensor) -> object:
    """Return the `grad_fn` of a tensor, or UNTOLD."""
    try:
        return UNTOLD if is_behind(tensor) else tensor.grad_fn
    except RuntimeError:
        return UNTOLD


def keeps_flag(tensor: Tensor) -> bool:
    """Return True if setting `requires_grad` to its present value changes nothing.

    A view that was made under `no_grad` has the flag from its base, and gets one of its own, with
    gradients of its own.
    """
    return not _has_flag_of_base(tensor) or is_no_leaf(tensor)


def _has_flag_of_base(tensor: Tensor) -> bool:
    return tensor.requires_grad and tensor._is_view()


def is_leaf(tensor: Tensor) -> bool:
    """False as well for a view whose history is UNTOLD."""
    return history_of(tensor) is not UNTOLD and tensor.is_leaf


def is_no_leaf(tensor: Tensor) -> bool:
    """False as well for a view whose history is UNTOLD."""
    return history_of(tensor) is not UNTOLD and not tensor.is_leaf


LEAF = Custom(
    "{fn}({value}) if {value}._is_view() else {value}.is_leaf",
    is_leaf,
    "a leaf",
    words=history_words,
)
NO_LEAF = Custom(
    "{fn}({value}) if {value}._is_view() else not {value}.is_leaf", is_no_leaf, "no leaf"
)


def reached_leaves(roots: Sequence[Tensor]) -> list[Tensor]:
    """Return the leaves in the history of fake tensors."""
    leaves = {id(root): root for root in roots if root.requires_grad and root.grad_fn is None}
    pending: list[Any] = [root.grad_fn for root in roots if root.grad_fn is not None]
    seen = set(pending)
    while pending:
        node = pending.pop()
        if (leaf := getattr(node, "variable", None)) is not None:
            leaves[id(leaf)] = leaf
        following = {each for each, _ in node.next_functions if each is not None} - seen
        seen |= following
        pending += following
    return [*leaves.values()]


class NodeTracker(VariableTracker, references=("tensor",)):
    """The autograd node of a tensor that has passed `BackwardHookFunction`."""

    def __init__(self, tensor: Any) -> None:
        self.tensor = tensor
        self.cls = type(tensor.before.example.grad_fn)

    def rebuild(self, e: Emitter) -> str:
        return f"{e.expr(self.tensor)}.grad_fn"
