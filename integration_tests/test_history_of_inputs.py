"""`grad_fn`, `grad` and `is_leaf` of a tensor from outside that operators of the graph gave a history, or took it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import stator
import torch
from torch import Tensor

from integration_tests.oracle import assert_same


def history(y: Tensor) -> tuple[Any, ...]:
    return y.grad_fn is None, type(y.grad_fn).__name__, y.is_leaf, y.requires_grad, y.output_nr


def written_to(x: Tensor, y: Tensor) -> Any:
    y.mul_(x)
    return history(y)


def written_through_a_view(x: Tensor, y: Tensor) -> Any:
    y[0].add_(x[0])
    return history(y)


def copied_into(x: Tensor, y: Tensor) -> Any:
    y.copy_(x)
    return history(y), y.grad is None


def detached(x: Tensor, y: Tensor) -> Any:
    y.detach_()
    return history(y), y.grad is None


def asked_for_gradients(x: Tensor, y: Tensor) -> Any:
    y.requires_grad_()
    return history(y), y.grad is None


def asked_without_being_written_to(x: Tensor, y: Tensor) -> Any:
    z = x * y
    return z, history(y)


def asked_after_a_break(x: Tensor, y: Tensor) -> Any:
    y.copy_(x)
    stator.graph_break()
    return history(y)


def an_attribute_of_a_gradient_that_is_none(x: Tensor, y: Tensor) -> Any:
    y.copy_(x.unbind()[-1])
    return y.grad.t()  # type: ignore[union-attr]


def made_a_leaf_and_used(x: Tensor, y: Tensor) -> Any:
    y.detach_()
    z = y * 2
    return z, y.grad_fn, y.grad


def make(kind: str) -> tuple[Tensor, Tensor]:
    x = torch.linspace(1, 2, 4).reshape(2, 2).requires_grad_(kind != "no gradients")
    if kind in ("a leaf", "no gradients"):
        return x, torch.zeros(2, 2)
    y = x * 2
    if kind == "with a gradient":
        y.retain_grad()
        y.sum().backward(retain_graph=True)  # type: ignore[no-untyped-call]
    return x, y


USES: tuple[Callable[[Tensor, Tensor], Any], ...] = (
    written_to,
    written_through_a_view,
    copied_into,
    detached,
    asked_for_gradients,
    asked_without_being_written_to,
)
USES += (asked_after_a_break, an_attribute_of_a_gradient_that_is_none, made_a_leaf_and_used)


@pytest.mark.parametrize("kind", ["a leaf", "no gradients", "computed", "with a gradient"])
@pytest.mark.parametrize("use", USES, ids=lambda fn: fn.__name__.replace("_", " "))
def test_history_is_that_of_now(use: Callable[[Tensor, Tensor], Any], kind: str) -> None:
    """The inputs are made inside: a copy of a computed tensor would be a leaf."""

    def through(run: Callable[[Tensor, Tensor], Any]) -> Callable[[int], Any]:
        return lambda n: run(*make(kind))

    torch.set_warn_always(True)
    try:
        assert_same(through(use), through(stator.compile(use, backend="eager")), lambda: (1,), calls=3)
    finally:
        torch.set_warn_always(False)
