"""What the programs of the cases find in their globals, besides torch: operators, modules, and how
they are called."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import attrs
import torch
from torch import Tensor
from torch._higher_order_ops.associative_scan import associative_scan
from torch._higher_order_ops.hints_wrap import hints_wrapper
from torch._higher_order_ops.map import map as map_function
from torch._higher_order_ops.scan import scan
from torch._higher_order_ops.strict_mode import strict_mode
from torch._higher_order_ops.while_loop import while_loop
from torch.autograd import Function
from torch.compiler import nested_compile_region
from torch.func import functional_call, grad, hessian, jacfwd, jacrev, jvp, vjp, vmap
from torch.nn.attention.flex_attention import flex_attention
from torch.utils.checkpoint import checkpoint

__all__ = [
    "Function",
    "associative_scan",
    "checkpoint",
    "flex_attention",
    "functional_call",
    "given",
    "grad",
    "hessian",
    "hints_wrapper",
    "jacfwd",
    "jacrev",
    "jvp",
    "layer",
    "map_function",
    "nested_compile_region",
    "scan",
    "strict_mode",
    "torch",
    "vjp",
    "vmap",
    "while_loop",
    "wrap",
]

wrap = torch.ops.higher_order.wrap
layer = torch.nn.Linear(3, 3)


@attrs.frozen
class Given:
    """How a program is called."""

    shapes: tuple[tuple[int, ...], ...] = ((2, 3), (2, 3))
    dynamic: bool | None = None
    gradients: bool = True

    def tensors(self) -> list[Tensor]:
        made = [torch.randn(shape) for shape in self.shapes]
        return [made[0].requires_grad_(self.gradients), *made[1:]]


def given(**options: Any) -> Callable[[Any], Any]:
    """A decorator of programs that are called in another way than with two tensors of 2 by 3."""

    def mark(program: Any) -> Any:
        program.given = Given(**options)
        return program

    return mark


def given_to(program: Any) -> Given:
    found: Given = getattr(program, "given", Given())
    return found
