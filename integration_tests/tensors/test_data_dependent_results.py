"""Functions of torch whose result depends on data in one part only: the rest of them is
captured."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import pytest
import stator
import torch
from torch import Tensor
from torch.nn import functional as F

from integration_tests.support.counting import Counting
from integration_tests.support.oracle import Tolerance, assert_same

ROUNDED = Tolerance(1e-4, 1e-4)


def utterances(count: int) -> tuple[Any, ...]:
    scores = torch.randn(12, count, 5, requires_grad=True)
    targets = torch.randint(1, 5, (count, 6))
    return scores, targets, torch.full((count,), 12), torch.randint(1, 6, (count,))


def ctc(scores: Tensor, targets: Tensor, steps: Any, lengths: Any) -> Any:
    return F.ctc_loss(scores.log_softmax(-1), targets, steps, lengths, zero_infinity=True) * 2


def ctc_of_each(scores: Tensor, targets: Tensor, steps: Any, lengths: Any) -> Any:
    found = F.ctc_loss(scores.log_softmax(-1), targets, steps, lengths, reduction="none")
    return found, scores.sum()


def ctc_without_enough_steps(scores: Tensor, targets: Tensor, steps: Any, lengths: Any) -> Any:
    return F.ctc_loss(scores.log_softmax(-1), targets, steps + 100, lengths)


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
@pytest.mark.parametrize("fn", [ctc, ctc_of_each])
def test_ctc_loss_is_one_graph_with_its_gradient(fn: Callable[..., Any], backend: str) -> None:
    torch.manual_seed(0)
    compiled = stator.compile(fn, backend=backend, fullgraph=True)
    for count in (3, 4, 5):
        assert_same(fn, compiled, partial(utterances, count), calls=1, tolerance=ROUNDED)
    assert compiled.report.compile_count == 2
    assert not any(entry.uncompiled for entry in compiled.report.entries)


def test_ctc_loss_with_lengths_in_tuples() -> None:
    torch.manual_seed(0)
    scores, targets, steps, lengths = utterances(3)
    arguments = scores, targets, tuple(steps.tolist()), tuple(lengths.tolist())
    compiled = stator.compile(ctc_of_each, backend="aot_eager", fullgraph=True)
    assert_same(ctc_of_each, compiled, lambda: arguments, tolerance=ROUNDED)


def test_ctc_loss_of_invalid_lengths_raises_as_it_does_natively() -> None:
    torch.manual_seed(0)
    arguments = utterances(3)
    compiled = stator.compile(ctc_without_enough_steps, backend="eager")
    assert_same(ctc_without_enough_steps, compiled, lambda: arguments)


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
def test_least_squares_stay_in_the_graph(backend: str) -> None:
    def solve(matrix: Tensor, right: Tensor) -> Any:
        found = torch.linalg.lstsq(matrix, right)
        return found.solution.sin(), found.residuals.shape, found.rank + 1

    torch.manual_seed(0)
    compiled = stator.compile(solve, backend=backend, fullgraph=True)
    for rows in (5, 6, 7):
        pair = torch.randn(rows, 3, requires_grad=True), torch.randn(rows, 2)
        assert_same(solve, compiled, partial(tuple, pair), calls=1, tolerance=ROUNDED)
    assert compiled.report.compile_count == 2


def test_least_squares_whose_residuals_depend_on_the_rank_break() -> None:
    def solve(matrix: Tensor, right: Tensor) -> Any:
        return torch.linalg.lstsq(matrix, right, driver="gelsd").residuals

    compiled = stator.compile(solve, backend="eager")
    right = torch.ones(5, 2)
    for matrix in (torch.eye(5, 3), torch.ones(5, 3)):
        assert_same(solve, compiled, partial(tuple, (matrix, right)), tolerance=ROUNDED)
    assert {reason.reason for reason in compiled.report.breaks} == {"data-dependent-shape"}


def is_close(x: Tensor, y: Tensor) -> Any:
    return (x + 1 if torch.allclose(x * 2, y, rtol=1e-3) else x - 1), (x * 2).allclose(other=y)


X = torch.tensor([1.0, 2.0, 3.0])
PAIRS = {
    "equal": (X, X * 2),
    "different": (X, X),
    "not a number": (X, X * torch.nan),
    "broadcast": (X, torch.tensor(4.0)),
    "other sizes": (X, torch.ones(2)),
    "other dtypes": (X, X.double()),
    "gradients": (X.clone().requires_grad_(), X * 2),
    "complex": (X * 1j, X * 2j),
    "no tensor": (X, 3.0),
}


@pytest.mark.parametrize("name", PAIRS)
def test_allclose_gives_what_it_gives_natively(name: str) -> None:
    compiled = stator.compile(is_close, backend="eager")
    assert_same(is_close, compiled, lambda: PAIRS[name])


def test_allclose_is_computed_in_the_graph_before_the_branch() -> None:
    counting = Counting()
    compiled: Any = stator.compile(lambda x, y: torch.allclose(x.sin(), y), backend=counting)
    assert not compiled(X, X.clone())
    assert compiled(X, X.sin())
    (graph,) = counting.graphs
    assert torch.isclose in {node.target for node in graph.graph.nodes}
    assert [reason.reason for reason in compiled.report.breaks] == ["data-dependent-branch"]
