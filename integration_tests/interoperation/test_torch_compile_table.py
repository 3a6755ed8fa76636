"""The table of names of torch.compile is complete and true."""

from __future__ import annotations

import warnings

import pytest

from integration_tests.interoperation.torch_compile_table import PAGE, TABLES, Row, page

ROWS = [
    pytest.param(row, id=f"{title}: {row.name}")
    for title, (rows, _) in TABLES.items()
    for row in rows
]


@pytest.mark.parametrize("title", TABLES)
def test_every_name_has_a_row(title: str) -> None:
    rows, names = TABLES[title]
    listed = [row.name for row in rows]
    assert sorted(listed) == sorted(names())


@pytest.mark.parametrize("row", ROWS)
def test_row_is_true(row: Row) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        row.check()


def test_page_is_up_to_date() -> None:
    assert PAGE.read_text() == page()
