"""Backward hooks of modules: tensors that pass `BackwardHookFunction` get an autograd node that is
theirs."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.nn.modules._functions import BackwardHookFunction

from stator_variables._space import Space
from stator_variables._tensors import _torch_calls
from stator_variables._tensors._history import PLAIN, NodeTracker
from stator_variables._tensors._surroundings import is_surrounded
from stator_variables._trace._graph import RUNS_NATIVELY
from stator_variables._tracker import Args, is_a
from stator_variables._trackers import TensorTracker


def passes_hooks(cls: object) -> bool:
    """Return True for the function that modules with backward hooks apply to what they take and
    give."""
    return cls is BackwardHookFunction


def pass_hooks(t: Space, args: Args) -> Any:
    """`BackwardHookFunction.apply(*args)`: the same tensors, behind an autograd node that is
    theirs."""
    operands_fit = all(is_a(vt, TensorTracker) and vt.cls in PLAIN for vt in args)
    with t.caller_modes():
        is_used_later = torch.is_grad_enabled()
    if not (operands_fit and is_used_later) or is_surrounded(t):
        raise t.unsupported(
            "tensor-hook", "backward hooks of a module with tensors of its own kind"
        )
    made: Any = _torch_calls.record(t, pass_backward_hooks, args)
    for vt in made.items:
        if vt.before.example.requires_grad:
            vt.node = NodeTracker(vt)
    return made


def pass_backward_hooks(*tensors: Tensor) -> tuple[Tensor, ...]:
    """Apply the function, natively in each graph: no compiler keeps its autograd node."""
    apply: Any = BackwardHookFunction.apply
    results: tuple[Tensor, ...] = apply(*tensors)
    return results


setattr(pass_backward_hooks, RUNS_NATIVELY, "")
