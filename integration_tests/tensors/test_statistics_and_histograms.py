"""Functions of torch that look at values in C, captured as the operators that they consist of."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest
import stator
import torch
from torch import Tensor
from torch.nn import functional as F

from integration_tests.support.oracle import assert_same

X = torch.linspace(-1, 2, 12, dtype=torch.float64).reshape(3, 4).sin()
CAPTURED: dict[str, Callable[[Tensor], Any]] = {
    "covariance": lambda x: (
        torch.cov(x),
        x.cov(correction=0),
        x[0].cov(),
        torch.cov(x.to(torch.complex64)),
    ),
    "of integers": lambda x: torch.cov((x.detach() * 9).long()),
    "correlation": lambda x: (torch.corrcoef(x), x[0].corrcoef(), x.to(torch.complex64).corrcoef()),
    "combinations": lambda x: (
        torch.combinations(x[0]),
        torch.combinations(x[0], with_replacement=True),
        torch.combinations(x[0], 2),
    ),
    "negative log likelihood": lambda x: F.gaussian_nll_loss(x, x * 2, x * x),
}
BROKEN: dict[str, Callable[[Tensor], Any]] = {
    "weights": lambda x: torch.cov(x, aweights=torch.ones(4)),
    "three at a time": lambda x: torch.combinations(x[0], 3),
    "negative variance": lambda x: F.gaussian_nll_loss(x, x * 2, x - 3),
    "of three dimensions": lambda x: torch.cov(x[None]),
    "unique": torch.unique,
    "connectionist loss": lambda x: F.ctc_loss(
        x.view(4, 1, 3).log_softmax(-1),
        torch.tensor([[1, 2]]),
        torch.tensor([4]),
        torch.tensor([2]),
    ),
}


def given() -> tuple[Tensor, ...]:
    return (X.clone().requires_grad_(),)


@pytest.mark.parametrize("title", CAPTURED)
def test_it_is_captured_in_one_graph(title: str) -> None:
    compiled = stator.compile(CAPTURED[title], backend="eager", fullgraph=True)
    assert_same(CAPTURED[title], compiled, given, calls=2)
    assert len(compiled.report.graphs) == 1


@pytest.mark.parametrize("title", BROKEN)
def test_break_gives_what_plain_python_gives(title: str) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert_same(BROKEN[title], stator.compile(BROKEN[title], backend="eager"), given, calls=2)


def test_covariance_without_degrees_of_freedom() -> None:
    compiled = stator.compile(lambda x: torch.cov(x, correction=4), backend="eager")
    with warnings.catch_warnings(action="ignore"):
        torch.testing.assert_close(compiled(X), torch.cov(X, correction=4), equal_nan=True)


def test_sizes_that_change() -> None:
    def f(x: Tensor) -> Any:
        return torch.corrcoef(x) + torch.cov(x)

    compiled = stator.compile(f, backend="eager", fullgraph=True)
    for rows, columns in [(3, 4), (3, 5), (3, 7), (4, 6)]:
        x = torch.randn(rows, columns)
        torch.testing.assert_close(compiled(x), f(x))
    assert len(compiled.report.graphs) <= 3


@pytest.mark.parametrize(
    "function", [partial(torch.sparse.mm, reduce="sum"), partial(torch.sparse.mm, reduce="amax")]
)
@pytest.mark.filterwarnings("ignore:Sparse CSR tensor support")
def test_products_of_sparse_tensors(function: Any) -> None:
    compiled = stator.compile(lambda a, b: function(a, b) * 2, backend="eager", fullgraph=True)
    sparse, dense = X.relu().to_sparse_csr(), X.t().contiguous()
    torch.testing.assert_close(compiled(sparse, dense), function(sparse, dense) * 2)
