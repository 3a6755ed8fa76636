"""Blocks that a run reaches are told from the others."""

from __future__ import annotations

import ast
import pathlib
from typing import Any

import untested_blocks

SOURCE = '''
def chosen(flag: bool) -> int:
    """Return a number."""
    if flag:
        for _ in range(2):
            number = 1
    else:
        number = 2

        def inner() -> int:
            return 3

    try:
        return number
    except NameError:
        raise
    finally:
        number = 4


class Shown:
    made = True

    def text(self) -> str:
        return "text"
'''


def starts(found: list[ast.stmt]) -> list[str]:
    return [ast.unparse(statement).partition("\n")[0] for statement in found]


def test_only_blocks_that_did_not_run_are_found(tmp_path: pathlib.Path, monkeypatch: Any) -> None:
    path = tmp_path / "packages" / "one" / "src" / "one.py"
    path.parent.mkdir(parents=True)
    path.write_text(SOURCE)
    known = untested_blocks.files(tmp_path)
    assert [*known] == [str(path)]

    reached = bytearray(len(known[str(path)]))
    names: dict[str, Any] = {untested_blocks._NAME: reached}
    code = untested_blocks.marked(ast.parse(SOURCE), known[str(path)])
    exec(compile(code, str(path), "exec"), names)
    assert names["chosen"](True) == 1
    assert names["chosen"].__doc__ == "Return a number."

    found = [*untested_blocks.untested(bytes(reached), known)]
    assert starts([statement for _, statement, _ in found]) == [
        "number = 2",
        "raise",
        "return 'text'",
    ]
    assert [size for *_, size in found][1] == 1


def test_processes_of_a_run_are_marked(tmp_path: pathlib.Path) -> None:
    program = tmp_path / "program.py"
    program.write_text("import stator_bytecode\nprint(stator_bytecode.interpret(lambda: 1))\n")
    known = untested_blocks.files()
    data = tmp_path / "reached"
    data.write_bytes(bytes(max(numbers.stop for numbers in known.values())))

    assert untested_blocks.run([str(program)], data) == 0
    once = sum(data.read_bytes())
    assert once > 20
    program.write_text(
        "import subprocess, sys\nsubprocess.run([sys.executable, '-c', 'import os'])\n"
    )
    assert untested_blocks.run([str(program)], data) == 0
    assert sum(data.read_bytes()) == once
