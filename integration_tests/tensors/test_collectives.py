"""Functional collectives over gloo: captured in one graph by each of two processes, and equal to
plain Python's."""

from __future__ import annotations

import pathlib
from collections.abc import Callable
from typing import Any

import pytest
import stator
import torch
import torch.distributed as dist
from torch import Tensor
from torch.distributed.tensor import Replicate, Shard, experimental
from torch.utils import _pytree as pytree

from integration_tests.support.counting import Counting
from integration_tests.support.processes import in_processes

SPLIT, WHOLE = [Shard(0)], [Replicate()]
local_map: Any = experimental.local_map  # torch leaves it without types


def world() -> Any:
    return dist.group.WORLD


def all_reduced(x: Tensor) -> Any:
    import torch.distributed._functional_collectives as collectives

    return collectives.all_reduce(x * 2, "sum", world()) + dist.get_rank()


def all_gathered(x: Tensor) -> Any:
    import torch.distributed._functional_collectives as collectives

    return collectives.all_gather_tensor(x * 2, 0, world()) + dist.get_world_size()


def reduced_and_scattered(x: Tensor) -> Any:
    import torch.distributed._functional_collectives as collectives

    return collectives.reduce_scatter_tensor(x * 2, "sum", 0, world()) + 1


def broadcast(x: Tensor) -> Any:
    import torch.distributed._functional_collectives as collectives

    return collectives.broadcast(x * 2, 1, world()) + 1


def gathered_with_gradients(x: Tensor) -> Any:
    import torch.distributed._functional_collectives as collectives

    return collectives.all_gather_tensor_autograd(x * 2, 0, world()).sin()


def gathered_along_columns(x: Tensor) -> Any:
    import torch.distributed._functional_collectives as collectives

    rows = x.sin().reshape(2, 2)
    return collectives.all_gather_tensor_autograd(rows, 1, world()) + 1


@torch.no_grad()
def reduced_in_place(x: Tensor) -> Any:
    y = x * 2
    given = dist.all_reduce(y), dist.all_reduce(y[:2], op=dist.ReduceOp.MAX, group=world())
    return y, given, y.sum() + dist.get_rank()


@torch.no_grad()
def gathered_into_others(x: Tensor) -> Any:
    together, apart = x.new_zeros(8), [x.new_zeros(4) for _ in range(2)]
    dist.all_gather_into_tensor(together, x * 2)
    dist.all_gather(apart, x + 1)
    return together, apart


@torch.no_grad()
def scattered_and_exchanged(x: Tensor) -> Any:
    part, exchanged = x.new_zeros(2), torch.zeros_like(x)
    dist.reduce_scatter_tensor(part, x * 3)
    dist.all_to_all_single(exchanged, x * 5)
    return part, exchanged + 1


@torch.no_grad()
def reduced_argument(x: Tensor) -> Any:
    x = x.detach()
    dist.all_reduce(x, async_op=False)
    return x + 1


@torch.no_grad()
def waited_for_later(x: Tensor) -> Any:
    y, together, work = x * 2, x.new_zeros(8), []
    work.append(dist.all_reduce(y, async_op=True))
    work.append(dist.all_gather_into_tensor(together, x + 1, group=world(), async_op=True))
    z = x.sin()
    waited = [each.wait() for each in work]
    return y + 1, together, z, waited, isinstance(work[0], dist.Work)


IN_PLACE: tuple[Callable[[Tensor], Any], ...] = (
    reduced_in_place,
    gathered_into_others,
    scattered_and_exchanged,
    reduced_argument,
    waited_for_later,
)


def mapped_over_local_parts(x: Tensor) -> Any:
    scale = x * 2
    multiplied = local_map(lambda a, n: (a * n + scale, a.sum()), (SPLIT, WHOLE), (SPLIT, None))
    total, part = multiplied(x.sin(), 3)
    return total + part


@torch.no_grad()
def waited_for_behind_a_break(x: Tensor) -> Any:
    y = x * 2
    work: Any = dist.all_reduce(y, async_op=True)
    stator.graph_break()
    return y * work.wait()


@torch.no_grad()
def waited_for_by_the_caller(x: Tensor) -> Any:
    y = x * 2
    return dist.all_reduce(y, async_op=True), y


