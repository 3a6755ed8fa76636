"""`out` may be the first operand of an operator that has a form in place, and no other one."""

from __future__ import annotations

from typing import Any

import stator
import torch


def products(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    torch.addmm(a, b, b.mT, beta=0.5, out=a)
    return a


def test_first_operand_as_out() -> None:
    compiled = stator.compile(products, backend="eager", fullgraph=True)
    a, b = torch.rand(3, 3), torch.rand(3, 2)
    assert torch.equal(compiled(a.clone(), b), products(a.clone(), b))


def test_number_given_as_a_tensor() -> None:
    def scaled(x: torch.Tensor, y: torch.Tensor, by: Any) -> torch.Tensor:
        return x.addcdiv(y, y + 1, value=by).add_(y, alpha=by)

    compiled = stator.compile(scaled, backend="eager", fullgraph=True)
    for by in (0.1, 0.7, -3.0):
        given = torch.rand(4), torch.rand(4), torch.tensor(by)
        assert torch.equal(compiled(*given), scaled(*given))
    assert compiled.report.graph_count == 1
