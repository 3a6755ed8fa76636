"""The parsed source files of the packages, and the nodes in them, for the checks that count."""

from __future__ import annotations

import ast
import pathlib
from collections.abc import Iterable, Iterator

import attrs

# Singletons that the parser attaches to a node that is counted already.
NOT_COUNTED = (ast.expr_context, ast.operator, ast.unaryop, ast.cmpop, ast.boolop)


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


def read_packages(root: pathlib.Path) -> dict[str, list[Source]]:
    """Return the shipped files of each package, by the name of its distribution."""
    found = {}
    for folder in sorted(root.glob("packages/*/src")):
        paths = sorted(folder.rglob("*.py"))
        found[folder.parent.name] = [Source.read(path, root) for path in paths]
    return found


def count_nodes(tree: ast.AST) -> int:
    """Return the number of nodes in a tree, without expression contexts and operator tokens."""
    return count(ast.walk(tree))


def count(nodes: Iterable[ast.AST]) -> int:
    """Return the number of these nodes that count."""
    return sum(1 for node in nodes if not isinstance(node, NOT_COUNTED))


def annotations_of(tree: ast.Module) -> Iterator[ast.expr]:
    """Yield the annotations of parameters, results and variables."""
    for node in ast.walk(tree):
        if isinstance(node, ast.arg | ast.AnnAssign) and node.annotation is not None:
            yield node.annotation
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.returns is not None:
            yield node.returns
