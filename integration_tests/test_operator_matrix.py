"""The page about higher-order operators is true: each cell gives what plain Python gives, and says how."""

from __future__ import annotations

import pytest
import stator
import torch

from integration_tests.operator_matrix import CELLS, OPERATORS, bare, inputs, outcome, written
from integration_tests.oracle import Tolerance, assert_same

SAMPLE = CELLS[::9]
"""As many as fit into every run; a step that shares no factor with the number of operators meets each of them."""


def check(operator: str, situation: str) -> None:
    assert outcome(operator, situation) == written()[operator, situation]


@pytest.mark.parametrize(("operator", "situation"), SAMPLE)
def test_cell_is_as_the_page_says(operator: str, situation: str) -> None:
    check(operator, situation)


@pytest.mark.slow
@pytest.mark.parametrize(("operator", "situation"), [cell for cell in CELLS if cell not in SAMPLE])
def test_rare_cell_is_as_the_page_says(operator: str, situation: str) -> None:
    check(operator, situation)


def test_the_page_has_every_cell() -> None:
    assert set(written()) == set(CELLS)


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
def test_operator_is_lowered_by_inductor(operator: str) -> None:
    torch._dynamo.reset()
    plain = bare(operator, "closure over tensor")
    compiled = stator.compile(plain, backend="inductor", fullgraph=True)
    make = lambda: inputs(operator)  # noqa: E731
    close = Tolerance(1e-5, 1e-6, strides=False)
    assert_same(plain, compiled, make, calls=2, tolerance=close)
