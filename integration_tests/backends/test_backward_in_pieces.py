"""Backward passes inside of graphs that run in pieces: gradients are those of plain Python, whether
they pass from piece to piece, end at values of the graph, or are computed twice."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import pytest
import stator
import torch
from torch import Tensor, nn

Middle = Callable[[Any], Any]


def dense(x: Any) -> Any:
    return x.cos()


def sparse(x: Any) -> Any:
    """Run natively, so that pieces end and begin here."""
    return (x.to_sparse() * 2).to_dense()


class Block(nn.Module):
    """A block of enough operators to be a piece with `regions="always"`."""

    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(4, 4)

    def forward(self, x: Any) -> Any:
        y = self.linear(x).sin().cos()
        return x + (y * 2).tanh().sigmoid() * 0.5


def whole_step(model: Any, x: Tensor, middle: Middle) -> Any:
    loss = model[3](middle(model[2](model[1](model[0](x))))).sum()
    loss.backward()
    return loss.detach()


def loss_is_returned(model: Any, x: Tensor, middle: Middle) -> Any:
    loss = model[2](model[1](middle(model[0](x)))).sum()
    loss.backward()
    return loss


def gradient_penalty(model: Any, x: Tensor, middle: Middle) -> Any:
    hidden = model[0](x)
    (gradient,) = torch.autograd.grad(model[2](model[1](middle(hidden))).sum(), hidden)
    return gradient * 2


def gradients_of_value_and_weight(model: Any, x: Tensor, middle: Middle) -> Any:
    hidden = middle(model[0](x)).sin()
    inputs = [hidden, model[0].linear.weight]
    return torch.autograd.grad(model[2](model[1](hidden)).sum(), inputs)


def attack(model: Any, x: Tensor, middle: Middle) -> Any:
    attacked = (x * 1.5).detach().requires_grad_()
    loss = model[2](model[1](middle(model[0](attacked)))).sum()
    (gradient,) = torch.autograd.grad(loss, attacked)
    return attacked.detach() + gradient.sign()


def leaf_of_the_graph(model: Any, x: Tensor, middle: Middle) -> Any:
    weight = torch.ones(4, 4, requires_grad=True)
    model[2](model[1](middle(model[0](x @ weight)))).sum().backward()
    assert weight.grad is not None
    return weight.grad * 2


def history_is_kept_for_a_second_backward(model: Any, x: Tensor, middle: Middle) -> Any:
    first = model[1](middle(model[0](x))).sum()
    first.backward(retain_graph=True)
    second = model[2](middle(x)).sum() + first
    second.backward()
    return first.detach()


def written_in_place(model: Any, x: Tensor, middle: Middle) -> Any:
    y = torch.zeros(3, 4)
    y.add_(model[0](x))
    y = middle(y)
    y.mul_(2)
    model[2](model[1](y)).sum().backward()
    return y.detach()


def generator_and_discriminator(model: Any, x: Tensor, middle: Middle) -> Any:
    fake = model[0](x)
    loss = model[2](model[1](middle(fake.detach()))).sum()
    loss.backward()
    model[1].zero_grad()
    other = model[2](model[1](middle(fake))).sum()
    other.backward()
    return loss.detach(), other.detach()


def two_steps_of_an_optimizer(model: Any, x: Tensor, middle: Middle) -> Any:
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    for _ in range(2):
        optimizer.zero_grad()
        loss = model[2](middle(model[1](model[0](x)))).pow(2).sum()
        loss.backward()
        optimizer.step()
    return loss.detach()


def step_of_a_stack(model: Any, x: Tensor) -> None:
    model(x).sum().backward()


STEPS = [
    whole_step,
    loss_is_returned,
    gradient_penalty,
    gradients_of_value_and_weight,
    attack,
    leaf_of_the_graph,
    history_is_kept_for_a_second_backward,
    written_in_place,
    generator_and_discriminator,
    two_steps_of_an_optimizer,
]


@pytest.mark.parametrize("step", STEPS)
@pytest.mark.parametrize(
    ("middle", "regions"),
    [
        (sparse, "off"),
        pytest.param(dense, "always", marks=pytest.mark.slow),
        pytest.param(sparse, "always", marks=pytest.mark.slow),
    ],
)
def test_gradients_are_those_of_plain_python(
    step: Callable[..., Any], middle: Middle, regions: str
) -> None:
    torch.manual_seed(0)
    plain = nn.Sequential(*(Block() for _ in range(4)))
    model, x = copy.deepcopy(plain), torch.randn(3, 4)
    options = {"regions": regions, "uncompiled": "allow"}
    compiled: Any = stator.compile(step, backend="aot_eager", options=options)
    for _ in range(2):
        expected, actual = step(plain, x, middle), compiled(model, x, middle)
        torch.testing.assert_close(actual, expected)
        for ours, theirs in zip(model.parameters(), plain.parameters(), strict=True):
            torch.testing.assert_close(ours.grad, theirs.grad)
            torch.testing.assert_close(ours, theirs)

    reasons = {each.reason for each in compiled.report.uncompiled}
    assert reasons <= {"sparse tensors", "a write to a tensor that has gradients"}
    assert bool(reasons) is (middle is sparse)


def test_training_step_of_equal_blocks() -> None:
    torch.manual_seed(0)
    plain = nn.Sequential(*(Block() for _ in range(5)))
    model, x = copy.deepcopy(plain), torch.randn(3, 4)

    compiled: Any = stator.compile(
        step_of_a_stack, backend="aot_eager", options={"regions": "always"}
    )
    step_of_a_stack(plain, x)
    compiled(model, x)
    for ours, theirs in zip(model.parameters(), plain.parameters(), strict=True):
        torch.testing.assert_close(ours.grad, theirs.grad)


@pytest.mark.slow
def test_training_step_of_large_blocks_under_inductor() -> None:
    torch.manual_seed(0)
    plain = nn.Sequential(*(Block() for _ in range(5)))
    model, x = copy.deepcopy(plain), torch.randn(1 << 15, 4)
    compiled: Any = stator.compile(step_of_a_stack, backend="inductor")
    for _ in range(2):
        step_of_a_stack(plain, x)
        compiled(model, x)
        for ours, theirs in zip(model.parameters(), plain.parameters(), strict=True):
            torch.testing.assert_close(ours.grad, theirs.grad, rtol=1e-3, atol=1e-3)
