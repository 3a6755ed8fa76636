"""The form of a training script: what it builds, the step that is compiled, and its state."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any, TypeAlias

import torch
from torch import nn
from torch.optim import Optimizer
from torch.optim.lr_scheduler import LRScheduler

Compile: TypeAlias = Callable[[Callable[..., Any]], Callable[..., Any]]


class Script:
    """A training loop in the style of a library.

    A subclass builds its models, optimizers and whatever else its library keeps as attributes.
    `step` is compiled; `after` is what the loop does between two steps.
    """

    def batch(self, number: int) -> tuple[Any, ...]:
        """Return the arguments of a step."""
        raise NotImplementedError

    def step(self, *batch: Any) -> object:
        raise NotImplementedError

    def after(self, number: int) -> None:
        """Do nothing between two steps."""

    def state(self) -> dict[str, Any]:
        """Return all tensors and numbers that the script keeps, and the random state."""
        kept = {name: _contents(value) for name, value in vars(self).items()}
        return {**kept, "torch": torch.get_rng_state(), "random": random.getstate()}

    def optimizers(self) -> list[Optimizer]:
        return [each for each in vars(self).values() if isinstance(each, Optimizer)]


def _contents(value: Any) -> Any:
    if isinstance(value, nn.Module):
        gradients = [parameter.grad for parameter in value.parameters()]
        return [*value.state_dict().items(), gradients]
    if isinstance(value, Optimizer | LRScheduler | torch.amp.GradScaler):
        return _contents(value.state_dict())
    if isinstance(value, dict):
        return {key: _contents(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_contents(item) for item in value]
    if isinstance(value, torch.Tensor | int | float | str | None):
        return value
    if hasattr(value, "__dict__"):
        return _contents(vars(value))
    return None


def data(number: int, *shapes: Any) -> list[torch.Tensor]:
    """Return tensors that depend on the number of the step alone."""
    generator = torch.Generator().manual_seed(number)
    return [torch.randn(shape, generator=generator) for shape in shapes]


def classes(number: int, count: int, *shape: int) -> torch.Tensor:
    generator = torch.Generator().manual_seed(number)
    return torch.randint(count, shape, generator=generator)
