"""`math.pow` of a number that changes is computed in the graph, where the number is positive."""

from __future__ import annotations

import math
from types import SimpleNamespace

import pytest
import stator
import torch


def counted(world: SimpleNamespace, x: torch.Tensor) -> tuple[torch.Tensor, float]:
    world.step += 1
    decay = 1.0 - math.pow(world.step, world.by)
    return x * decay, decay


@pytest.mark.parametrize("by", [-0.8, 2, 0.5, 0.0])
def test_power_of_a_counter(by: float) -> None:
    plain, traced = (SimpleNamespace(step=1, by=by) for _ in range(2))
    compiled = stator.compile(counted, backend="eager")
    for _ in range(5):
        expected, decay = counted(plain, torch.ones(2))
        result, found = compiled(traced, torch.ones(2))
        assert torch.equal(result, expected)
        assert found == decay
        assert type(found) is float
    assert compiled.report.entry_count == 2


def test_power_of_a_number_that_becomes_negative() -> None:
    compiled = stator.compile(lambda x, n: x * math.pow(n, 3), backend="eager")
    for n in (5, 4, 3, -2, -3, 0, 7):
        assert compiled(torch.ones(1), n).item() == float(n**3)


def test_power_outside_of_its_domain_raises() -> None:
    compiled = stator.compile(lambda x, n: x * math.pow(n, 0.5), backend="eager")
    for n in (4, 9, 16):
        assert compiled(torch.ones(1), n).item() == math.sqrt(n)
    with pytest.raises(ValueError, match="math domain error"):
        compiled(torch.ones(1), -4)
