"""The table of the last run on each pair of torch and CPython, in `docs/reference/versions.md`.

The session `versions` of the noxfile runs a pair (a `Cell`) and records what came of it. The table
has a row for each cell and subject; a row stands until the next run of the same cell. The numbers
are those that pytest writes to an XML file: nothing is in the table that was not run.
"""

from __future__ import annotations

import pathlib
import xml.etree.ElementTree

import attrs

ROOT = pathlib.Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "reference" / "versions.md"
HEADER = "| torch | CPython | tests of | passed | failed | skipped | date |"
RULE = "|---|---|---|---|---|---|---|"


@attrs.frozen(order=True)
class Cell:
    """A release of torch and a version of CPython that run together."""

    torch: str
    python: str

    def __str__(self) -> str:
        return f"torch {self.torch}, CPython {self.python}"


CELLS = (
    Cell("2.13", "3.11"),
    Cell("2.13", "3.12"),
    Cell("2.13", "3.13"),
    Cell("2.14", "3.11"),
    Cell("2.15", "3.11"),
    Cell("2.15", "3.13"),
    Cell("2.15", "3.14"),
    Cell("2.15", "3.15"),
)
"""The supported pairs that are run: each release of torch, and each version of CPython."""


@attrs.frozen
class Counts:
    """How many tests passed, failed (errors are among these) and were skipped."""

    passed: int = 0
    failed: int = 0
    skipped: int = 0

    def __add__(self, other: Counts) -> Counts:
        return Counts(
            self.passed + other.passed,
            self.failed + other.failed,
            self.skipped + other.skipped,
        )


def counts(report: pathlib.Path) -> Counts:
    """Read the counts of a run of pytest from the file of its option `--junitxml`."""
    total = Counts()
    for suite in xml.etree.ElementTree.parse(report).getroot().iter("testsuite"):
        run, skipped = int(suite.get("tests", 0)), int(suite.get("skipped", 0))
        failed = int(suite.get("failures", 0)) + int(suite.get("errors", 0))
        total += Counts(run - failed - skipped, failed, skipped)
    return total


def record(cell: Cell, subject: str, found: Counts, date: str, page: pathlib.Path = PAGE) -> None:
    """Write the row of a run in the place of the one before."""
    before, rows, after = _divided(page.read_text().splitlines())
    numbers = (f"{number:,}" for number in attrs.astuple(found))
    cells = [cell.torch, cell.python, subject, *numbers, date]
    others = [row for row in rows if _key(row) != (cell.torch, cell.python, subject)]

    table = sorted([*others, f"| {' | '.join(cells)} |"], key=_order)
    page.write_text("\n".join([*before, *table, *after]) + "\n")


def _divided(lines: list[str]) -> tuple[list[str], list[str], list[str]]:
    """Return the lines to the head of the table, its rows, and the lines after it."""
    start = lines.index(HEADER) + 1
    assert lines[start] == RULE
    end = start + 1
    while end < len(lines) and lines[end].startswith("|"):
        end += 1
    return lines[: start + 1], lines[start + 1 : end], lines[end:]


def _key(row: str) -> tuple[str, str, str]:
    torch, python, subject = (part.strip() for part in row.split("|")[1:4])
    return torch, python, subject


def _order(row: str) -> tuple[list[int], list[int], str]:
    torch, python, subject = _key(row)
    return _numbers(torch), _numbers(python), subject


def _numbers(version: str) -> list[int]:
    return [int(part) for part in version.split(".")]


def cells_on_page(page: pathlib.Path = PAGE) -> set[Cell]:
    """Return the cells that have a row."""
    _, rows, _ = _divided(page.read_text().splitlines())
    return {Cell(*_key(row)[:2]) for row in rows}
