"""Calls from inside another tracer or mode: those are run plainly, so that the other one sees every operation; so are
those under forward-mode derivatives, which what a compiler makes of a graph does not have."""

import torch
from torch.autograd import forward_ad


def is_foreign_call() -> bool:
    """Whether a torch function or dispatch mode, a functorch transform, a dual level or torch.jit's tracer is at work
    here."""
    return (
        torch._C._len_torch_function_stack() > 0
        or torch._C._len_torch_dispatch_stack() > 0
        or torch._C._functorch.peek_interpreter_stack() is not None
        or torch._C._get_tracing_state() is not None
        or forward_ad._current_level >= 0
    )
