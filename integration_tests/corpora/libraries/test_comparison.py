"""The comparison of other people's functions itself: what it takes for a difference, and what
not."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor
from torch.nn import functional

from integration_tests.corpora.libraries.comparison import check, functions, kinds_taken


def of_two(x: Tensor, y: Tensor) -> Tensor:
    if x.shape != y.shape:
        raise ValueError("sizes")
    return (x - y).mean()


def asking(x: Tensor) -> Any:
    return x + int(torch.compiler.is_compiling())


def test_a_function_is_called_with_what_it_takes() -> None:
    assert 0 not in kinds_taken(of_two)
    assert all(report.graph_count for report in check(of_two))


def test_a_function_that_gives_something_else_is_found() -> None:
    with pytest.raises(AssertionError, match="not what plain Python gives"):
        list(check(asking))


def test_what_a_module_has_for_everybody() -> None:
    found = functions(functional.__name__)
    assert "mse_loss" in found
    assert "_verify_batch_size" not in found
