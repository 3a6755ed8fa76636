"""Batch normalization whose momentum changes, or is the mean over all batches."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import stator
import torch
from torch import nn

CALLS = 5


def _outcome(run: Callable[..., Any], model: nn.Module, momentum: float | None) -> list[Any]:
    found: list[Any] = []
    for number in range(CALLS):
        for layer in model.modules():
            if isinstance(layer, nn.BatchNorm1d) and momentum is not None:
                layer.momentum = momentum / (number + 1)
        torch.manual_seed(number)
        result = run(torch.randn(4, 3))
        found += [result.detach(), *(value.clone() for value in model.state_dict().values())]
    return found


def _layers(momentum: float | None) -> nn.Module:
    torch.manual_seed(0)
    return nn.Sequential(
        nn.BatchNorm1d(3, momentum=momentum), nn.Tanh(), nn.BatchNorm1d(3, momentum=momentum)
    )


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
@pytest.mark.parametrize("momentum", [None, 0.4])
def test_running_statistics_are_those_of_eager(momentum: float | None, backend: str) -> None:
    plain, other = _layers(momentum), _layers(momentum)
    compiled: Any = stator.compile(other, backend=backend)
    expected, found = _outcome(plain, plain, momentum), _outcome(compiled, other, momentum)
    for one, two in zip(expected, found, strict=True):
        assert torch.equal(one, two)


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
def test_mean_over_all_batches_is_one_break_and_no_recompilation(backend: str) -> None:
    """The factor is a number of the graph; only the operator that needs its value breaks."""
    layer = nn.BatchNorm1d(3, momentum=None)
    compiled: Any = stator.compile(layer, backend=backend)
    _outcome(compiled, layer, None)
    entries = compiled.report.entry_count
    assert len(compiled.report.breaks) == 1
    _outcome(compiled, layer, None)
    assert compiled.report.entry_count == entries
    assert not [entry.uncompiled for entry in compiled.report.entries if entry.uncompiled]
