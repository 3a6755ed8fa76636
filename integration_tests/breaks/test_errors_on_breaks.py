"""`error_on_graph_break`: parts of a program in which a break is an error."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import stator
import torch
import torch._dynamo
from torch import Tensor

X = torch.linspace(-1.0, 2.0, 6)


def breaking(x: Tensor) -> Tensor:
    print(end="")
    return x + 1


def error_inside(x: Tensor) -> Tensor:
    with stator.error_on_graph_break(True):
        return breaking(x.sin())


def error_in_a_function(x: Tensor) -> Any:
    return stator.error_on_graph_break(True)(breaking)(x.sin())


def error_after_a_part_without(x: Tensor) -> Tensor:
    with stator.error_on_graph_break(True):
        with stator.error_on_graph_break(False):
            y = breaking(x.sin())
        return breaking(y.cos())


def no_error_before(x: Tensor) -> Tensor:
    y = breaking(x)
    with stator.error_on_graph_break(True):
        return y.sin()


def no_error_after(x: Tensor) -> Tensor:
    with stator.error_on_graph_break(True):
        y = x.sin()
    return breaking(y)


def no_error_in_a_part(x: Tensor) -> Tensor:
    with stator.error_on_graph_break(True):
        y = x.sin()
        with stator.error_on_graph_break(False):
            y = breaking(y)
        return y.cos()


@pytest.mark.parametrize("fn", [error_inside, error_in_a_function, error_after_a_part_without])
def test_break_is_an_error(fn: Callable[..., Any]) -> None:
    compiled = stator.compile(fn, backend="eager")
    for _ in range(2):
        with pytest.raises(stator.Unsupported, match="print"):
            compiled(X)
    assert torch.equal(stator.compile(no_error_after, backend="eager")(X), no_error_after(X))


@pytest.mark.parametrize("fn", [no_error_before, no_error_after, no_error_in_a_part])
def test_break_elsewhere_is_none(fn: Callable[..., Any]) -> None:
    compiled = stator.compile(fn, backend="eager")
    for _ in range(3):
        assert torch.equal(compiled(X), fn(X))
    assert compiled.report.graph_break_count == 1


def test_policy_around_a_call() -> None:
    compiled = stator.compile(lambda x: breaking(x.sin()), backend="eager")
    with stator.error_on_graph_break(True), pytest.raises(stator.Unsupported):
        compiled(X)
    assert torch.equal(compiled(X), X.sin() + 1)


dynamo: Any = torch._dynamo


def entering_that_of_torch(x: torch.Tensor) -> torch.Tensor:
    with dynamo.error_on_graph_break(True):
        return breaking(x + 1)


def leaving_that_of_torch(x: torch.Tensor) -> torch.Tensor:
    with dynamo.error_on_graph_break(True):
        y = x.sin()
    return breaking(y)


def test_manager_of_torch_is_followed() -> None:
    x = torch.linspace(-1.0, 2.0, 4)
    with pytest.raises(stator.Unsupported):
        stator.compile(entering_that_of_torch, backend="eager")(x)
    compiled = stator.compile(leaving_that_of_torch, backend="eager")
    assert torch.equal(compiled(x), leaving_that_of_torch(x))
    assert compiled.report.graph_break_count == 1
    with dynamo.error_on_graph_break(True), pytest.raises(stator.Unsupported):
        stator.compile(breaking, backend="eager", isolate_recompiles=True)(x)
