"""The table of higher-order operators is complete and true."""

from __future__ import annotations

import warnings

import pytest

from integration_tests.transforms.operator_table import (
    FUNCTIONS,
    OPERATORS,
    PAGE,
    Row,
    exported_functions,
    installed_operators,
    page,
)


def test_every_operator_has_a_row() -> None:
    assert sorted(installed_operators()) == sorted(OPERATORS)


def test_every_exported_function_has_a_row() -> None:
    assert sorted(exported_functions()) == sorted(FUNCTIONS)


@pytest.mark.parametrize("row", OPERATORS.values(), ids=OPERATORS)
def test_row_of_an_operator_is_true(row: Row) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        row.check()


@pytest.mark.parametrize("row", FUNCTIONS.values(), ids=FUNCTIONS)
def test_row_of_a_function_is_true(row: Row) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        row.check()


def test_page_is_up_to_date() -> None:
    assert PAGE.read_text() == page()
