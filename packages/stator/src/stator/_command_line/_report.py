"""`python -m stator report SCRIPT`: run a script, and report what was compiled, however it ends."""

from __future__ import annotations

import argparse
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from stator._command_line._command import Command
from stator._command_line._script import (
    Script,
    add_script,
    all_reports,
    check_folder,
    in_place_of_torch_compile,
    text_of,
    write_page,
)
from stator._settings._options import ENVIRONMENT
from stator._settings._stance import kept_regions

EXAMPLES = """examples:
  python -m stator report train.py
  python -m stator report --html report.html train.py
  python -m stator report --json --output report.json train.py
"""


def _add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--json", action="store_true", help="the report as JSON")
    parser.add_argument("--html", metavar="FILE", help="write the report as a page")
    parser.add_argument("--output", metavar="FILE", help="a file to write it to")
    parser.add_argument("--backend", help="the backend in place of those that the script names")
    add_script(parser)


def _run(given: argparse.Namespace) -> int:
    check_folder(given.html)
    check_folder(given.output)

    def show() -> None:
        reports = all_reports()
        if given.html is not None:
            write_page(reports, given.html, Path(given.script).name)
            if not given.json and given.output is None:
                return

        text = text_of(reports, given.json)
        if given.output is None:
            print(text)
        else:
            Path(given.output).write_text(f"{text}\n", encoding="utf-8")

    with kept_regions(), measured(), in_place_of_torch_compile(given.backend):
        return Script.of(given).run(show)


@contextmanager
def measured() -> Iterator[None]:
    """Count and time the calls of all that is compiled in a block."""
    name = ENVIRONMENT["measure"]
    before = os.environ.get(name)
    os.environ[name] = before or "1"
    try:
        yield
    finally:
        if before is None:
            del os.environ[name]


REPORT = Command(
    "report",
    "run a script and report what was compiled",
    EXAMPLES,
    _add_arguments,
    _run,
)
