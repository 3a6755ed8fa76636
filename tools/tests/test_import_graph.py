"""Drawing the import graph: implied imports are left out, cycles are refused."""

from __future__ import annotations

import pathlib

import import_graph
import pytest


def write(root: pathlib.Path, package: str, **modules: str) -> None:
    """Write a package whose modules have the given sources."""
    folder = root / "packages" / package.replace("_", "-") / "src" / package
    folder.mkdir(parents=True)
    (folder / "__init__.py").write_text("")
    for name, source in modules.items():
        (folder / f"{name}.py").write_text(source)


def test_an_import_that_others_imply_is_not_drawn() -> None:
    graph = {"top": frozenset({"middle", "low"}), "middle": frozenset({"low"}), "low": frozenset()}

    lines = import_graph.flowchart(graph)

    assert [line.strip() for line in lines if "-->" in line] == ["top --> middle", "middle --> low"]


def test_parts_are_drawn_from_the_top() -> None:
    graph = {"low": frozenset(), "middle": frozenset({"low"}), "top": frozenset({"middle"})}

    lines = [line.strip() for line in import_graph.flowchart(graph)]

    assert lines.index("top") < lines.index("middle") < lines.index("low")


def test_a_cycle_between_modules_is_refused(tmp_path: pathlib.Path) -> None:
    write(
        tmp_path,
        "stator_variables",
        _one="import stator_variables._two\n",
        _two="from stator_variables import _one\n",
    )

    with pytest.raises(ValueError, match=r"imports form a cycle: .*_one"):
        import_graph.page(tmp_path)


def test_type_only_imports_count(tmp_path: pathlib.Path) -> None:
    source = (
        "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from stator_guards import Guard\n"
    )
    write(tmp_path, "stator_guards", _guard="class Guard: ...\n")
    write(tmp_path, "stator_variables", _one=source)

    assert "stator_variables --> stator_guards" in import_graph.page(tmp_path)


def test_parts_have_levels(tmp_path: pathlib.Path) -> None:
    write(
        tmp_path,
        "stator_variables",
        _high="from stator_variables import _low\n",
        _low="import collections\n",
    )

    text = import_graph.page(tmp_path)

    assert "| 2 | `_high` |\n| 1 | `_low` |" in text
