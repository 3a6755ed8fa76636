"""Results that a reentrant checkpoint gives twice: one tensor, but a view for each input."""

# mypy: disable-error-code="no-untyped-call"

from __future__ import annotations

from typing import Any

import pytest
import stator
import torch
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint


def _results(linear: nn.Module, x: Tensor) -> Any:
    def body(value: Tensor) -> tuple[Tensor, ...]:
        y = linear(value).sin()
        z = y.cos()
        return value, y, z, y, z, value

    return checkpoint(body, x, use_reentrant=True)


def combined(linear: nn.Module, x: Tensor) -> Any:
    a, b, c, d, e, f = _results(linear, x)
    same = (a is f, b is d, c is e, b is c, a is x)
    return a + 2 * b + 3 * c + 4 * d * e + f, same


def returned(linear: nn.Module, x: Tensor) -> Any:
    _, b, _, d, *_ = _results(linear, x)
    return b * d, (b is d,), b, d


def changed(linear: nn.Module, x: Tensor) -> Any:
    _, b, _, d, *_ = _results(linear, x)
    b = b * 1
    b.mul_(2)
    return b + d, (b is d,)


def _outcome(program: Any, run: Any) -> list[Any]:
    torch.manual_seed(0)
    linear = nn.Linear(3, 3)
    found: list[Any] = []
    for _ in range(3):
        x = torch.randn(2, 3, requires_grad=True)
        total, same, *results = run(linear, x)
        total.sum().backward()
        found += [total.detach(), torch.tensor(same), x.grad, linear.weight.grad]
        found += [torch.tensor(one is other) for one in results for other in results]
    return found


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
@pytest.mark.parametrize("program", [combined, returned, changed])
def test_repeated_results_are_those_of_eager(program: Any, backend: str) -> None:
    compiled = stator.compile(program, backend=backend)
    found, expected = _outcome(program, compiled), _outcome(program, program)
    assert len(found) == len(expected)
    assert all(map(torch.equal, found, expected))
    assert compiled.report.graph_count == 1
    assert not compiled.report.breaks
