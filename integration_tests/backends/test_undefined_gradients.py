"""Results without gradients: nothing that only they depend on is differentiated, as in plain
PyTorch, under backends that have one backward pass for all results."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import stator
import torch
from torch import Tensor, nn

Program = Callable[[Tensor], Any]


def beside_a_root(x: Tensor) -> tuple[Tensor, Tensor]:
    return x * 2, x.pow(2).mean().sqrt()


def beside_a_norm(x: Tensor) -> tuple[Tensor, Tensor]:
    return (x * 2).sum(0), x.norm() + x.sum()


def beside_a_quotient(x: Tensor) -> tuple[Tensor, Tensor]:
    y = x * 3
    return y.exp(), y / y.abs().sum()


def beside_a_logarithm(x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    y = x.sin()
    return y + 1, y.log(), x.abs().sqrt() * y


PROGRAMS = [beside_a_root, beside_a_norm, beside_a_quotient, beside_a_logarithm]


def gradient(program: Program, used: tuple[int, ...], retains: bool = False) -> Tensor | None:
    x = torch.zeros(3, 2, requires_grad=True)
    results = program(x)
    loss = sum(results[i].sum() for i in used)
    for _ in range(2 if retains else 1):
        loss.backward(retain_graph=retains)
    return x.grad


@pytest.mark.parametrize("used", [(0,), (1,), (0, 1)])
@pytest.mark.parametrize("program", PROGRAMS)
def test_gradients_are_those_of_plain_pytorch(program: Program, used: tuple[int, ...]) -> None:
    compiled = stator.compile(program, backend="aot_eager")
    for _ in range(2):
        torch.testing.assert_close(
            gradient(compiled, used), gradient(program, used), equal_nan=True
        )


def test_each_call_may_have_gradients_for_other_results() -> None:
    compiled = stator.compile(beside_a_logarithm, backend="aot_eager")
    for used in [(0,), (1,), (0, 2), (0,), (2,), (0, 1, 2), (0, 2)]:
        wanted = gradient(beside_a_logarithm, used)
        torch.testing.assert_close(gradient(compiled, used), wanted, equal_nan=True)
    assert compiled.report.compile_count == 1


def test_a_graph_that_is_retained() -> None:
    compiled = stator.compile(beside_a_root, backend="aot_eager")
    for retains in (True, False, True):
        found = gradient(compiled, (0,), retains)
        torch.testing.assert_close(found, gradient(beside_a_root, (0,), retains))


def test_parameters_of_the_other_results_have_no_gradients() -> None:
    def run(layers: nn.ModuleList, x: Tensor) -> tuple[Tensor, Tensor]:
        return layers[0](x), layers[1](x).sqrt()

    layers = nn.ModuleList([nn.Linear(2, 2), nn.Linear(2, 2)])
    compiled = stator.compile(run, backend="aot_eager")
    torch.autograd.backward(compiled(layers, torch.ones(1, 2))[0].sum())
    assert layers[0].weight.grad is not None
    assert [parameter.grad for parameter in layers[1].parameters()] == [None, None]


def test_a_result_that_a_branch_does_not_take() -> None:
    def run(x: Tensor) -> Tensor:
        distance = x.pow(2).mean().sqrt()
        if distance < 1e-5:
            return x * 2
        return x * distance

    compiled = stator.compile(run, backend="aot_eager")
    for _ in range(2):
        x = torch.zeros(3, requires_grad=True)
        torch.autograd.backward(compiled(x).sum())
        assert x.grad is not None
        assert x.grad.tolist() == [2.0, 2.0, 2.0]


@pytest.mark.slow
@pytest.mark.parametrize("program", PROGRAMS)
def test_under_inductor(program: Program) -> None:
    compiled = stator.compile(program, backend="inductor")
    for used in [(0,), (1,), (0, 1)]:
        torch.testing.assert_close(
            gradient(compiled, used), gradient(program, used), equal_nan=True
        )
