"""What counts as code, and that too much of it is noticed."""

from __future__ import annotations

import pathlib

import check_size
import pytest

SOURCE = '''"""A module.

Which says more.
"""

import os
from collections import (
    abc,
)

# a comment
NUMBERS = (  # over three lines
    1,
)
"""What they are."""


def fn() -> str:
    """Says what it does."""
    import sys

    return """text

    of three lines"""
'''


def test_only_code_counts() -> None:
    assert check_size.code_lines(SOURCE) == len(["NUMBERS = (", "1,", ")", "def", "return", "", "lines"])


@pytest.mark.parametrize(("budget", "code"), [(7, 0), (6, 1)])
def test_more_than_the_budget_fails(budget: int, code: int, tmp_path: pathlib.Path) -> None:
    (tmp_path / "pyproject.toml").write_text(f"[tool.stator.size]\ncode_lines = {budget}\n")
    package = tmp_path / "packages" / "stator-one" / "src" / "stator_one"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text(SOURCE)
    assert check_size.main(tmp_path) == code
