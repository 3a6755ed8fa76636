"""A training loop as people write it: forward, loss, backward, clip, AdamW step, learning rate
schedule."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn


def make_training() -> tuple[nn.Module, torch.optim.AdamW]:
    """A small classifier with dropout and its optimiser, the same on every call."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(21)
        layers = [nn.Linear(16, 32), nn.LayerNorm(32), nn.GELU(), nn.Dropout(0.1), nn.Linear(32, 4)]
        model = nn.Sequential(*layers).train()
    return model, torch.optim.AdamW(model.parameters(), lr=1e-2, weight_decay=0.05)


def train(
    model: nn.Module,
    optimizer: torch.optim.Optimizer,
    forward: Callable[..., Tensor],
    *,
    steps: int = 5,
) -> dict[str, Any]:
    """Train ``model`` through ``forward`` (the model itself or compiled); what a user would look at
    afterwards."""
    schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: 0.9**step)
    data = torch.Generator().manual_seed(22)
    losses = []
    for _ in range(steps):
        x = torch.randn(8, 16, generator=data)
        loss = nn.functional.cross_entropy(forward(x), (x.sum(1) > 0).long())
        optimizer.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        schedule.step()
        losses.append(loss.item())
    return {
        "losses": losses,
        "weights": dict(model.state_dict()),
        "optimizer": optimizer.state_dict(),
    }
