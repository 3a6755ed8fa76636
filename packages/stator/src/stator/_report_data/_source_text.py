"""The functions of the program that a report marks lines in, with their text."""

from __future__ import annotations

import ast
import linecache
from collections import defaultdict
from collections.abc import Iterable
from typing import Any

from stator._report_data._place import PlaceData


def function_texts(places: Iterable[PlaceData]) -> list[dict[str, Any]]:
    """Return the text of each function that has one of the places: `file`, `function`, the number
    of the `first` line, and `lines`. Functions of one file follow each other."""
    lines: defaultdict[str, set[int]] = defaultdict(set)
    for place in places:
        if place["line"]:
            lines[place["file"]].add(place["line"])
    return [text for file, numbers in lines.items() for text in _texts(file, sorted(numbers))]


def _texts(file: str, numbers: list[int]) -> list[dict[str, Any]]:
    source = linecache.getlines(file)
    extents = _extents("".join(source))
    found: dict[tuple[int, int], dict[str, Any]] = {}
    for number in numbers:
        name, first, last = _innermost(extents, number) or ("", number, number)
        text = [line.rstrip("\n") for line in source[first - 1 : last]]
        if text:
            facts = {"file": file, "function": name, "first": first, "lines": text}
            found.setdefault((first, last), facts)
    return [found[extent] for extent in sorted(found)]


_Extent = tuple[str, int, int]


def _extents(source: str) -> list[_Extent]:
    """Return the names and lines of all functions in a file, outer ones first."""
    try:
        tree = ast.parse(source)
    except SyntaxError:  # a cell of a notebook with commands, or a file that has changed
        return []
    found: list[_Extent] = []
    _collect(tree, "", found)
    return found


def _collect(node: ast.AST, prefix: str, found: list[_Extent]) -> None:
    for child in ast.iter_child_nodes(node):
        name = prefix
        if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            name = f"{prefix}.{child.name}" if prefix else child.name
            if not isinstance(child, ast.ClassDef):
                first = min([child.lineno, *(each.lineno for each in child.decorator_list)])
                found.append((name, first, child.end_lineno or child.lineno))
        _collect(child, name, found)


def _innermost(extents: list[_Extent], line: int) -> _Extent | None:
    around = [extent for extent in extents if extent[1] <= line <= extent[2]]
    return around[-1] if around else None