@torch.no_grad()
def between_others(x: Tensor) -> Any:
    y = x * 2
    dist.all_reduce(y)
    dist.barrier()
    work: Any = dist.all_reduce(y, async_op=True)
    is_completed = work.is_completed() in (True, False)
    work.wait()
    dist.broadcast(y, 1)
    return y, is_completed


def with_functions_of_modules(x: Tensor) -> Any:
    from torch.distributed.nn import functional

    return functional.all_reduce(x * 2) + 1  # type: ignore[no-untyped-call]


def with_gradients(x: Tensor) -> Any:
    y = x * 2
    dist.all_reduce(y)
    return y + 1


@torch.no_grad()
def of_another_layout(x: Tensor) -> Any:
    y = (x * 2).reshape(2, 2).t()
    dist.all_reduce(y)
    return y + 1


@torch.no_grad()
def with_too_many_arguments(x: Tensor) -> Any:
    y = x * 2
    reduce: Any = dist.all_reduce
    try:
        reduce(y, dist.ReduceOp.SUM, None, False, 7)
    except TypeError:
        y += 3
    return y + 1


PREMULTIPLIED = dist._make_nccl_premul_sum(2.0)  # type: ignore[attr-defined]


@torch.no_grad()
def with_an_operator_of_nccl(x: Tensor) -> Any:
    y = x * 2
    try:
        dist.all_reduce(y, op=PREMULTIPLIED)
    except RuntimeError:
        y += 3
    return y + 1


NOT_CAPTURED: tuple[Callable[[Tensor], Any], ...] = (
    waited_for_behind_a_break,
    waited_for_by_the_caller,
    between_others,
    with_functions_of_modules,
    with_gradients,
    of_another_layout,
    with_too_many_arguments,
    with_an_operator_of_nccl,
)
PROGRAMS: tuple[Callable[[Tensor], Any], ...] = (
    all_reduced,
    all_gathered,
    reduced_and_scattered,
    broadcast,
    gathered_with_gradients,
    gathered_along_columns,
    mapped_over_local_parts,
)


@pytest.mark.parametrize("is_sample", [True, pytest.param(False, marks=pytest.mark.slow)])
def test_two_processes_capture_collectives(is_sample: bool, tmp_path: pathlib.Path) -> None:
    in_processes(_process, tmp_path, args=(is_sample,))


def _process(is_sample: bool) -> None:
    count = 1 if is_sample else len((*PROGRAMS, *IN_PLACE, *NOT_CAPTURED))
    for functional in PROGRAMS[:count]:
        check_functional(functional)

    rank = dist.get_rank()
    for program in IN_PLACE[:count]:
        for backend in ("eager", "aot_eager"):
            assert_alike(program, stator.compile(program, backend=backend, fullgraph=True), rank)

    for broken in NOT_CAPTURED[:count]:
        compiled = stator.compile(broken, backend="eager")
        assert_alike(broken, compiled, rank)
        assert compiled.report.breaks, broken.__name__


def check_functional(program: Any) -> None:
    """Compare values and gradients, in one graph."""
    counting = Counting()
    for backend in (counting, "aot_eager"):
        x = (torch.arange(4.0) + dist.get_rank()).requires_grad_()
        y = x.detach().clone().requires_grad_()
        compiled = stator.compile(program, backend=backend, fullgraph=True)
        expected, actual = program(x), compiled(y)
        assert torch.equal(expected, actual), program.__name__
        if program is broadcast and backend == "aot_eager":
            continue  # torch has no formula for its gradient, and AOT stops there
        expected.sum().backward()
        actual.sum().backward()
        assert x.grad is not None
        assert y.grad is not None
        assert torch.equal(x.grad, y.grad), program.__name__
    assert counting.count == 1


def assert_alike(program: Any, compiled: Any, rank: int) -> None:
    x, y = ((torch.arange(4.0) + rank).requires_grad_() for _ in range(2))
    expected, actual = (
        pytree.tree_leaves(done(fn(given))) for fn, given in ((program, x), (compiled, y))
    )
    assert len(expected) == len(actual), program.__name__
    for one, other in zip(expected, actual, strict=True):
        is_tensor = isinstance(one, Tensor)
        assert torch.equal(one, other) if is_tensor else one == other, program.__name__
    assert torch.equal(x, y), program.__name__


def done(result: Any) -> Any:
    """Return a result once what it waits for is there."""
    if isinstance(result, tuple) and isinstance(result[0], dist.Work):
        return result[0].wait(), *result[1:]
    return result
