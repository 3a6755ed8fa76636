"""What is known of a method after both runs, and the page that counts it."""

from __future__ import annotations

import collections
import json
import pathlib

import attrs

from integration_tests.corpora.cpython.selection import EXCLUDED, MODULES

ROOT = pathlib.Path(__file__).resolve().parents[3]
PAGE = ROOT / "docs" / "reference" / "cpython_tests_compiled.md"
KINDS = ("passes", "wrong", "crashes", "timed out", "left out")
TIMED_OUT = "timed out"
HEAD = """\
# CPython's own tests, under `stator.compile`

Each method of these modules runs twice, each time in a process of its own: plainly, and with its function compiled
(`backend="eager"`), what it calls inlined and breaks allowed. It passes when both end the same way (passed, skipped, or
the same failure). It is *wrong* when they differ; a *crash* when something of ours fails, also where the test expects
an exception, or the process dies; *timed out* when it takes longer than the limit, which counts for nothing but itself.
Of a doctest each statement is compiled; one that breaks runs plainly: code of a module is not entered in its middle.
Written by `python -m integration_tests.corpora.cpython --page FOLDER`;
`integration_tests/corpora/cpython/test_cpython.py` runs the same methods.

"""


@attrs.define
class Record:
    """One method: how it ended plainly and compiled, the places where it broke, what of ours
    failed."""

    name: str
    plain: str = ""
    ours: str = ""
    breaks: int = 0
    crashes: list[str] = attrs.field(factory=list)
    left_out: str = ""
    seconds: float = 0.0

    @property
    def kind(self) -> str:
        if self.left_out:
            return "left out"
        if self.crashes:
            return "crashes"
        if self.plain == self.ours:
            return "passes"
        return TIMED_OUT if TIMED_OUT in (self.plain, self.ours) else "wrong"

    def said(self) -> str:
        return f"{self.name}: plainly {self.plain[:300]!r}, compiled {self.ours[:300]!r} {self.crashes[:1]}"


def read(path: pathlib.Path) -> list[Record]:
    return [Record(**fields) for fields in json.loads(path.read_text())]


def page(folder: pathlib.Path) -> str:
    """The page, from one record file for each module."""
    lines = [
        f"| module | methods | {' | '.join(KINDS)} | breaks |",
        "|---|---|" + "---|" * (len(KINDS) + 1),
    ]
    everything: list[Record] = []
    missing = [module for module in MODULES if not (folder / f"{module}.json").exists()]
    for module in (module for module in MODULES if module not in missing):
        records = read(folder / f"{module}.json")
        everything += records
        lines.append(_row(f"`{module}`", records))
    lines.append(_row("**all**", everything))
    reasons = [f"- `{pattern}`: {reason}" for pattern, reason in EXCLUDED.items()]
    known = [
        f"- {record.kind}: `{record.name}`" for record in everything if record.kind in KINDS[1:4]
    ]
    uncounted = [", ".join(f"`{module}`" for module in missing)] if missing else []
    sections = {"Left out": reasons, "Known to fail": known, "Not counted in this run": uncounted}
    return HEAD + "\n".join(
        [*lines, "", *(line for title, rows in sections.items() for line in _section(title, rows))]
    )


def _section(title: str, rows: list[str]) -> list[str]:
    return [f"## {title}", "", *rows, ""] if rows else []


def _row(title: str, records: list[Record]) -> str:
    counts = collections.Counter(record.kind for record in records)
    cells = [str(counts[kind]) for kind in KINDS]
    return f"| {title} | {len(records)} | {' | '.join(cells)} | {sum(record.breaks for record in records)} |"
