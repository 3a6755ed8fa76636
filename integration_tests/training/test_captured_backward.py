"""`backward` and `autograd.grad` in a region: forward, backward and step of an optimizer in one
graph, equal to eager bit by bit."""

from __future__ import annotations

import copy
from collections.abc import Callable
from functools import partial
from typing import Any

import attrs
import pytest
import stator
import torch
import torch.nn.functional as F
from torch import Tensor, nn, optim

from .optimizer_pair import as_a_compiler_sees, assert_equal


class Attention(nn.Module):
    """A block of a small GPT whose head is its embedding."""

    def __init__(self) -> None:
        super().__init__()
        self.tokens, self.norm = nn.Embedding(11, 8), nn.LayerNorm(8)
        self.attention, self.mlp = nn.Linear(8, 24), nn.Linear(8, 8)
        self.head = nn.Linear(8, 11, bias=False)
        self.head.weight = self.tokens.weight

    def forward(self, x: Tensor) -> Tensor:
        x = self.tokens((x.abs() * 3).long() % 11)
        q, k, v = self.attention(self.norm(x)).chunk(3, -1)
        x = x + F.scaled_dot_product_attention(q, k, v, is_causal=True)
        return self.head(x + F.gelu(self.mlp(x))).mean(-1)  # type: ignore[no-any-return]


def perceptron() -> nn.Module:
    return nn.Sequential(nn.Linear(6, 8), nn.Tanh(), nn.Linear(8, 6))


def convolution() -> nn.Module:
    body = nn.Sequential(nn.Conv1d(1, 3, 3, padding=1), nn.BatchNorm1d(3), nn.ReLU())
    return nn.Sequential(nn.Unflatten(1, (1, 6)), body, nn.Flatten(), nn.Linear(18, 6))


MODELS: dict[str, Callable[[], nn.Module]] = {
    "mlp": perceptron,
    "conv": convolution,
    "gpt": Attention,
}


def sgd(model: nn.Module) -> optim.Optimizer:
    return optim.SGD(model.parameters(), lr=0.1, momentum=0.9)


def adamw(model: nn.Module) -> optim.Optimizer:
    return optim.AdamW(model.parameters(), lr=0.01)


@attrs.define(eq=False)
class World:
    """A model with its optimizer, and the gradient objects that it has had."""

    model: nn.Module
    optimizer: optim.Optimizer
    log: list[object] = attrs.Factory(list)

    @classmethod
    def of(cls, model: str = "mlp", optimizer: Any = sgd) -> World:
        torch.manual_seed(0)
        made = MODELS[model]()
        return cls(made, optimizer(made))

    @property
    def parameters(self) -> list[nn.Parameter]:
        return [*self.model.parameters()]

    def state(self) -> list[Any]:
        """All that a step may change, and what can be read of it."""
        gradients = [each.grad for each in self.parameters]
        facts = [
            None if each is None else (each.stride(), each.requires_grad, each.grad_fn is None)
            for each in gradients
        ]
        buffers = [each.clone() for each in self.model.buffers()]
        return copy.deepcopy([self.parameters, gradients, facts, buffers, self.log])

    def counters(self) -> list[Any]:
        """The version counters, which a compiler does not keep."""
        gradients = [each.grad for each in self.parameters]
        versions = [None if each is None else each._version for each in gradients]
        return [versions, [each._version for each in self.parameters]]


Step = Callable[[World, Tensor, Tensor], object]


def data(number: int) -> tuple[Tensor, Tensor]:
    generator = torch.Generator().manual_seed(number)
    return torch.randn(4, 6, generator=generator), torch.randn(4, 6, generator=generator)


def facts_of(result: Any) -> Any:
    """The values of a result, and whether it has a history."""
    if isinstance(result, tuple | list):
        return [facts_of(each) for each in result]
    if isinstance(result, Tensor):
        return result.detach().clone(), result.requires_grad, result.grad_fn is None
    return result


def compared(step: Step, make: Callable[[], World], backend: str, steps: int = 6) -> Any:
    """Compare a compiled step with the step itself, and return its report."""
    plain, traced = make(), make()
    compiled: Any = stator.compile(partial(step, traced), backend=backend)
    for number in range(steps):
        before = [[each.grad for each in world.parameters] for world in (plain, traced)]
        with as_a_compiler_sees(plain.optimizer):
            expected = facts_of(step(plain, *data(number)))
        found = facts_of(compiled(*data(number)))
        if backend == "eager":
            assert_equal(expected, found)
            assert_equal(plain.state(), traced.state())
            assert_equal(plain.counters(), traced.counters())
        else:
            torch.testing.assert_close(found, expected, rtol=1e-4, atol=1e-5)
            torch.testing.assert_close(traced.state(), plain.state(), rtol=1e-4, atol=1e-5)
        assert kept(before[0], plain) == kept(before[1], traced)
    return compiled.report


