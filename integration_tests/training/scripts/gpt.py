"""The loop of `docs/how-to/compile-a-training-step.md`: a GPT with all that its training needs."""

# mypy: ignore-errors
# The code of libraries is not typed strictly.

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn, optim
from torch.utils.checkpoint import checkpoint

from .script import Script, classes


class Block(nn.Module):
    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.norm_1, self.norm_2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.attention = nn.Linear(width, 3 * width)
        self.projection = nn.Linear(width, width)
        self.mlp = nn.Sequential(
            nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width), nn.Dropout(0.1)
        )

    def forward(self, x: Tensor) -> Tensor:
        parts = self.attention(self.norm_1(x)).chunk(3, dim=-1)
        q, k, v = (part.unflatten(-1, (self.heads, -1)).transpose(1, 2) for part in parts)
        mixed = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.projection(mixed.transpose(1, 2).flatten(2))
        return x + self.mlp(self.norm_2(x))


class Gpt(nn.Module):
    def __init__(self, vocabulary: int, width: int, layers: int, heads: int, length: int) -> None:
        super().__init__()
        self.tokens, self.positions = nn.Embedding(vocabulary, width), nn.Embedding(length, width)
        self.blocks = nn.ModuleList(Block(width, heads) for _ in range(layers))
        self.norm = nn.LayerNorm(width)
        self.head = nn.Linear(width, vocabulary, bias=False)
        self.head.weight = self.tokens.weight

    def forward(self, ids: Tensor, targets: Tensor) -> Tensor:
        x = self.tokens(ids) + self.positions.weight[: ids.shape[1]]
        for block in self.blocks:
            x = checkpoint(block, x, use_reentrant=False)
        return F.cross_entropy(self.head(self.norm(x)).flatten(0, 1), targets.flatten())


class GptTraining(Script):
    def __init__(self, width: int = 16, layers: int = 2, length: int = 12) -> None:
        self.vocabulary, self.length = 32, length
        self.model = Gpt(self.vocabulary, width, layers, 4, length)
        decayed = [each for each in self.model.parameters() if each.dim() > 1]
        others = [each for each in self.model.parameters() if each.dim() == 1]
        groups = [
            {"params": decayed, "weight_decay": 0.1},
            {"params": others, "weight_decay": 0.0},
        ]
        self.optimizer = optim.AdamW(groups, lr=3e-3, betas=(0.9, 0.95))
        self.schedule = optim.lr_scheduler.CosineAnnealingLR(self.optimizer, 20)

    def batch(self, number: int) -> tuple[Any, ...]:
        shape = self.vocabulary, 4, self.length + 1
        parts = [classes(2 * number + part, *shape) for part in range(2)]
        return ([(part[:, :-1], part[:, 1:]) for part in parts],)

    def step(self, batches: list[tuple[Tensor, Tensor]]) -> object:
        total = 0.0
        for ids, targets in batches:
            with torch.autocast("cpu", dtype=torch.bfloat16):
                loss = self.model(ids, targets) / len(batches)
            loss.backward()
            total = total + loss.detach()
        norm = nn.utils.clip_grad_norm_(self.model.parameters(), 1.0)
        self.optimizer.step()
        self.optimizer.zero_grad(set_to_none=True)
        return total, norm

    def after(self, number: int) -> None:
        self.schedule.step()
