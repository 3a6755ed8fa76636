"""`autograd_function_apply` of a graph that torch captured: a `Function` over its two bodies."""

from typing import Any

import torch
from stator_guards import CapturedSource
from stator_variables import Args, FunctionTable, Kwargs, Space, real_of, wrap
from torch._functorch.autograd_function import autograd_function_apply
from torch.autograd.function import Function

handlers = FunctionTable("higher-order operator")


@handlers.handles(autograd_function_apply)
def apply(t: Space, args: Args, kwargs: Kwargs) -> Any:
    forward, backward, *operands = args
    options = {name: vt.constant() for name, vt in kwargs.items()}
    marks = (tuple(options.get(f"{name}_idx") or ()) for name in ("dirty", "non_differentiable"))
    cls = _function(real_of(forward), real_of(backward), *marks)
    return t.call(wrap(t, cls.apply, CapturedSource(cls.__name__, cls.apply)), operands)


def _function(
    forward_body: Any, backward_body: Any, dirty: tuple[int, ...], fixed: tuple[int, ...]
) -> Any:
    """Return a class whose forward keeps what the body gives besides its output. `dirty` and
    `fixed` are positions of outputs that forward writes to, and that have no gradients."""

    class ApplyTemplate(Function):
        @staticmethod
        def forward(ctx: Any, *args: Any) -> Any:
            output, ctx.kept = forward_body(*args)
            outputs = output if isinstance(output, tuple | list) else (output,)
            if dirty:
                ctx.mark_dirty(*[outputs[index] for index in dirty])
            if fixed:
                ctx.mark_non_differentiable(*[outputs[index] for index in fixed])
            return output

        @staticmethod
        def backward(ctx: Any, *grads: torch.Tensor) -> Any:
            return backward_body(*grads, *ctx.kept)

    return ApplyTemplate
