"""Calls from inside another tracer or mode: those are run plainly, so that the other one sees every
operation."""

import builtins
from typing import Any

import torch
from stator_variables import REPLACEABLE

function_mode_count: Any = torch._C._len_torch_function_stack


def is_foreign_call() -> bool:
    """Return True inside a torch function or dispatch mode, a functorch transform, or torch.jit's
    tracer."""
    return function_mode_count() > 0 or is_foreign_below()


_OWN = {
    name: value
    for name, value in vars(builtins).items()
    if callable(value) and name not in REPLACEABLE
}


def has_others() -> bool:
    """Return True if a builtin that tracing calls, such as `sum`, has been replaced."""
    return not _OWN.items() <= vars(builtins).items()


def is_foreign_below() -> bool:
    """The same, function modes aside."""
    return (
        torch._C._len_torch_dispatch_stack() > 0
        or torch._C._functorch.peek_interpreter_stack() is not None
        or torch._C._get_tracing_state() is not None
    )
