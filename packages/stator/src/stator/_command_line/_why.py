"""`python -m stator why SLUG`: what a reason of a graph break means, and what to try."""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterable

import attrs

from stator._command_line._command import Command, UsageError
from stator._reasons import ReasonPage, reason_pages, similar_slugs

EXAMPLES = """examples:
  python -m stator why data-dependent-branch
  python -m stator why                          lists all reasons
"""


def _add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--json", action="store_true", help="the pages as JSON, by their reasons")
    parser.add_argument("slug", nargs="?", help="the reason that an error or a report names")


def _run(given: argparse.Namespace) -> int:
    pages = reason_pages()
    if given.slug is None:
        print(_as_json(pages.values()) if given.json else "\n".join(pages))
        return 0
    if given.slug not in pages:
        close = similar_slugs(given.slug)
        hint = f"; did you mean {' or '.join(close)}?" if close else ""
        raise UsageError(f"there is no reason {given.slug!r}{hint}")
    page = pages[given.slug]
    print(_as_json([page]) if given.json else page)
    return 0


def _as_json(pages: Iterable[ReasonPage]) -> str:
    return json.dumps([attrs.asdict(page) for page in pages], indent=2)


WHY = Command("why", "explain the reason of a graph break", EXAMPLES, _add_arguments, _run)
