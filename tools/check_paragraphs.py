"""Check that blank lines part the steps of long functions.

``python tools/check_paragraphs.py [ROOT]`` prints each function of the packages whose body has more
than 15 lines, and in it a paragraph of more than 12, and fails if there is one.

A paragraph is what a reader takes in at once: two or more statements of one block, with the blocks
below them, without a blank line or a comment line in between. One long statement, such as a call
or a chain of ``elif``, is no paragraph, since nothing can part it.
"""

from __future__ import annotations

import ast
import pathlib
import sys
from collections.abc import Iterator, Sequence

from package_source import Source, read_packages

MOST_LINES = 12
"""The lines of a paragraph."""
SHORT = 15
"""The lines of a body up to which it needs no paragraphs."""

_Function = ast.FunctionDef | ast.AsyncFunctionDef
_Block = Sequence[ast.stmt]


def long_paragraphs(source: Source, lines: Sequence[str]) -> Iterator[str]:
    """Yield the place of each function with a paragraph that is too long."""
    parting = {number for number, line in enumerate(lines, 1) if _parts(line)}
    for function in ast.walk(source.tree):
        if not isinstance(function, _Function):
            continue
        longest = _longest_paragraph(function, parting)
        if longest > MOST_LINES:
            what = f"{function.name} has a paragraph of {longest} lines"
            yield f"{source.path}:{function.lineno}: {what}"


def _parts(line: str) -> bool:
    text = line.strip()
    return not text or text.startswith("#")


def _longest_paragraph(function: _Function, parting: set[int]) -> int:
    """Return the lines of the longest paragraph of a long body; 0 for a short one."""
    body = _without_docstring(function.body)
    if not body or _last(body) - _first(body[0]) + 1 <= SHORT:
        return 0
    blocks = [body, *(block for statement in body for block in _blocks(statement))]
    paragraphs = [each for block in blocks for each in _paragraphs(block, parting)]
    return max((_longest_run(each, parting) for each in paragraphs), default=0)


def _without_docstring(body: _Block) -> _Block:
    first = body[0]
    is_text = isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant)
    return body[1:] if is_text else body


def _blocks(node: ast.AST) -> Iterator[_Block]:
    """Yield the blocks below a statement."""
    for each in ast.walk(node):
        for name in ("body", "orelse", "finalbody"):
            block = getattr(each, name, None)
            if isinstance(block, list):
                yield block


def _paragraphs(block: _Block, parting: set[int]) -> Iterator[_Block]:
    """Yield the runs of two or more statements between which nothing parts."""
    paragraph: list[ast.stmt] = []
    for statement in block:
        if paragraph and not parting.isdisjoint(range(_last(paragraph) + 1, _first(statement))):
            yield paragraph
            paragraph = []
        paragraph.append(statement)
    yield paragraph


def _longest_run(paragraph: _Block, parting: set[int]) -> int:
    """Return the most lines between two that part: those may be in blocks below."""
    if len(paragraph) < 2:
        return 0
    longest = run = 0
    for number in range(_first(paragraph[0]), _last(paragraph) + 1):
        run = 0 if number in parting else run + 1
        longest = max(longest, run)
    return longest


def _first(statement: ast.stmt) -> int:
    decorators: list[ast.expr] = getattr(statement, "decorator_list", [])
    return min([statement.lineno, *(each.lineno for each in decorators)])


def _last(statements: _Block) -> int:
    return statements[-1].end_lineno or 0


def main(root: pathlib.Path) -> int:
    """Check the packages below ``root``; return the status of the process."""
    sources = [source for package in read_packages(root).values() for source in package]
    problems = [
        problem
        for source in sources
        for problem in long_paragraphs(source, (root / source.path).read_text().splitlines())
    ]
    print(*problems, sep="\n" if problems else "")
    return int(bool(problems))


if __name__ == "__main__":
    default = pathlib.Path(__file__).resolve().parents[1]
    sys.exit(main(pathlib.Path(sys.argv[1]) if len(sys.argv) > 1 else default))
