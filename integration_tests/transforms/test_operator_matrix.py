"""The page about higher-order operators is true: each cell gives what plain Python gives, and says
how."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import stator
import torch
from torch import Tensor
from torch.utils.checkpoint import checkpoint

from integration_tests.support.oracle import Tolerance, assert_same
from integration_tests.transforms.operator_matrix import (
    BY_LENGTH,
    CELLS,
    OPERATORS,
    SYMBOLIC,
    bare,
    inputs,
    outcome,
    written,
)

PAGE = written()
SAMPLE = CELLS[::13]
"""As many as fit into every run; a step that shares no factor with the number of operators meets
each of them."""


def check(operator: str, situation: str) -> None:
    assert outcome(operator, situation) == PAGE[operator, situation]


@pytest.mark.parametrize(("operator", "situation"), SAMPLE)
def test_cell_is_as_the_page_says(operator: str, situation: str) -> None:
    check(operator, situation)


@pytest.mark.slow
@pytest.mark.parametrize(("operator", "situation"), [cell for cell in CELLS if cell not in SAMPLE])
def test_rare_cell_is_as_the_page_says(operator: str, situation: str) -> None:
    check(operator, situation)


def test_the_page_has_every_cell() -> None:
    assert set(PAGE) == set(CELLS)


BATCHED = ("associative_scan", "vmap")
"""torch's rule for `cond` inside of these takes no sizes."""
WHOLE = [
    (operator, situation)
    for situation in (*SYMBOLIC, "nested in another", "closure over unbacked int")
    for operator in OPERATORS
    if PAGE.get((operator, situation)) == "captured"
    and not (operator in BATCHED and situation == "nested in another")
]
"""What is one graph, here with sizes of which none is known."""


@pytest.mark.parametrize(
    ("operator", "situation"),
    [pytest.param(*cell, marks=[] if cell in WHOLE[::13] else pytest.mark.slow) for cell in WHOLE],
)
def test_operator_of_any_size_is_lowered_by_autograd(operator: str, situation: str) -> None:
    check_of_any_size(operator, bare(operator, situation))


TAKEN_BY_CHECKPOINT = [
    operator for operator in OPERATORS if operator not in ("grad", "scan", "vjp")
]
"""Plain torch differentiates none of the others in there."""


@pytest.mark.parametrize(
    "operator",
    [
        pytest.param(name, marks=[] if name in ("cond", "map") else pytest.mark.slow)
        for name in TAKEN_BY_CHECKPOINT
    ],
)
def test_operator_in_a_checkpoint_is_lowered_by_autograd(operator: str) -> None:
    run = OPERATORS[operator]

    def plain(x: Tensor, y: Tensor) -> Any:
        return checkpoint(
            lambda a: run(lambda b: b.sin() * y, a * 2) + a, x + 1, use_reentrant=False
        )

    check_of_any_size(operator, plain)


def check_of_any_size(operator: str, plain: Callable[..., Any]) -> None:
    torch._dynamo.reset()
    compiled = stator.compile(plain, backend="aot_eager", dynamic=True, fullgraph=True)
    for rows in (2, 5):
        assert_same(
            plain,
            compiled,
            lambda: inputs(operator, rows),  # noqa: B023
            calls=2,
            graphs_may_raise=False,
        )
    assert operator in BY_LENGTH or len(compiled.report.entries) == 1


NOT_IN_INDUCTOR = ("hints_wrapper", "strict_mode")
"""torch's own front end gives Inductor these operators too, and Inductor stops at them."""
IN_CI = ("checkpoint", "nested_compile_region", "vmap", "map")


@pytest.mark.parametrize(
    "operator",
    [
        pytest.param(operator, marks=[] if operator in IN_CI else pytest.mark.slow)
        for operator in OPERATORS
        if operator not in NOT_IN_INDUCTOR
    ],
)
@pytest.mark.parametrize("dynamic", [None, pytest.param(True, marks=pytest.mark.slow)])
def test_operator_is_lowered_by_inductor(operator: str, dynamic: bool | None) -> None:
    torch._dynamo.reset()
    plain = bare(operator, "dynamic shape" if dynamic else "closure over tensor")
    compiled = stator.compile(plain, backend="inductor", dynamic=dynamic, fullgraph=True)
    close = Tolerance(1e-5, 1e-6, strides=False)
    for rows in (2, 5) if dynamic else (2,):
        assert_same(plain, compiled, lambda: inputs(operator, rows), calls=2, tolerance=close)  # noqa: B023
