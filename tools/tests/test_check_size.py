"""Counted nodes, and limits on the length and density of parts."""

from __future__ import annotations

import ast
import pathlib

import check_size
import pytest
from package_source import count_nodes

ROOT = pathlib.Path(__file__).resolve().parents[2]

PLAIN = "def fn(x, y):\n    return x + -y < 1 and x\n"
SPACED = "# a comment\n\n\ndef fn(\n    x,\n    y,\n):\n    # why\n\n    return (\n        x + -y < 1\n    ) and x\n"

# Module, FunctionDef, arguments, arg, arg, Return, BoolOp, Compare, BinOp, Name, UnaryOp, Name,
# Constant, Name
NODES = 14


def package(root: pathlib.Path, source: str, recorded: str = "") -> None:
    """Write a repository with one package of one file."""
    folder = root / "packages" / "stator-one" / "src" / "stator_one"
    folder.mkdir(parents=True)
    (folder / "__init__.py").write_text(source)
    (root / "tools").mkdir()
    if recorded:
        (root / "tools" / "ratchets.toml").write_text(recorded)


def function_of(lines: int) -> str:
    return "def long():\n" + "    pass\n" * (lines - 1)


@pytest.mark.parametrize("source", [PLAIN, SPACED])
def test_nodes_count_and_layout_does_not(source: str) -> None:
    assert count_nodes(ast.parse(source)) == NODES


def test_sizes_of_packages_and_their_sum_are_printed(
    tmp_path: pathlib.Path, capsys: pytest.CaptureFixture[str]
) -> None:
    package(tmp_path, PLAIN)
    check_size.main(tmp_path)
    _, first, second, *_ = capsys.readouterr().out.splitlines()
    assert first.split()[:2] == ["stator-one", str(NODES)]
    assert second.split() == ["all", str(NODES), str(NODES)]


@pytest.mark.parametrize(("lines", "status"), [(40, 0), (41, 1)])
def test_long_functions_fail(
    lines: int, status: int, tmp_path: pathlib.Path, capsys: pytest.CaptureFixture[str]
) -> None:
    package(tmp_path, function_of(lines))
    assert check_size.main(tmp_path) == status
    printed = capsys.readouterr().out
    assert ("__init__.py:1: long has 41 lines" in printed) == bool(status)


@pytest.mark.parametrize(("lines", "status"), [(500, 0), (501, 1)])
def test_long_files_fail(
    lines: int, status: int, tmp_path: pathlib.Path, capsys: pytest.CaptureFixture[str]
) -> None:
    package(tmp_path, "pass\n" * lines)
    assert check_size.main(tmp_path) == status
    printed = capsys.readouterr().out
    assert ("__init__.py: 501 lines" in printed) == bool(status)


# Assign, Name, List, and the elements
@pytest.mark.parametrize(("elements", "status"), [(19, 0), (20, 1)])
def test_dense_statements_fail(
    elements: int, status: int, tmp_path: pathlib.Path, capsys: pytest.CaptureFixture[str]
) -> None:
    dense = f"x = [{'0, ' * elements}]\n"
    package(tmp_path, "pass\n" * 8 + dense * 2)
    assert check_size.main(tmp_path) == status
    printed = capsys.readouterr().out
    assert ("nodes of a statement: 23, allowed are 22" in printed) == bool(status)


def test_statement_counts_without_the_statements_in_it(tmp_path: pathlib.Path) -> None:
    package(tmp_path, "if x:\n" + "    pass\n" * 40)
    assert check_size.main(tmp_path) == 0


@pytest.mark.parametrize(("parameters", "status"), [(3, 0), (4, 1)])
def test_too_many_annotations_with_any_fail(
    parameters: int, status: int, tmp_path: pathlib.Path, capsys: pytest.CaptureFixture[str]
) -> None:
    loose = ", ".join(f"x{i}: Any" for i in range(parameters))
    known = ", ".join(f"y{i}: list[Any]" for i in range(19 - parameters))
    package(tmp_path, f"def fn({loose}, {known}) -> None: ...\n" + "pass\n" * 20)
    assert check_size.main(tmp_path) == status
    printed = capsys.readouterr().out
    assert ("percent of Any: 20, allowed are 15" in printed) == bool(status)


@pytest.mark.parametrize(("recorded", "status"), [(1, 1), (2, 0), (3, 1)])
def test_recorded_violations_have_to_be_those_that_are_left(
    recorded: int, status: int, tmp_path: pathlib.Path
) -> None:
    record = f'["long functions"]\nstator-one = {recorded}\n'
    package(tmp_path, function_of(41) * 2, record)
    assert check_size.main(tmp_path) == status


@pytest.mark.parametrize(("nodes", "grown"), [(90, False), (1020, False), (1021, True)])
def test_kernel_may_grow_by_two_percent(nodes: int, grown: bool) -> None:
    found = list(check_size.grown_kernels({"stator-one": nodes}, {"stator-one": 1000}))
    assert ["allowed are 1,020" in text for text in found] == [True] * grown


def test_kernel_that_has_grown_fails(
    tmp_path: pathlib.Path, capsys: pytest.CaptureFixture[str]
) -> None:
    package(tmp_path, PLAIN)
    record = tmp_path / "tools" / "kernel.toml"
    for recorded, status in ((NODES, 0), (NODES - 1, 1)):
        record.write_text(f"[nodes]\nstator-one = {recorded}\n")
        assert check_size.main(tmp_path) == status
    assert f"the kernel has {NODES} nodes, allowed are {NODES - 1}" in capsys.readouterr().out


def test_recorded_kernels_are_those_of_their_decision() -> None:
    record = check_size.read_kernel_record(ROOT)
    decision = (ROOT / "docs" / "decisions" / record["decision"]).read_text()
    folders = {path.parent.name for path in ROOT.glob("packages/*/src")}
    assert record["nodes"].keys() == folders
    assert [n for n in record["nodes"].values() if f"{n:,}" not in decision] == []


def test_packages_keep_the_limits() -> None:
    assert check_size.main(ROOT) == 0
