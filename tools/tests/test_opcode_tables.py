"""The command that compares opcode tables finds what is planted."""

from __future__ import annotations

import os
import pathlib
import subprocess
import sys
from typing import Any

import attrs
import interpreters
import opcode_tables
import pytest
from opcode_tables import Interpreter, faults, running, table_for


def found_in(interpreter: Interpreter) -> list[str]:
    return [*faults(table_for(interpreters.CURRENT), interpreter)]


def test_the_table_of_this_interpreter_is_complete() -> None:
    assert found_in(running()) == []


def test_a_planted_opcode_is_reported_with_its_number_and_the_table() -> None:
    planted = attrs.evolve(running(), opcodes={**running().opcodes, "LOAD_MOON": 7})
    number = interpreters.CURRENT.replace(".", "")
    assert f"_tables_{number}.py: no rule, part or refusal for LOAD_MOON (7)" in found_in(planted)


def test_an_opcode_that_is_gone_is_reported() -> None:
    left = {name: number for name, number in running().opcodes.items() if name != "SWAP"}
    assert any("no SWAP" in fault for fault in found_in(attrs.evolve(running(), opcodes=left)))


def test_other_opcodes_with_arguments_are_reported() -> None:
    other = running().with_argument - {min(running().with_argument)}
    changed = attrs.evolve(running(), with_argument=other)
    assert any("argument_from" in fault for fault in found_in(changed))


@pytest.mark.parametrize(
    ("changes", "kind"),
    [
        ({"operators": (*["+"] * 27, "%%")}, "operator '%%'"),
        ({"constants": (*[None] * 40, "moon")}, "common constant 'moon'"),
        ({"special_methods": (*["__enter__"] * 4, "__moon__")}, "special method '__moon__'"),
        ({"intrinsics": (("I",) * 40, ())}, "intrinsic 'I'"),
    ],
)
def test_planted_tables_are_reported(changes: dict[str, Any], kind: str) -> None:
    assert any(kind in fault for fault in found_in(attrs.evolve(running(), **changes)))


def test_a_python_without_a_table_is_compared_with_the_newest() -> None:
    assert table_for("3.99").__name__.endswith(max(path.stem for path in tables()))


def tables() -> list[pathlib.Path]:
    return [*opcode_tables.TABLES.glob("_tables_*.py")]


def test_interpreters_that_the_variable_names_are_found(
    monkeypatch: pytest.MonkeyPatch, tmp_path: pathlib.Path
) -> None:
    named = tmp_path / "named"
    named.write_text("#!/bin/sh\necho cpython 3.98\n")
    named.chmod(0o755)
    monkeypatch.setenv(interpreters.NAMED, os.pathsep.join([str(tmp_path / "none"), str(named)]))
    assert interpreters.find("3.98") == str(named)
    assert interpreters.find("3.97") is None


def test_the_command_needs_no_import_of_the_package() -> None:
    """Which refuses a Python that it has no table for."""
    command = [sys.executable, str(opcode_tables.ROOT / "tools" / "opcode_tables.py")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.stdout.endswith(f"differences to {table_for(interpreters.CURRENT).__name__}\n")
