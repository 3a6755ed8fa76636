"""Distributed programs in the forms in which they are trained: what
`docs/reference/distributed.md` compares.

A program builds a model in a process of a group, compiles a part of it with the compiler that it is
given, and returns the model with a function that does one step up to the optimizer's.
"""

# mypy: disable-error-code="no-untyped-call"
# torch's functions have no types.

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import attrs
import torch
import torch.distributed as dist
import torch.distributed._functional_collectives as collectives
from torch import Tensor, nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard
from torch.distributed.pipelining import PipelineStage, ScheduleGPipe
from torch.distributed.tensor import DTensor, Replicate, Shard, distribute_tensor, parallel
from torch.distributed.tensor.experimental import local_map
from torch.nn.parallel import DistributedDataParallel

Compiler = Callable[[Any], Any]
Step = Callable[[], float]
"""Forward and backward; returns the loss."""

WIDTH, ROWS, BLOCKS, HEADS = 16, 8, 3, 2


@attrs.frozen
class Program:
    title: str
    build: Callable[[Compiler], tuple[nn.Module, Step]]
    processes: int = 2


# -- models ----------------------------------------------------------------------------------------
class Feed(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.up, self.down = nn.Linear(WIDTH, 2 * WIDTH), nn.Linear(2 * WIDTH, WIDTH)

    def forward(self, x: Tensor) -> Any:
        return self.down(torch.relu(self.up(x)))


class Block(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.norm, self.feed = nn.LayerNorm(WIDTH), Feed()

    def forward(self, x: Tensor) -> Any:
        return x + self.feed(self.norm(x))


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.blocks = nn.ModuleList(Block() for _ in range(BLOCKS))

    def forward(self, x: Tensor) -> Any:
        for block in self.blocks:
            x = block(x)
        return x.tanh() * 2


class GatheredAttention(nn.Module):
    """Attention of the positions of this process to those of all."""

    def __init__(self) -> None:
        super().__init__()
        self.query, self.key, self.value = (nn.Linear(WIDTH, WIDTH) for _ in range(3))

    def forward(self, x: Tensor) -> Any:
        parts = [
            layer(x).unflatten(-1, (HEADS, -1)).transpose(1, 2)
            for layer in (self.query, self.key, self.value)
        ]
        query, own_key, own_value = parts
        key, value = gathered(own_key), gathered(own_value)
        start = dist.get_rank() * x.shape[1]
        places = torch.arange(start, start + x.shape[1])[:, None]
        is_seen = places >= torch.arange(key.shape[2])
        mixed = nn.functional.scaled_dot_product_attention(query, key, value, attn_mask=is_seen)
        return mixed.transpose(1, 2).flatten(2)


def gathered(part: Tensor) -> Any:
    group: Any = dist.group.WORLD
    return collectives.all_gather_tensor_autograd(part, 2, group)


class MappedLayer(nn.Module):
    """A product of local parts by `local_map`."""

    def __init__(self, mesh: Any) -> None:
        super().__init__()
        columns, whole = [Shard(1)], [Replicate()]
        weight = distribute_tensor(torch.randn(WIDTH, WIDTH), mesh, columns)
        self.weight, self.mesh = nn.Parameter(weight), mesh
        self.multiply: Any = local_map(lambda a, b: (a @ b).relu(), columns, (whole, columns))

    def forward(self, x: Tensor) -> Any:
        placed = DTensor.from_local(x, self.mesh, [Replicate()])
        made = self.multiply(placed, self.weight)
        return made.redistribute(placements=[Replicate()]).to_local() * 2


# -- forms -----------------------------------------------------------------------------------------
def training(net: nn.Module, called: Any, *shape: int) -> tuple[nn.Module, Step]:
    """Return a model with a step that calls it, or what stands for it."""

    def step() -> float:
        loss = called(torch.randn(shape or (ROWS, WIDTH))).square().mean()
        loss.backward()
        return float(loss.detach())

    return net, step


WIDE = 512
BUCKETS: dict[str, Any] = {"bucket_cap_mb": 2}
"""Two layers in a bucket; torch.compile takes none below 1 MiB."""


class WideNet(nn.Module):
    """A class of the program's: torch.compile skips frames of `torch.nn` behind the wrapper."""

    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(WIDE, WIDE) for _ in range(4))

    def forward(self, x: Tensor) -> Any:
        for layer in self.layers:
            x = layer(x)
        return x


def wrapper_compiled(make: Compiler) -> tuple[nn.Module, Step]:
    net: Any = WideNet()
    return training(net, make(DistributedDataParallel(net, **BUCKETS)), ROWS, WIDE)


def wrapper_around_compiled(make: Compiler) -> tuple[nn.Module, Step]:
    net: Any = WideNet()
    return training(net, DistributedDataParallel(make(net), **BUCKETS), ROWS, WIDE)


def sharded() -> Any:
    net: Any = Net()
    mesh = init_device_mesh("cpu", (dist.get_world_size(),))
    for block in net.blocks:
        fully_shard(block, mesh=mesh)
    return fully_shard(net, mesh=mesh)


def sharded_model(make: Compiler) -> tuple[nn.Module, Step]:
    net = sharded()
    return training(net, make(net))


def sharded_blocks(make: Compiler) -> tuple[nn.Module, Step]:
    net = sharded()
    for block in net.blocks:
        block.forward = make(block.forward)
    return training(net, net)


COLUMNS_THEN_ROWS: dict[str, Any] = {
    "feed.up": parallel.ColwiseParallel(),
    "feed.down": parallel.RowwiseParallel(),
}


def tensor_parallel(make: Compiler) -> tuple[nn.Module, Step]:
    mesh = init_device_mesh("cpu", (dist.get_world_size(),))
    net = Net()
    for block in net.blocks:
        parallel.parallelize_module(block, mesh, COLUMNS_THEN_ROWS)
    return training(net, make(net))


def tensor_parallel_and_sharded(make: Compiler) -> tuple[nn.Module, Step]:
    mesh = init_device_mesh("cpu", (2, 2), mesh_dim_names=("data", "tensor"))
    net: Any = Net()
    for block in net.blocks:
        parallel.parallelize_module(block, mesh["tensor"], COLUMNS_THEN_ROWS)
        fully_shard(block, mesh=mesh["data"])
        block.forward = make(block.forward)
    net = fully_shard(net, mesh=mesh["data"])
    return training(net, net)


def sequence_parallel(make: Compiler) -> tuple[nn.Module, Step]:
    mesh = init_device_mesh("cpu", (dist.get_world_size(),))
    parts = Shard(0)
    plan: dict[str, Any] = {
        "norm": parallel.SequenceParallel(sequence_dim=0),
        "feed": parallel.PrepareModuleInput(
            input_layouts=parts, desired_input_layouts=parts, use_local_output=True
        ),
        "feed.up": parallel.ColwiseParallel(input_layouts=parts),
        "feed.down": parallel.RowwiseParallel(output_layouts=parts),
    }
    net = parallel.parallelize_module(Block(), mesh, plan)
    return training(net, make(net))


def mapped(make: Compiler) -> tuple[nn.Module, Step]:
    net = MappedLayer(init_device_mesh("cpu", (dist.get_world_size(),)))
    return training(net, make(net))


def context_parallel(make: Compiler) -> tuple[nn.Module, Step]:
    net = GatheredAttention()
    return training(net, make(net), 2, ROWS, WIDTH)


def pipeline(make: Compiler) -> tuple[nn.Module, Step]:
    """A stage in each process; the last one has the loss."""
    net, rank, size = Net(), dist.get_rank(), dist.get_world_size()
    stage = PipelineStage(make(net), rank, size, torch.device("cpu"))
    schedule = ScheduleGPipe(stage, n_microbatches=2, loss_fn=nn.functional.mse_loss)

    def step() -> float:
        x = torch.randn(2 * ROWS, WIDTH)
        losses: list[Tensor] = []
        target = torch.zeros_like(x)
        if rank == 0:
            schedule.step(x)
        else:
            schedule.step(target=target, losses=losses)
        return float(sum(loss.detach() for loss in losses))

    return net, step


PROGRAMS = (
    Program("`compile(DistributedDataParallel(m))`", wrapper_compiled),
    Program("`DistributedDataParallel(compile(m))`", wrapper_around_compiled),
    Program("`fully_shard`, the model compiled", sharded_model),
    Program("`fully_shard`, each block compiled", sharded_blocks),
    Program("tensor parallelism", tensor_parallel),
    Program("tensor parallelism x `fully_shard`, each block", tensor_parallel_and_sharded, 4),
    Program("sequence parallelism", sequence_parallel),
    Program("`local_map`", mapped),
    Program("context parallelism, keys and values gathered", context_parallel),
    Program("a pipeline of two stages, each compiled", pipeline),
)
