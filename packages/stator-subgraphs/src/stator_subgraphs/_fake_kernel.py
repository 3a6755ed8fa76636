"""Fake kernels for operators that torch has none for, because the size of one of several results
depends on data.

The sizes that do not are given as they are; one that does is a symbol, where a function of torch
keeps that result to itself (the table of `ctc_loss`), and a reason to refuse elsewhere.
"""

import weakref
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import torch
from stator_variables import Args
from torch import Tensor
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.fx import GraphModule
from torch.fx.experimental.symbolic_shapes import ShapeEnv, _constrain_range_for_size

aten = torch.ops.aten


def add_fake_kernels(mode: FakeTensorMode) -> None:
    """Let a mode use the kernels of this module, from the first call on that may need one
    (`CALLERS`).

    A subclass would not do: operators with bodies find what to do for a mode by its exact class.
    """
    setattr(mode, "_dispatch_impl", partial(_dispatch, weakref.ref(mode)))


def needs_fake_kernels(module: torch.nn.Module) -> bool:
    """Return True if a graph, or one inside of it, calls a function that needs these kernels."""
    graphs = (each.graph for each in module.modules() if isinstance(each, GraphModule))
    return any(node.target in CALLERS for graph in graphs for node in graph.nodes)


def _dispatch(
    of: weakref.ref[FakeTensorMode],
    func: Any,
    types: Sequence[type],
    args: Args,
    kwargs: Mapping[str, Any],
) -> object:
    mode = of()
    assert mode is not None
    kernel = KERNELS.get(func)
    if kernel is not None and mode.shape_env is not None and mode.is_our_fake(args[0]):
        with mode:
            made = kernel(mode.shape_env, *args, **kwargs)
        if made is not None:
            return made
    return FakeTensorMode._dispatch_impl(mode, func, types, args, kwargs)


def _ctc_loss(
    env: ShapeEnv,
    log_probs: Tensor,
    targets: Tensor,
    inputs: object,
    lengths: Any,
    *options: object,
) -> object:
    """The losses, and the table that the gradient is computed from (LossCTC.cpp)."""
    if isinstance(lengths, torch.Tensor):
        width: Any = env.create_unbacked_symint()
        _constrain_range_for_size(width, min=1)
    else:
        width = 2 * max(lengths, default=0) + 1

    steps, batch = log_probs.shape[:2]
    return log_probs.new_empty((batch,)), log_probs.new_empty((batch, steps, width))


def _ctc_gradient(env: ShapeEnv, grad: Tensor, log_probs: Tensor, *rest: object) -> Tensor:
    return torch.empty_like(log_probs, memory_format=torch.contiguous_format)


def _lstsq(
    env: ShapeEnv,
    matrix: Tensor,
    right: Tensor,
    rcond: float | None = None,
    *,
    driver: str | None = None,
) -> object:
    """The solution with residuals, ranks and singular values; None where the residuals depend on
    the rank."""
    driver = driver or ("gelsy" if matrix.device.type == "cpu" else "gels")
    rows, columns = matrix.shape[-2:]
    if matrix.dim() != right.dim() or (driver in ("gelsd", "gelss") and rows > columns):
        return None

    broadcast: Any = torch.broadcast_shapes
    batch = broadcast(matrix.shape[:-2], right.shape[:-2])
    count = right.shape[-1]
    solved = matrix.new_empty((*batch, count, max(rows, columns))).mT[..., :columns, :]

    real = matrix.real if matrix.is_complex() else matrix
    has_residuals = driver == "gels" and rows > columns
    residuals = real.new_empty((*batch, count) if has_residuals else (0,))
    ranks = matrix.new_empty((0,) if driver == "gels" else matrix.shape[:-2], dtype=torch.int64)
    has_values = driver in ("gelsd", "gelss")
    values = real.new_empty((*matrix.shape[:-2], min(rows, columns)) if has_values else (0,))
    return solved, residuals, ranks, values


KERNELS: dict[Any, Callable[..., Any]] = {
    aten._ctc_loss.default: _ctc_loss,
    aten._ctc_loss.Tensor: _ctc_loss,
    aten._ctc_loss_backward.default: _ctc_gradient,
    aten._ctc_loss_backward.Tensor: _ctc_gradient,
    aten.linalg_lstsq.default: _lstsq,
}
CALLERS = frozenset(
    (torch.ctc_loss, torch._ctc_loss, torch.nn.functional.ctc_loss, torch.linalg.lstsq, *KERNELS)
)
"""Functions that reach one of these operators."""
