"""Check that the packages stay within their budget of code, counted in nodes of the syntax tree.

``python tools/check_size.py [ROOT]`` prints the nodes of each package and of all of them together, and fails when the
sum exceeds ``ast_nodes`` in ``[tool.stator.size]`` of the root ``pyproject.toml``. Comments, blank lines and the
layout of an expression do not count, so nothing is gained by writing densely: see docs/decisions/0020.

Functions and files that are too long to be read at once are listed as well. They do not fail the check.
"""

from __future__ import annotations

import ast
import pathlib
import sys
import tomllib
from collections.abc import Iterator
from itertools import chain

import attrs

_MAX_FUNCTION_LINES = 40
_MAX_FILE_LINES = 500

# Singletons that the parser attaches to a node that is counted already.
_NOT_COUNTED = (ast.expr_context, ast.operator, ast.unaryop, ast.cmpop, ast.boolop)


@attrs.frozen
class Source:
    """One parsed file; ``path`` is relative to the root of the repository."""

    path: pathlib.Path
    line_count: int
    tree: ast.Module

    @classmethod
    def read(cls, path: pathlib.Path, root: pathlib.Path) -> Source:
        text = path.read_text()
        return cls(path.relative_to(root), len(text.splitlines()), ast.parse(text))


def count_nodes(tree: ast.AST) -> int:
    """Return the number of nodes in a tree, without expression contexts and operator tokens."""
    return sum(1 for node in ast.walk(tree) if not isinstance(node, _NOT_COUNTED))


def long_functions(source: Source) -> Iterator[str]:
    """Yield a description of every function that has more than 40 lines, decorators excluded."""
    for node in ast.walk(source.tree):
        if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            continue

        end = node.end_lineno or node.lineno
        lines = end - node.lineno + 1
        if lines > _MAX_FUNCTION_LINES:
            yield f"{source.path}:{node.lineno}: {node.name} has {lines} lines"


def long_files(sources: list[Source]) -> Iterator[str]:
    """Yield a description of every file that has more than 500 lines."""
    for source in sources:
        if source.line_count > _MAX_FILE_LINES:
            yield f"{source.path}: {source.line_count} lines"


def main(root: pathlib.Path) -> int:
    """Print the sizes under ``root`` and return the exit status."""
    settings = tomllib.loads((root / "pyproject.toml").read_text())
    budget = settings["tool"]["stator"]["size"]["ast_nodes"]

    sources: list[Source] = []
    total = 0
    for package in sorted(root.glob("packages/*/src")):
        read = [Source.read(path, root) for path in sorted(package.rglob("*.py"))]
        nodes = sum(count_nodes(source.tree) for source in read)
        print(f"{package.parent.name:20}{nodes:9,}")
        total += nodes
        sources += read

    print(f"{f'all, of {budget:,}':20}{total:9,}")
    functions = chain.from_iterable(map(long_functions, sources))
    _print_list(f"functions over {_MAX_FUNCTION_LINES} lines", functions)
    _print_list(f"files over {_MAX_FILE_LINES} lines", long_files(sources))
    return int(total > budget)


def _print_list(title: str, found: Iterator[str]) -> None:
    lines = list(found)
    print(f"{title}: {len(lines)}")
    for line in lines:
        print(f"  {line}")


if __name__ == "__main__":
    sys.exit(main(pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else ".")))
