"""The table of runs: what pytest counted, one row for each cell and subject, the newest run of
it."""

from __future__ import annotations

import pathlib

import interpreters
import pytest
import version_table
from version_table import Cell, Counts, counts, record

PAGE = f"""# Versions

{version_table.HEADER}
{version_table.RULE}
| 2.9 | 3.11 | packages | 1 | 0 | 0 | 2026-11-29 |
| 2.10 | 3.11 | packages | 2 | 1 | 0 | 2026-11-29 |

Text | after the table.
"""
REPORT = """<?xml version="1.0" encoding="utf-8"?>
<testsuites name="pytest tests"><testsuite name="pytest" errors="1" failures="2" skipped="1"
 tests="5" time="0.0"><testcase classname="test_some" name="test_right" time="0.0" /></testsuite>
</testsuites>
"""


@pytest.fixture
def page(tmp_path: pathlib.Path) -> pathlib.Path:
    path = tmp_path / "versions.md"
    path.write_text(PAGE)
    return path


def rows(page: pathlib.Path) -> list[str]:
    return [line for line in page.read_text().splitlines() if line.startswith("| 2")]


def test_counts_are_those_of_the_report_of_pytest(tmp_path: pathlib.Path) -> None:
    report = tmp_path / "report.xml"
    report.write_text(REPORT)
    assert counts(report) == Counts(passed=1, failed=3, skipped=1)


def test_counts_of_several_reports_are_added() -> None:
    assert Counts(1, 2, 3) + Counts(10, 20, 30) == Counts(11, 22, 33)


def test_a_run_replaces_the_row_of_the_run_before(page: pathlib.Path) -> None:
    record(Cell("2.10", "3.11"), "packages", Counts(1234, 0, 5), "2026-11-30", page)
    assert rows(page) == [
        "| 2.9 | 3.11 | packages | 1 | 0 | 0 | 2026-11-29 |",
        "| 2.10 | 3.11 | packages | 1,234 | 0 | 5 | 2026-11-30 |",
    ]


@pytest.mark.parametrize(
    ("cell", "subject", "place"),
    [
        (Cell("2.9", "3.11"), "programs", 1),
        (Cell("2.9", "3.9"), "packages", 0),
        (Cell("2.9", "3.12"), "packages", 1),
        (Cell("2.11", "3.11"), "packages", 2),
    ],
)
def test_a_new_row_stands_in_the_order_of_releases(
    page: pathlib.Path, cell: Cell, subject: str, place: int
) -> None:
    record(cell, subject, Counts(7), "2026-11-30", page)
    expected = f"| {cell.torch} | {cell.python} | {subject} | 7 | 0 | 0 | 2026-11-30 |"
    assert rows(page)[place] == expected
    assert len(rows(page)) == 3


def test_the_text_around_the_table_stays(page: pathlib.Path) -> None:
    record(Cell("2.9", "3.11"), "packages", Counts(1), "2026-11-29", page)
    assert page.read_text() == PAGE


def test_each_supported_version_is_run_in_a_cell() -> None:
    supported = {*interpreters.SUPPORTED, *interpreters.WITH_NEWER_TORCH}
    assert {cell.python for cell in version_table.CELLS} == supported


def test_the_page_has_rows_of_supported_pairs_only() -> None:
    assert version_table.cells_on_page() <= {*version_table.CELLS}


def test_cells_on_a_page_are_those_of_its_rows(page: pathlib.Path) -> None:
    assert version_table.cells_on_page(page) == {Cell("2.9", "3.11"), Cell("2.10", "3.11")}
