"""Whole training steps in one region: forward, backward as one break, the step of the optimizer."""

from __future__ import annotations

import copy
from collections.abc import Callable
from functools import partial
from typing import Any, cast

import pytest
import stator
import torch
import torch.nn.functional as F
from torch import Tensor, nn, optim
from torch.nn.utils import clip_grad_norm_
from torch.optim.swa_utils import AveragedModel

from .optimizer_pair import assert_equal, stepping_as_compiled


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


STEPS: dict[Callable[..., object], int] = {
    plainly: 4,  # once without, once with gradients and state
    clipped: 3,
    accumulated: 4,
    scaled: 5,  # one break where the scaler looks for infinities
    by_grad: 3,
    penalized: 5,
    averaged: 7,  # the number of updates decides twice what is averaged, and how
    functional: 3,
}
"""Training steps with the number of graphs that all their calls need."""


@pytest.mark.parametrize(("step", "graphs"), STEPS.items())
def test_training_step(step: Callable[..., object], graphs: int) -> None:
    plain, traced = World(), World()
    compiled: Any = stator.compile(partial(step, traced), backend="eager")
    for number in range(4):
        generator = torch.Generator().manual_seed(number)
        x = torch.randn(6, 8, generator=generator)
        y = torch.randint(0, 4, (6,), generator=generator)
        with stepping_as_compiled(plain.optimizer):
            expected = step(plain, x, y)
        assert_equal(expected, compiled(x, y))
        assert_equal(plain.contents(), traced.contents())
    assert compiled.report.graph_count <= graphs


# -- where a compiler needs several graphs ---------------------------------------------------------
def over_batches(world: World, batches: list[tuple[Tensor, Tensor]]) -> object:
    """Each step is followed by the next forward pass, which reads what it has written."""
    total = torch.zeros(())
    for x, y in batches:
        total = total + cast(Tensor, plainly(world, x, y))
    return total


def test_step_and_next_forward_pass_are_compiled_apart() -> None:
    plain, traced = World(), World()
    compiled: Any = stator.compile(partial(over_batches, traced), backend="aot_eager")
    for number in range(3):
        generator = torch.Generator().manual_seed(number)
        x, y = torch.randn(6, 8, generator=generator), torch.arange(6) % 4
        batches = [(x, y), (x * 2, y), (x + 1, y)]
        torch.testing.assert_close(compiled(batches), over_batches(plain, batches))
    torch.testing.assert_close(traced.contents(), plain.contents())
    assert not [entry.uncompiled for entry in compiled.report.entries if entry.uncompiled]


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
@pytest.mark.parametrize("retain", [False, True])
def test_backward_frees_no_history_of_another_result(backend: str, retain: bool) -> None:
    """The graph before the first backward has two results with nothing in common."""

    def step(modules: list[nn.Module], x: Tensor) -> object:
        first, second = (module(x).exp() for module in modules)
        first.sum().backward(retain_graph=retain)
        (second * second).sum().backward()
        return second.detach()

    def both() -> list[nn.Module]:
        torch.manual_seed(0)
        return [nn.Linear(3, 2), nn.Linear(3, 2)]

    plain, traced = both(), both()
    compiled = stator.compile(step, backend=backend)
    for _ in range(3):
        x = torch.ones(4, 3)
        torch.testing.assert_close(compiled(traced, x), step(plain, x))
    for one, two in zip(plain, traced, strict=True):
        gradients = [[each.grad for each in module.parameters()] for module in (one, two)]
        torch.testing.assert_close(*gradients)


def test_second_backward_of_a_freed_history_raises() -> None:
    def step(x: Tensor) -> Tensor:
        shared = x.exp()
        first: Any = shared.sin().sum()
        second: Any = shared.cos().sum()
        first.backward()
        second.backward()
        return shared

    for function in (step, stator.compile(step, backend="aot_eager")):
        with pytest.raises(RuntimeError, match="backward through the graph a second time"):
            function(torch.ones(3, requires_grad=True))
