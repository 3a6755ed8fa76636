"""What is counted as size, and that too much of it fails."""

from __future__ import annotations

import ast
import pathlib

import check_size
import pytest

PLAIN = "def fn(x, y):\n    return x + -y < 1 and x\n"
SPACED = "# a comment\n\n\ndef fn(\n    x,\n    y,\n):\n    # why\n\n    return (\n        x + -y < 1\n    ) and x\n"

# Module, FunctionDef, arguments, arg, arg, Return, BoolOp, Compare, BinOp, Name, UnaryOp, Name, Constant, Name
NODES = 14


def package(root: pathlib.Path, source: str, budget: int) -> None:
    """Write a repository with one package of one file."""
    (root / "pyproject.toml").write_text(f"[tool.stator.size]\nast_nodes = {budget}\n")
    folder = root / "packages" / "stator-one" / "src" / "stator_one"
    folder.mkdir(parents=True)
    (folder / "__init__.py").write_text(source)


def function_of(lines: int) -> str:
    return "def long():\n" + "    pass\n" * (lines - 1)


@pytest.mark.parametrize("source", [PLAIN, SPACED])
def test_nodes_count_and_layout_does_not(source: str) -> None:
    assert check_size.count_nodes(ast.parse(source)) == NODES


@pytest.mark.parametrize(("budget", "status"), [(NODES, 0), (NODES - 1, 1)])
def test_more_than_the_budget_fails(budget: int, status: int, tmp_path: pathlib.Path) -> None:
    package(tmp_path, PLAIN, budget)
    assert check_size.main(tmp_path) == status


def test_sizes_of_packages_and_their_sum_are_printed(
    tmp_path: pathlib.Path, capsys: pytest.CaptureFixture[str]
) -> None:
    package(tmp_path, PLAIN, 1000)
    check_size.main(tmp_path)
    first, second, *_ = capsys.readouterr().out.splitlines()
    assert first.split() == ["stator-one", str(NODES)]
    assert second.split() == ["all,", "of", "1,000", str(NODES)]


@pytest.mark.parametrize(("lines", "found"), [(40, 0), (41, 1)])
def test_long_functions_are_listed_and_do_not_fail(
    lines: int, found: int, tmp_path: pathlib.Path, capsys: pytest.CaptureFixture[str]
) -> None:
    package(tmp_path, function_of(lines), 1000)
    assert check_size.main(tmp_path) == 0
    printed = capsys.readouterr().out
    assert f"functions over 40 lines: {found}" in printed
    assert ("__init__.py:1: long has 41 lines" in printed) == bool(found)


@pytest.mark.parametrize(("lines", "found"), [(500, 0), (501, 1)])
def test_long_files_are_listed_and_do_not_fail(
    lines: int, found: int, tmp_path: pathlib.Path, capsys: pytest.CaptureFixture[str]
) -> None:
    package(tmp_path, "pass\n" * lines, 1000)
    assert check_size.main(tmp_path) == 0
    printed = capsys.readouterr().out
    assert f"files over 500 lines: {found}" in printed
    assert ("__init__.py: 501 lines" in printed) == bool(found)
