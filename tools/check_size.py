"""Check that the packages stay within their budget of code: lines that somebody has to understand.

Blank lines, comments, docstrings and imports do not count: to write them is never to be what a budget keeps anybody
from. ``python tools/check_size.py [ROOT]`` prints what each package has, and fails when the sum is over
``code_lines`` in ``[tool.stator.size]`` of the root ``pyproject.toml``. Why so: docs/decisions/0019.
"""

from __future__ import annotations

import ast
import io
import pathlib
import sys
import tokenize
import tomllib
from collections.abc import Iterator

_NO_CODE = (tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT, tokenize.ENDMARKER)
_WITH_DOCSTRING = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)


def code_lines(source: str) -> int:
    """How many lines of a file are code."""
    tokens = tokenize.generate_tokens(io.StringIO(source).readline)
    lines = {line for token in tokens if token.type not in _NO_CODE for line in range(token.start[0], token.end[0] + 1)}
    for node in _not_counted(ast.parse(source)):
        lines.difference_update(range(node.lineno, (node.end_lineno or node.lineno) + 1))
    return len(lines)


def _not_counted(tree: ast.Module) -> Iterator[ast.stmt]:
    """Imports and docstrings, those of attributes included."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import | ast.ImportFrom):
            yield node
        elif isinstance(node, _WITH_DOCSTRING):
            yield from (each for each in node.body if isinstance(each, ast.Expr) and _is_text(each.value))


def _is_text(value: ast.expr) -> bool:
    return isinstance(value, ast.Constant) and isinstance(value.value, str)


def main(root: pathlib.Path) -> int:
    budget = tomllib.loads((root / "pyproject.toml").read_text())["tool"]["stator"]["size"]["code_lines"]
    total = 0
    for package in sorted(root.glob("packages/*/src")):
        counted = sum(code_lines(file.read_text()) for file in package.rglob("*.py"))
        print(f"{package.parent.name:20}{counted:7}")
        total += counted
    print(f"{'all, of ' + str(budget):20}{total:7}")
    return int(total > budget)


if __name__ == "__main__":
    sys.exit(main(pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else ".")))
