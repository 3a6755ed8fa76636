"""Whole training steps in one region: forward, backward as one break, the step of the optimizer."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

import pytest
import stator
import torch
import torch.nn.functional as F
from torch import Tensor, nn, optim
from torch.nn.utils import clip_grad_norm_
from torch.optim import Optimizer
from torch.optim.swa_utils import AveragedModel

from .optimizer_pair import as_a_compiler_sees, assert_equal


def network() -> nn.Module:
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(8, 16), nn.GELU(), nn.LayerNorm(16), nn.Linear(16, 4))


class World:
    """A model with all that its training needs."""

    def __init__(self) -> None:
        self.model = network()
        self.optimizer = optim.AdamW(self.model.parameters(), lr=0.01)
        self.scaler = torch.amp.GradScaler("cpu", init_scale=8.0)
        self.average = copy.deepcopy(self.model)
        self.averaged = AveragedModel(self.model)

    def contents(self) -> list[Any]:
        models = (self.model, self.average, self.averaged)
        tensors = [parameter for model in models for parameter in model.parameters()]
        return [*tensors, *(parameter.grad for parameter in self.model.parameters())]


def plainly(world: World, x: Tensor, y: Tensor) -> object:
    world.optimizer.zero_grad()
    loss: Any = F.cross_entropy(world.model(x), y)
    loss.backward()
    world.optimizer.step()
    return loss.detach()


def clipped(world: World, x: Tensor, y: Tensor) -> object:
    loss: Any = F.cross_entropy(world.model(x), y)
    loss.backward()
    norm = clip_grad_norm_(world.model.parameters(), 1.0)
    world.optimizer.step()
    world.optimizer.zero_grad(set_to_none=True)
    return norm


def accumulated(world: World, x: Tensor, y: Tensor) -> object:
    total = torch.zeros(())
    for part, target in zip(x.chunk(2), y.chunk(2), strict=True):
        loss: Any = F.cross_entropy(world.model(part), target) / 2
        loss.backward()
        total += loss.detach()
    world.optimizer.step()
    world.optimizer.zero_grad()
    return total


def scaled(world: World, x: Tensor, y: Tensor) -> object:
    with torch.autocast("cpu", dtype=torch.bfloat16):
        loss: Any = F.cross_entropy(world.model(x), y)
    world.scaler.scale(loss).backward()
    world.scaler.unscale_(world.optimizer)
    clip_grad_norm_(world.model.parameters(), 1.0)
    world.scaler.step(world.optimizer)
    world.scaler.update()
    world.optimizer.zero_grad()
    return world.scaler.get_scale()


def by_grad(world: World, x: Tensor, y: Tensor) -> object:
    parameters = [*world.model.parameters()]
    loss: Any = F.cross_entropy(world.model(x), y)
    for parameter, gradient in zip(parameters, torch.autograd.grad(loss, parameters), strict=True):
        parameter.grad = gradient
    world.optimizer.step()
    return loss.detach()


def penalized(world: World, x: Tensor, y: Tensor) -> object:
    x = x.clone().requires_grad_()
    out = world.model(x)
    (gradient,) = torch.autograd.grad(out.sum(), x, create_graph=True)
    loss: Any = F.cross_entropy(out, y) + (gradient.norm(dim=1) - 1).square().mean()
    loss.backward()
    world.optimizer.step()
    world.optimizer.zero_grad()
    return loss.detach()


def averaged(world: World, x: Tensor, y: Tensor) -> object:
    loss = plainly(world, x, y)
    with torch.no_grad():
        pairs = zip(world.average.parameters(), world.model.parameters(), strict=True)
        for mean, parameter in pairs:
            mean.lerp_(parameter, 0.1)
    world.averaged.update_parameters(world.model)
    return loss


def functional(world: World, x: Tensor, y: Tensor) -> object:
    parameters: dict[str, Tensor] = dict(world.model.named_parameters())
    out: Any = torch.func.functional_call(world.model, parameters, (x,))
    loss: Any = F.cross_entropy(out, y)
    loss.backward()
    world.optimizer.step()
    world.optimizer.zero_grad()
    return out.detach()


@contextmanager
def stepping_as_compiled(optimizer: Optimizer) -> Iterator[None]:
    """Let the steps alone take the branches for compilers; the forward pass takes its own."""
    original = optimizer.step

    def step(*args: Any, **kwargs: Any) -> Any:
        with as_a_compiler_sees(optimizer):
            return original(*args, **kwargs)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(optimizer, "step", step)
        yield


STEPS: dict[Callable[..., object], int] = {
    plainly: 4,  # once without, once with gradients and state
    clipped: 3,
    accumulated: 4,
    scaled: 5,  # one break where the scaler looks for infinities
    by_grad: 3,
    penalized: 5,
    averaged: 4,
    functional: 3,
}
"""Training steps with the number of graphs that all their calls need."""


@pytest.mark.parametrize(("step", "graphs"), STEPS.items())
def test_training_step(step: Callable[..., object], graphs: int) -> None:
    plain, traced = World(), World()
    compiled = stator.compile(partial(step, traced), backend="eager")
    for number in range(4):
        generator = torch.Generator().manual_seed(number)
        x = torch.randn(6, 8, generator=generator)
        y = torch.randint(0, 4, (6,), generator=generator)
        with stepping_as_compiled(plain.optimizer):
            expected = step(plain, x, y)
        assert_equal(expected, compiled(x, y))
        assert_equal(plain.contents(), traced.contents())
    assert compiled.report.graph_count <= graphs
