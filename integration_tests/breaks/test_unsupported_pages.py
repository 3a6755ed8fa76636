"""Each reason for which something is not captured has a page, and each page a reason."""

from __future__ import annotations

import ast
import pathlib
from collections.abc import Iterator

ROOT = pathlib.Path(__file__).resolve().parents[2]
PAGES = ROOT / "docs" / "reference" / "unsupported"
PLACES = {"unsupported": 0, "Unsupported": 0, "Limit": 0, "_refused": 0, "_meaning": 1}
"""What takes a reason, and as which of its arguments."""


def _reasons(source: pathlib.Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(source.read_text())):
        if not isinstance(node, ast.Call):
            continue
        name = getattr(node.func, "attr", getattr(node.func, "id", ""))
        if name not in PLACES:
            continue
        named = [keyword.value for keyword in node.keywords if keyword.arg == "reason"]
        for argument in [*node.args[PLACES[name] :], *named][:1]:
            if isinstance(argument, ast.Constant) and isinstance(argument.value, str):
                yield argument.value


def _all_reasons() -> set[str]:
    sources = [
        path for path in ROOT.glob("packages/*/src/**/*.py") if path.name != "conformance.py"
    ]
    return {reason for source in sources for reason in _reasons(source)}


def test_each_reason_has_a_page() -> None:
    missing = sorted(_all_reasons() - {page.stem for page in PAGES.glob("*.md")})
    assert not missing, f"write docs/reference/unsupported/<reason>.md: {missing}"


def test_each_page_has_a_reason() -> None:
    left = sorted({page.stem for page in PAGES.glob("*.md")} - _all_reasons() - {"README"})
    assert not left, f"no code gives these reasons: {left}"


def test_pages_say_what_and_what_to_try() -> None:
    for page in PAGES.glob("*.md"):
        text = page.read_text()
        assert text.startswith("# "), page
        assert page.stem == "README" or "What to try:" in text, page