def kept(before: list[Tensor | None], world: World) -> list[bool]:
    """Which gradients are the objects that they were."""
    return [old is new.grad for old, new in zip(before, world.parameters, strict=True)]


def loss_of(world: World, x: Tensor, y: Tensor) -> Any:
    return F.mse_loss(world.model(x), y)


# -- steps -----------------------------------------------------------------------------------------
def plainly(world: World, x: Tensor, y: Tensor) -> object:
    world.optimizer.zero_grad()
    loss = loss_of(world, x, y)
    loss.backward()
    world.optimizer.step()
    return loss


def zeroed(world: World, x: Tensor, y: Tensor) -> object:
    world.optimizer.zero_grad(set_to_none=False)
    loss = loss_of(world, x, y)
    loss.backward()
    world.optimizer.step()
    return loss.detach()


def zeroed_afterwards(world: World, x: Tensor, y: Tensor) -> object:
    loss = loss_of(world, x, y)
    loss.backward()
    world.optimizer.step()
    world.optimizer.zero_grad()
    return [each.grad is None for each in world.parameters]


def accumulated(world: World, x: Tensor, y: Tensor) -> object:
    world.optimizer.zero_grad()
    for part, target in zip(x.chunk(2), y.chunk(2), strict=True):
        loss = loss_of(world, part, target) / 2
        loss.backward()
    world.optimizer.step()
    return loss


def over_calls(world: World, x: Tensor, y: Tensor) -> object:
    loss = loss_of(world, x, y)
    loss.backward()
    return loss.detach()


def clipped(world: World, x: Tensor, y: Tensor) -> object:
    world.optimizer.zero_grad()
    loss_of(world, x, y).backward()
    norm = nn.utils.clip_grad_norm_(world.model.parameters(), 0.1)
    world.optimizer.step()
    return norm


def in_bfloat16(world: World, x: Tensor, y: Tensor) -> object:
    world.optimizer.zero_grad()
    with torch.autocast("cpu", dtype=torch.bfloat16):
        loss: Any = F.mse_loss(world.model(x).float(), y)
    loss.backward()
    world.optimizer.step()
    return loss


def several_roots(world: World, x: Tensor, y: Tensor) -> object:
    world.optimizer.zero_grad()
    out = world.model(x)
    torch.autograd.backward([out, out.pow(2).sum()], [y, None])
    world.optimizer.step()
    return out


def with_gradient(world: World, x: Tensor, y: Tensor) -> object:
    world.optimizer.zero_grad()
    out: Any = world.model(x)
    out.backward(gradient=y)
    world.optimizer.step()
    return out


def for_inputs(world: World, x: Tensor, y: Tensor) -> object:
    world.optimizer.zero_grad()
    loss = loss_of(world, x, y)
    loss.backward(inputs=world.parameters[:1])
    world.optimizer.step()
    return [each.grad is None for each in world.parameters]


def second_order(world: World, x: Tensor, y: Tensor) -> object:
    world.optimizer.zero_grad()
    loss = loss_of(world, x, y)
    found = torch.autograd.grad(loss, world.parameters, create_graph=True)
    penalty: Any = loss + sum(each.square().sum() for each in found)
    penalty.backward()
    world.optimizer.step()
    return found, penalty


def by_grad(world: World, x: Tensor, y: Tensor) -> object:
    out = world.model(x)
    inner, *outer = torch.autograd.grad(F.mse_loss(out, y), [out, *world.parameters])
    for parameter, gradient in zip(world.parameters, outer, strict=True):
        parameter.grad = gradient
    world.optimizer.step()
    return inner


def two_steps(world: World, x: Tensor, y: Tensor) -> object:
    first = plainly(world, x, y)
    return first, plainly(world, y, x)


def observed(world: World, x: Tensor, y: Tensor) -> object:
    """Look at gradients between the operators."""
    world.optimizer.zero_grad()
    assert world.parameters[0].grad is None
    loss_of(world, x, y).backward()
    gradient: Any = world.parameters[0].grad
    gradient.mul_(2)
    seen = gradient.sum(), gradient is world.parameters[0].grad, gradient.requires_grad
    world.optimizer.step()
    return seen


STEPS: list[Step] = [
    *(plainly, zeroed, zeroed_afterwards, accumulated, over_calls, clipped, in_bfloat16),
    *(several_roots, with_gradient, for_inputs, second_order, by_grad, two_steps, observed),
]


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
@pytest.mark.parametrize("step", STEPS)
def test_step_is_one_graph(step: Step, backend: str) -> None:
    report = compared(step, World.of, backend)
    assert not report.breaks
    assert report.graph_count <= 2


@pytest.mark.parametrize("optimizer", [sgd, adamw])
@pytest.mark.parametrize("model", MODELS)
def test_model_and_optimizer(model: str, optimizer: Any) -> None:
    report = compared(plainly, partial(World.of, model, optimizer), "eager")
    assert not report.breaks
    assert report.graph_count <= 2
