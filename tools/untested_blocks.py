"""Find the code of the packages that a run of tests does not reach.

``python tools/untested_blocks.py [--data FILE] ARGUMENT...`` runs Python with these arguments, as
``-m pytest -c pyproject.toml integration_tests``, and prints each block of a function that no
process of the run executed: file, line, nodes of the syntax tree, first statement. With ``--data``
the blocks reached are kept in a file, to which several runs add.

Blocks are marked as the packages are imported. A tracer (``sys.settrace``, as coverage.py has it)
would be no use: tests compare what traced programs do, and set tracers themselves.
"""

from __future__ import annotations

import argparse
import ast
import builtins
import importlib.machinery
import mmap
import os
import pathlib
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from typing import Any

ROOT = pathlib.Path(__file__).resolve().parents[1]
_VARIABLE = "STATOR_UNTESTED_BLOCKS"
_NAME = "__reached_blocks__"

# Functions of these modules are traced as parts of a program: a mark would be its side effect.
_TRACED = (
    "_applevel",
    "_transform_targets.py",
    "_apply_again.py",
    "_marked_function.py",
    "_module_call.py",
)

Block = list[ast.stmt]


def blocks(tree: ast.AST, inside: bool = False) -> Iterator[Block]:
    """Yield the blocks of statements of all functions in a tree, outer ones first."""
    inside = inside or isinstance(tree, ast.FunctionDef | ast.AsyncFunctionDef)
    if inside and isinstance(tree, ast.stmt | ast.ExceptHandler | ast.match_case):
        fields = [getattr(tree, name, None) for name in ("body", "orelse", "finalbody")]
        yield from (field for field in fields if field and isinstance(field, list))
    for node in ast.iter_child_nodes(tree):
        yield from blocks(node, inside and not isinstance(node, ast.ClassDef))


def files(root: pathlib.Path = ROOT) -> dict[str, range]:
    """Return the numbers of the blocks of each file."""
    found, start = {}, 0
    for path in sorted(root.glob("packages/*/src/**/*.py")):
        if not any(part in path.as_posix() for part in _TRACED):
            count = sum(1 for _ in blocks(ast.parse(path.read_text())))
            found[str(path)] = range(start, start := start + count)
    return found


def marked(tree: ast.Module, numbers: range) -> ast.Module:
    """Return the tree, with a mark at the start of each block."""
    for number, block in zip(numbers, list(blocks(tree)), strict=True):
        mark = ast.parse(f"{_NAME}[{number}] = 1").body[0]
        for node in ast.walk(mark):
            ast.copy_location(node, block[0])
        block.insert(int(_is_docstring(block[0])), mark)
    return tree


def _is_docstring(statement: ast.stmt) -> bool:
    value = statement.value if isinstance(statement, ast.Expr) else None
    return isinstance(value, ast.Constant) and isinstance(value.value, str)


def install() -> None:
    """Mark the blocks of the packages that this process imports from now on, if a run asks for
    it."""
    known, loader = files(), importlib.machinery.SourceFileLoader
    original = loader.get_code

    def get_code(self: Any, name: str) -> Any:
        if self.path not in known:
            return original(self, name)
        tree = ast.parse(pathlib.Path(self.path).read_text())
        return compile(marked(tree, known[self.path]), self.path, "exec", dont_inherit=True)

    with open(os.environ[_VARIABLE], "r+b") as data:
        setattr(builtins, _NAME, mmap.mmap(data.fileno(), 0))  # one for all processes
    setattr(loader, get_code.__name__, get_code)


def untested(reached: bytes, known: dict[str, range]) -> Iterator[tuple[str, ast.stmt, int]]:
    """Yield the path, first statement and size of each block that was not reached, without those
    inside of it."""
    for path, numbers in known.items():
        within: set[int] = set()
        tree = ast.parse(pathlib.Path(path).read_text())
        for number, block in zip(numbers, blocks(tree), strict=True):
            if reached[number]:
                continue
            nodes = [node for statement in block for node in ast.walk(statement)]
            if id(block[0]) not in within and not _is_docstring(block[-1]):
                yield path, block[0], len(nodes)
            within.update(map(id, nodes))


def run(arguments: list[str], data: pathlib.Path) -> int:
    """Run Python with the packages of the working tree, and return its exit status."""
    with tempfile.TemporaryDirectory() as folder:
        lines = f"import sys\nsys.path.append({str(ROOT / 'tools')!r})\n"
        lines += "import untested_blocks\nuntested_blocks.install()\n"
        pathlib.Path(folder, "sitecustomize.py").write_text(lines)
        sources = [folder, *map(str, ROOT.glob("packages/*/src")), os.environ.get("PYTHONPATH", "")]
        path = os.pathsep.join(filter(None, sources))
        environment = {**os.environ, "PYTHONPATH": path, _VARIABLE: str(data)}
        command = [sys.executable, *arguments]
        return subprocess.run(command, check=False, env=environment).returncode


def main(argv: list[str]) -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=pathlib.Path)
    parser.add_argument("arguments", nargs=argparse.REMAINDER)
    options = parser.parse_args(argv)
    known = files()
    count = max((numbers.stop for numbers in known.values()), default=0)

    with tempfile.TemporaryDirectory() as folder:
        data = options.data or pathlib.Path(folder, "reached")
        if not data.exists() or data.stat().st_size != count:
            data.write_bytes(bytes(count))
        status = run(options.arguments, data)
        reached = data.read_bytes()

    for path, statement, size in untested(reached, known):
        text = ast.unparse(statement).partition("\n")[0]
        print(f"{os.path.relpath(path)}:{statement.lineno}: {size} nodes: {text[:100]}")
    print(f"{sum(reached)} of {count} blocks were reached")
    return status


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
