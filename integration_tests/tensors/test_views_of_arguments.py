"""A tensor and a view of it, both arguments: their sizes change together, whichever is read
first."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import stator
import torch
from torch import Tensor

from integration_tests.support.description import describe, differences

VIEWS: dict[str, Callable[[Tensor], Tensor]] = {
    "whole": lambda base: base[:],
    "rows": lambda base: base[1:],
    "transposed": lambda base: base.T,
    "flat": lambda base: base.view(-1),
    "conjugate": lambda base: base.to(torch.complex64).conj(),
    "detached": lambda base: base.detach()[:],
}


def view_first(view: Tensor, base: Tensor) -> Any:
    return view + 1, base.shape, base.mH.shape, base.numel() * 2, view.shape


def base_first(view: Tensor, base: Tensor) -> Any:
    return base.sum(0), view.shape, view * base.shape[0], view.numel() + base.numel()


def written(view: Tensor, base: Tensor) -> Any:
    base.mul_(2)
    return view + base.shape[0], base.shape


def arguments(name: str, rows: int) -> tuple[Tensor, Tensor]:
    """Not the oracle's copies: a copied view is no view any more."""
    view = VIEWS[name](torch.linspace(0, 1, 3 * rows).reshape(rows, 3).clone())
    assert view._base is not None
    return view, view._base


@pytest.mark.parametrize("dynamic", [None, True])
@pytest.mark.parametrize("fn", [view_first, base_first, written])
@pytest.mark.parametrize("name", VIEWS)
def test_sizes_of_a_view_and_of_its_base_change_together(
    name: str, fn: Any, dynamic: bool | None
) -> None:
    compiled = stator.compile(fn, backend="eager", dynamic=dynamic)
    for rows in (2, 3, 2, 5, 4):
        plain, ours = arguments(name, rows), arguments(name, rows)
        expected, found = fn(*plain), compiled(*ours)
        assert not differences(
            describe(args=plain, result=expected), describe(args=ours, result=found)
        )
