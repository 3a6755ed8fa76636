"""A small GPT, trained with tensor parallelism and `fully_shard` on a mesh of processes.

    torchrun --nproc-per-node 4 train_gpt.py --tensor 2 --steps 3 --checkpoint state
    torchrun --nproc-per-node 2 train_gpt.py --tensor 2 --steps 3 --checkpoint state --resume

Each block is compiled in place. A checkpoint is independent of the number of processes, and
`torch.distributed.checkpoint` loads it without stator. `--plain` trains without a compiler.
"""

import argparse
import pathlib
from typing import Any

import stator
import torch
import torch.distributed as dist
import torch.distributed.checkpoint as dcp
from torch import Tensor, nn
from torch.distributed.checkpoint.state_dict import get_state_dict, set_state_dict
from torch.distributed.device_mesh import DeviceMesh, init_device_mesh
from torch.distributed.fsdp import fully_shard
from torch.distributed.tensor.parallel import (
    ColwiseParallel,
    RowwiseParallel,
    parallelize_module,
)

VOCABULARY, WIDTH, HEADS, LENGTH, BLOCKS, BATCH = 64, 32, 4, 16, 2, 8


class Attention(nn.Module):
    """Causal attention over the heads that this process has."""

    def __init__(self) -> None:
        super().__init__()
        self.query, self.key, self.value = (nn.Linear(WIDTH, WIDTH) for _ in range(3))
        self.out = nn.Linear(WIDTH, WIDTH)

    def forward(self, x: Tensor) -> Any:
        parts = [
            layer(x).unflatten(-1, (-1, WIDTH // HEADS)).transpose(1, 2)
            for layer in (self.query, self.key, self.value)
        ]
        mixed = nn.functional.scaled_dot_product_attention(
            parts[0], parts[1], parts[2], is_causal=True
        )
        return self.out(mixed.transpose(1, 2).flatten(2))


class Block(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.before_attention, self.before_feed = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
        self.attention = Attention()
        self.up, self.down = nn.Linear(WIDTH, 4 * WIDTH), nn.Linear(4 * WIDTH, WIDTH)

    def forward(self, x: Tensor) -> Any:
        x = x + self.attention(self.before_attention(x))
        return x + self.down(nn.functional.gelu(self.up(self.before_feed(x))))


class GPT(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.tokens, self.places = nn.Embedding(VOCABULARY, WIDTH), nn.Embedding(LENGTH, WIDTH)
        self.blocks = nn.ModuleList(Block() for _ in range(BLOCKS))
        self.norm, self.head = nn.LayerNorm(WIDTH), nn.Linear(WIDTH, VOCABULARY)

    def forward(self, tokens: Tensor) -> Any:
        x = self.tokens(tokens) + self.places(torch.arange(tokens.shape[1]))
        for block in self.blocks:
            x = block(x)
        return self.head(self.norm(x))


PLAN: dict[str, Any] = {
    "attention.query": ColwiseParallel(),
    "attention.key": ColwiseParallel(),
    "attention.value": ColwiseParallel(),
    "attention.out": RowwiseParallel(),
    "up": ColwiseParallel(),
    "down": RowwiseParallel(),
}


def build(mesh: DeviceMesh, backend: str) -> Any:
    """Divide a model among the processes, and compile its blocks."""
    torch.manual_seed(0)
    model = GPT()
    for block in model.blocks:
        parallelize_module(block, mesh["tensor"], PLAN)
        fully_shard(block, mesh=mesh["data"])
        if backend:
            stator.compile_in_place(block, backend=backend)
    return fully_shard(model, mesh=mesh["data"])


def batch(step: int, mesh: DeviceMesh) -> Tensor:
    """Return the part of this process of a batch, which is the same for any number of them."""
    generator = torch.Generator().manual_seed(step)
    start = torch.randint(VOCABULARY, (BATCH, 1), generator=generator)
    whole = (start + 3 * torch.arange(LENGTH + 1)) % VOCABULARY
    return whole.chunk(mesh["data"].size())[mesh["data"].get_local_rank()]


def train_step(model: nn.Module, optimizer: torch.optim.Optimizer, tokens: Tensor) -> Tensor:
    logits = model(tokens[:, :-1])
    loss = nn.functional.cross_entropy(logits.flatten(0, 1), tokens[:, 1:].flatten())
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
    return loss.detach()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tensor", type=int, default=1, help="processes that share a layer")
    parser.add_argument("--steps", type=int, default=3)
    parser.add_argument("--checkpoint", type=pathlib.Path)
    parser.add_argument("--resume", action="store_true")
    parser.add_argument("--backend", default="inductor")
    parser.add_argument("--plain", action="store_true")
    given = parser.parse_args()

    dist.init_process_group("gloo")
    shape = (dist.get_world_size() // given.tensor, given.tensor)
    mesh = init_device_mesh("cpu", shape, mesh_dim_names=("data", "tensor"))
    model = build(mesh, "" if given.plain else given.backend)
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)

    first = 0
    if given.resume:
        weights, moments = get_state_dict(model, optimizer)
        state: dict[str, Any] = {"model": weights, "optimizer": moments, "step": 0}
        dcp.load(state, checkpoint_id=given.checkpoint)
        set_state_dict(
            model, optimizer, model_state_dict=state["model"], optim_state_dict=state["optimizer"]
        )
        first = state["step"]

    for step in range(first, first + given.steps):
        loss = train_step(model, optimizer, batch(step, mesh))
        dist.all_reduce(loss, group=mesh["data"].get_group())
        if dist.get_rank() == 0:
            print(f"step {step} loss {loss.item() / shape[0]:.6f}", flush=True)

    if dist.get_rank() == 0 and not given.plain:
        report = stator.report_of(model.blocks[0])
        print(f"a block: {len(report.graphs)} graphs, {len(report.breaks)} breaks", flush=True)

    if given.checkpoint is not None:
        weights, moments = get_state_dict(model, optimizer)
        state = {"model": weights, "optimizer": moments, "step": first + given.steps}
        dcp.save(state, checkpoint_id=given.checkpoint)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
