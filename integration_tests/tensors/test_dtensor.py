"""Tensors of `torch.distributed.tensor` on a mesh of one process: plain Python's answers, by breaks
that say why."""

# mypy: disable-error-code="no-untyped-call"
# torch's functions have no types.

from __future__ import annotations

import pathlib
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import stator
import torch
import torch.distributed as dist
from torch import Tensor
from torch.distributed.device_mesh import init_device_mesh

pytestmark = pytest.mark.skipif(
    not dist.is_available(), reason="torch was built without distributed"
)


@pytest.fixture(scope="module")
def mesh(tmp_path_factory: Any) -> Iterator[Any]:
    store: pathlib.Path = tmp_path_factory.mktemp("group") / "store"
    dist.init_process_group("gloo", init_method=f"file://{store}", rank=0, world_size=1)
    yield init_device_mesh("cpu", (1,))
    dist.destroy_process_group()


def doubled(mesh: Any, x: Any, d: Any) -> Any:
    return d * 2 + 1, x.sin()


def unpacked(mesh: Any, x: Any, d: Any) -> Any:
    return d.to_local() * x


def packed(mesh: Any, x: Any, d: Any) -> Any:
    from torch.distributed.tensor import DTensor, Replicate

    made: Any = DTensor.from_local(x * 2, mesh, [Replicate()]) * d
    return made.to_local() + 1


def through_a_layer(mesh: Any, x: Any, d: Any) -> Any:
    total: Any = torch.nn.functional.linear(d, d).sum()
    return total.to_local() * x


def local(tensors: Any) -> list[Tensor]:
    from torch.distributed.tensor import DTensor

    found: tuple[Any, ...] = tensors if isinstance(tensors, tuple) else (tensors,)
    return [part.to_local() if isinstance(part, DTensor) else part for part in found]


@pytest.mark.parametrize("program", [doubled, unpacked, packed, through_a_layer])
def test_distributed_tensor_is_left_to_torch(program: Callable[..., Any], mesh: Any) -> None:
    from torch.distributed.tensor import Shard, distribute_tensor

    def results(fn: Callable[..., Any]) -> list[Tensor]:
        x = torch.linspace(-1, 1, 9).reshape(3, 3).requires_grad_()
        found = local(fn(mesh, x, distribute_tensor(x.detach(), mesh, [Shard(0)])))
        sum(tensor.sum() for tensor in found).backward()  # type: ignore[union-attr]
        assert x.grad is not None
        return [*found, x.grad]

    compiled = stator.compile(program, backend="eager")
    for _ in range(2):
        assert all(map(torch.equal, results(compiled), results(program)))
    assert "tensor-subclass" in {met.reason for met in compiled.report.breaks}
    assert {met.reason for met in compiled.report.breaks} <= {
        "tensor-subclass",
        "not-inlined",
        "construction",
    }


def test_local_map_over_plain_tensors_is_captured(mesh: Any) -> None:
    from torch.distributed.tensor import Replicate
    from torch.distributed.tensor.experimental import local_map

    placed = [Replicate()]
    mapped = local_map(lambda a, b: a * b + 1, placed, (placed, placed), device_mesh=mesh)
    compiled = stator.compile(lambda x: mapped(x, x.cos()) * 2, backend="eager", fullgraph=True)
    x = torch.linspace(-1, 1, 6)
    assert torch.equal(compiled(x), (x * x.cos() + 1) * 2)
