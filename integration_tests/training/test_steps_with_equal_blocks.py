"""Whole training steps over equal blocks, whose calls are repeated in a trace: compiled once."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import stator
import torch
from torch import Tensor, nn


def stack() -> nn.Sequential:
    torch.manual_seed(0)
    layers = [nn.Sequential(nn.Linear(4, 4), nn.GELU()) for _ in range(3)]
    return nn.Sequential(*layers, nn.Linear(4, 4))


def accumulating(model: nn.Module) -> Callable[[Tensor], Any]:
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)

    def step(x: Tensor) -> Any:
        optimizer.zero_grad()
        for part in x:
            model(part).square().mean().backward()
        optimizer.step()

    return step


def of_two_models(model: nn.Module) -> Callable[[Tensor], Any]:
    judge = nn.Sequential(nn.Linear(4, 4), nn.Linear(4, 1))
    optimizers = [torch.optim.Adam(each.parameters()) for each in (model, judge)]

    def step(x: Tensor) -> Any:
        for optimizer in reversed(optimizers):
            optimizer.zero_grad()
            judge(model(x)).mean().backward()
            optimizer.step()

    return step


def with_counter(model: nn.Module) -> Callable[[Tensor], Any]:
    """Each block is changed in the call, by which their calls differ."""

    def step(x: Tensor) -> Any:
        for block in model.children():
            counted: Any = block
            counted.calls = getattr(block, "calls", 0) + 1
        return model(x).sum()

    return step


@pytest.mark.parametrize(
    "make", [accumulating, pytest.param(of_two_models, marks=pytest.mark.slow), with_counter]
)
def test_a_step_over_equal_blocks_is_compiled_once(make: Callable[..., Any]) -> None:
    plain, model = stack(), stack()
    torch.manual_seed(1)
    step = make(plain)
    torch.manual_seed(1)
    compiled = stator.compile(make(model), backend="eager")
    for number in range(2):
        x = torch.full((2, 2, 4), float(number))
        step(x), compiled(x)
    count = compiled.report.entry_count
    for number in range(4):
        x = torch.full((2, 2, 4), float(number))
        step(x), compiled(x)

    assert compiled.report.entry_count - count <= (make is with_counter)
    for one, other in zip(plain.parameters(), model.parameters(), strict=True):
        torch.testing.assert_close(one, other)


def test_a_block_that_comes_twice_later_is_compiled_again() -> None:
    model = stack()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

    def step(x: Tensor) -> Any:
        optimizer.zero_grad()
        model(x).square().mean().backward()
        optimizer.step()
        return [parameter.detach().clone() for parameter in model.parameters()]

    compiled = stator.compile(step, backend="eager")
    x = torch.ones(2, 4)
    for _ in range(3):
        compiled(x)
    model[1] = model[0]
    state = [parameter.detach().clone() for parameter in model.parameters()]
    found = compiled(x)
    with torch.no_grad():
        for parameter, value in zip(model.parameters(), state, strict=True):
            parameter.copy_(value)
    for one, other in zip(found, step(x), strict=True):
        torch.testing.assert_close(one, other)
