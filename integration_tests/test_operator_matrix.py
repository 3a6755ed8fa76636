"""The page about higher-order operators is true: each cell gives what plain Python gives, and says how."""

from __future__ import annotations

import pytest

from integration_tests.operator_matrix import CELLS, outcome, written

SAMPLE = CELLS[::7]
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
