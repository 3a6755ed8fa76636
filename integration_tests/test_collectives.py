"""Functional collectives over gloo: captured in one graph by each of two processes, and equal to plain Python's."""

from __future__ import annotations

import pathlib
import warnings
from collections.abc import Callable
from typing import Any

import stator
import torch
import torch.distributed as dist
import torch.multiprocessing
from torch import Tensor

from integration_tests.counting import Counting


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


PROGRAMS: tuple[Callable[[Tensor], Any], ...] = (
    all_reduced,
    all_gathered,
    reduced_and_scattered,
    broadcast,
    gathered_with_gradients,
)


def test_two_processes_capture_collectives(tmp_path: pathlib.Path) -> None:
    multiprocessing: Any = torch.multiprocessing  # not typed
    multiprocessing.spawn(_process, (f"file://{tmp_path}/meeting",), nprocs=2)


def _process(rank: int, meeting: str) -> None:
    warnings.simplefilter("ignore")  # the names that users call are deprecated ones
    dist.init_process_group("gloo", init_method=meeting, rank=rank, world_size=2)
    for program in PROGRAMS:
        counting = Counting()
        for backend in (counting, "aot_eager"):
            x = (torch.arange(4.0) + rank).requires_grad_()
            y = x.detach().clone().requires_grad_()
            expected, actual = program(x), stator.compile(program, backend=backend, fullgraph=True)(y)
            assert torch.equal(expected, actual), program.__name__
            if program is broadcast and backend == "aot_eager":
                continue  # torch has no formula for its gradient, and AOT stops there
            expected.sum().backward()
            actual.sum().backward()
            assert x.grad is not None
            assert y.grad is not None
            assert torch.equal(x.grad, y.grad), program.__name__
        assert counting.count == 1
    dist.destroy_process_group()
