"""Models whose parameters are DTensors, on two processes over gloo: one graph, with the values, the
placements and the gradients of plain Python in each process."""

# mypy: disable-error-code="no-untyped-call,attr-defined,arg-type"
# torch's functions have no types.

from __future__ import annotations

import pathlib
from typing import Any

import pytest
import stator
import torch
from torch import Tensor, nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor import DTensor, Replicate, Shard, distribute_tensor, parallel
from torch.distributed.tensor.experimental import local_map

from integration_tests.support.counting import Counting
from integration_tests.support.processes import in_processes


class Feed(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.up = nn.Linear(8, 16)
        self.down = nn.Linear(16, 8)

    def forward(self, x: Tensor) -> Any:
        return self.down(torch.relu(self.up(x)))


class Block(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(8)
        self.feed = Feed()

    def forward(self, x: Tensor) -> Any:
        return x + self.feed(self.norm(x))


def tensor_parallel(mesh: Any) -> tuple[Any, tuple[Tensor, ...]]:
    plan = {"up": parallel.ColwiseParallel(), "down": parallel.RowwiseParallel()}
    return parallel.parallelize_module(Feed(), mesh, plan), (torch.ones(4, 8),)


def sequence_parallel(mesh: Any) -> tuple[Any, tuple[Tensor, ...]]:
    parts = Shard(0)
    plan = {
        "norm": parallel.SequenceParallel(sequence_dim=0),
        "feed": parallel.PrepareModuleInput(
            input_layouts=parts, desired_input_layouts=parts, use_local_output=True
        ),
        "feed.up": parallel.ColwiseParallel(input_layouts=parts),
        "feed.down": parallel.RowwiseParallel(output_layouts=parts),
    }
    return parallel.parallelize_module(Block(), mesh, plan), (torch.ones(4, 8),)


def mapped(mesh: Any) -> tuple[Any, tuple[Tensor, ...]]:
    columns, whole = [Shard(1)], [Replicate()]
    multiply: Any = local_map(lambda a, b: (a @ b).relu(), columns, (whole, columns))
    weight = distribute_tensor(torch.linspace(-1, 1, 64).reshape(8, 8), mesh, columns)

    def f(x: Any, w: Any) -> Any:
        y = multiply(DTensor.from_local(x, mesh, whole), w)
        return y.redistribute(placements=whole).to_local() * mesh.get_local_rank()

    return f, (torch.ones(4, 8), weight.requires_grad_())


def uneven(mesh: Any) -> tuple[Any, tuple[Tensor, ...]]:
    weight = distribute_tensor(torch.linspace(-1, 1, 40).reshape(5, 8), mesh, [Shard(0)])

    def f(w: Any) -> Any:
        return ((w * 2).full_tensor() + 1, w.to_local().sum() * 3)[mesh.get_rank()]

    return f, (weight.requires_grad_(),)


def distributed_result(mesh: Any) -> tuple[Any, tuple[Tensor, ...]]:
    """A result that stays distributed: its gradient is placed as it is, or as a whole."""
    weight = distribute_tensor(torch.linspace(-1, 1, 64).reshape(8, 8), mesh, [Shard(0)])
    given = distribute_tensor(torch.linspace(-2, 2, 32).reshape(4, 8), mesh, [Replicate()])

    def f(x: Any, w: Any) -> Any:
        return nn.functional.linear(x, w).relu()

    return f, (given, weight.requires_grad_())


PROGRAMS = {tensor_parallel: 9, sequence_parallel: 14, mapped: 9, uneven: 6, distributed_result: 2}
"""The programs, with the number of operators in the graph."""


@pytest.mark.slow
def test_two_processes_capture_tensor_parallelism(tmp_path: pathlib.Path) -> None:
    in_processes(_process, tmp_path)


def _process() -> None:
    mesh = init_device_mesh("cpu", (2,), mesh_dim_names=("tp",))
    for program, count in PROGRAMS.items():
        torch.manual_seed(0)
        f, args = program(mesh)
        counting = Counting()
        is_compiled = program in (tensor_parallel, distributed_result)
        backends = (counting, "aot_eager") if is_compiled else (counting,)
        for backend in backends:
            compiled: Any = stator.compile(f, backend=backend, fullgraph=True)
            for _ in range(2):
                found = step(compiled, f, args)
                assert found == step(f, f, args), program.__name__
        (graph,) = counting.graphs
        calls = [node for node in graph.graph.nodes if node.op.startswith("call_")]
        assert len(calls) == count, program.__name__


def step(called: Any, f: Any, args: tuple[Tensor, ...]) -> Any:
    """Return the result of a call, and the gradients of all leaves."""
    result = called(*args)
    total = result.sum()
    total = total.full_tensor() if isinstance(total, DTensor) else total
    total.backward()
    parameters = [*f.parameters()] if isinstance(f, nn.Module) else []
    leaves = [*parameters, *(arg for arg in args if arg.requires_grad)]
    found = [described(each) for each in (result, *(leaf.grad for leaf in leaves))]
    for leaf in leaves:
        leaf.grad = None
    return found


def described(tensor: Any) -> Any:
    if isinstance(tensor, DTensor):
        return repr(tensor.placements), tensor.shape, tensor.to_local().tolist()
    return None if tensor is None else (tensor.requires_grad, tensor.tolist())
