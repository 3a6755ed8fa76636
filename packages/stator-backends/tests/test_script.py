"""Running a file as a module: its names, its place among modules, its tracebacks."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from stator_backends._script import run_file

SCRIPT = """
import sys
import traceback
from dataclasses import dataclass

@dataclass
class Pair:
    left: "int"

seen = sys.modules[__name__].__dict__ is globals()
number = 3

def read():
    return number

def stack():
    return traceback.format_stack()
"""


@pytest.fixture
def script(tmp_path: Path) -> Path:
    path = tmp_path / "a_script.py"
    path.write_text(SCRIPT)
    return path


def test_functions_of_a_file_keep_their_names(script: Path) -> None:
    names = run_file(script)
    assert names["read"]() == 3
    assert names["Pair"](1).left == 1
    assert names["read"].__module__ == "a_script"


def test_a_file_is_among_the_modules_only_while_it_runs(script: Path) -> None:
    assert run_file(script)["seen"]
    assert "a_script" not in sys.modules


def test_a_module_of_the_same_name_is_put_back(script: Path) -> None:
    before = sys.modules["a_script"] = type(sys)("a_script")
    try:
        run_file(script)
        assert sys.modules["a_script"] is before
    finally:
        del sys.modules["a_script"]


def test_a_file_that_raises_leaves_no_module(script: Path) -> None:
    script.write_text("raise KeyError('here')")
    with pytest.raises(KeyError, match="here"):
        run_file(script)
    assert "a_script" not in sys.modules


def test_no_bytecode_lies_beside_the_file(script: Path) -> None:
    run_file(script)
    assert [*script.parent.iterdir()] == [script]


def test_tracebacks_through_a_file_have_its_lines_and_no_warning(script: Path) -> None:
    """CPython 3.15 warns of a module without a loader; warnings are errors here."""
    assert "return traceback.format_stack()" in "".join(run_file(script)["stack"]())
