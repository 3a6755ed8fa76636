"""Inductor's option `freezing`: weights of an inference graph become constants."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import stator
import torch
from torch import Tensor, nn
from torch._inductor import config

inductor: Any = config
FREEZING = {"freezing": True}


class Counted(nn.Module):
    """A layer whose buffer is written by each call."""

    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(3, 3)
        self.register_buffer("calls", torch.zeros(()))
        self.calls: Tensor

    def forward(self, x: Tensor) -> Any:
        self.calls += 1
        return self.linear(x) + self.calls


def folded() -> nn.Module:
    torch.manual_seed(0)
    return nn.Sequential(nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), nn.ReLU()).eval()


def is_frozen(compiled: Callable[[Tensor], Tensor], model: nn.Module) -> bool:
    """Return True if results do not follow a change of the weight in place."""
    x = torch.randn(2, 3, 8, 8)
    with torch.no_grad():
        before = compiled(x)
        torch.testing.assert_close(before, model(x))
        model.get_parameter("0.weight").mul_(0)
        return torch.equal(compiled(x), before)


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # Inductor's import gives one
def test_weight_of_a_small_layer_is_frozen_until_it_is_replaced() -> None:
    model = nn.Sequential(nn.Linear(3, 2)).eval()
    compiled: Any = stator.compile(model, options=FREEZING)
    x = torch.randn(2, 3)
    with torch.no_grad():
        before = compiled(x)
        torch.testing.assert_close(before, model(x))
        kept = model.get_parameter("0.weight")
        kept.mul_(0)
        assert torch.equal(compiled(x), before)
        for weight in (nn.Parameter(torch.randn(2, 3)), kept):
            setattr(model[0], "weight", weight)
            expected = before if weight is kept else model(x)
            torch.testing.assert_close(compiled(x), expected)
    assert (compiled.report.entry_count, len(compiled.report.breaks)) == (2, 0)


@pytest.mark.slow
def test_weights_are_folded() -> None:
    model = folded()
    assert is_frozen(stator.compile(model, options=FREEZING), model)
    model = folded()
    assert not is_frozen(stator.compile(model), model)


@pytest.mark.slow
def test_setting_of_inductor_is_followed() -> None:
    model = folded()
    with inductor.patch(freezing=True):
        assert is_frozen(stator.compile(model), model)


@pytest.mark.slow
def test_replaced_weight_compiles_again() -> None:
    model = folded()
    compiled: Any = stator.compile(model, options=FREEZING)
    x = torch.randn(2, 3, 8, 8)
    with torch.no_grad():
        for _ in range(2):
            torch.testing.assert_close(compiled(x), model(x))
            weight = nn.Parameter(torch.randn(4, 3, 3, 3))
            setattr(model[0], "weight", weight)  # type: ignore[index]
        torch.testing.assert_close(compiled(x), model(x))
    assert compiled.report.entry_count == 3
    assert not compiled.report.breaks


@pytest.mark.slow
def test_graph_with_gradients_is_not_frozen() -> None:
    model = nn.Linear(3, 3)
    compiled = stator.compile(model, options=FREEZING)
    compiled(torch.ones(2, 3)).sum().backward()
    assert model.weight.grad is not None
    assert torch.equal(model.weight.grad, torch.full((3, 3), 2.0))


@pytest.mark.slow
def test_buffer_that_is_written_is_not_frozen() -> None:
    model, plain = Counted().eval(), Counted().eval()
    plain.load_state_dict(model.state_dict())
    compiled = stator.compile(model, options=FREEZING)
    with torch.no_grad():
        for _ in range(3):
            x = torch.randn(2, 3)
            torch.testing.assert_close(compiled(x), plain(x))
    assert torch.equal(model.calls, plain.calls)
