"""The catalogue of captures: ``docs/reference/captures.md``.

Names and handlers come from the tables that are merged, sizes and tests from the files.
"""

from __future__ import annotations

import functools
import pathlib
import re
from collections.abc import Iterator, Mapping
from typing import Any

from captures import Division, Module, divide
from stator._program import _module
from stator._settings import _comptime
from stator._settings._captures import capture_of
from stator_subgraphs import OPERATORS
from stator_variables import DEFAULT_HANDLERS

_SHOWN = 6
"""The handlers of a capture that are named; the others are counted."""

LEAD = (
    "A capture replaces a graph break by graph nodes or folded values. Without it the program "
    "breaks there, and the answer is the same: "
    "`integration_tests/corpora/test_without_captures.py` compares programs with plain Python "
    "while all are off, random halves, and each one alone. "
    '`options={"without": ["library.enums", "operators"]}` switches off captures and folders of '
    'them, `["*"]` all; the captures of installed distributions have the names of their modules. '
    "`stator.list_captures()` has all names, and `stator.bisect` finds those at fault."
)
SIZES = (
    "Nodes are those of the syntax tree. A module of handlers counts as a whole; `stator` is not "
    "divided, so of its modules the handlers count. `-` is a capture whose handlers are registered "
    "by another module. Tests are the files that "
    "are named after the module or refer to it, in its package or in `integration_tests`; "
    "`integration_tests/corpora/test_without_captures.py` tests all."
)


def body(root: pathlib.Path) -> str:
    """Return the page below its lead."""
    division = divide(root)
    lines = [SIZES, "", "| package | kernel | captures | functions that only captures use |"]
    lines += ["|---|---|---|---|", *_packages(division)]
    lines += ["", "| capture | handlers of | nodes | tests |", "|---|---|---|---|"]
    found = _handled({**DEFAULT_HANDLERS, **_module.handlers, **_comptime.handlers, **OPERATORS})
    for name, keys in sorted(found.items()):
        module = division.captures.get(name)
        nodes = "-" if module is None else f"{_rounded(division.nodes_of(module), 50):,}"
        tests = "-" if module is None else _tests(root, module)
        lines.append(f"| `{name}` | {_named(keys)} | {nodes} | {tests} |")
    return "\n".join(lines)


def _packages(division: Division) -> Iterator[str]:
    for package in sorted({module.package for module in division.modules.values()}):
        kernel, captures, support = (_rounded(size, 500) for size in division.sizes(package))
        yield f"| `{package}` | {kernel:,} | {captures:,} | {support:,} |"


def _rounded(nodes: int, unit: int) -> int:
    """Return a size that stays the same in a small change."""
    return round(nodes / unit) * unit


def _handled(table: Mapping[Any, Any]) -> dict[str, list[str]]:
    """Return the names of the real callables by the names of the captures."""
    found: dict[str, list[str]] = {}
    for key, handler in table.items():
        found.setdefault(capture_of(handler), []).append(_key_name(key))
    return found


def _key_name(key: Any) -> str:
    if isinstance(key, str):
        return key
    owner = getattr(key, "__objclass__", None)
    name = str(getattr(key, "__qualname__", "") or getattr(key, "__name__", type(key).__name__))
    if "pybind11" in name:  # a record of pybind11, whose name depends on the compiler
        name = getattr(key, "__name__", "") or type(key).__name__
    module = getattr(key if owner is None else owner, "__module__", None)
    if module in (None, "builtins"):
        return str(name)
    return f"{module}.{name}"


def _named(keys: list[str]) -> str:
    names = sorted(set(keys))
    # not in backticks: the names in these are imported by a test, which some of C do not allow
    shown = ", ".join(f"<code>{name.replace('_', '&#95;')}</code>" for name in names[:_SHOWN])
    more = len(keys) - len(names[:_SHOWN])
    return f"{shown} and {more} more" if more else shown


def _tests(root: pathlib.Path, module: Module) -> str:
    """Return the files that are named after a module, or that refer to it."""
    stem = module.path.stem.removeprefix("_")
    named = re.compile(rf"test_{stem}(_\w+)?\.py")
    found = {
        path.name
        for path, text in _texts(root, module.package)
        if named.fullmatch(path.name) or module.name in text
    }
    return ", ".join(f"`{file}`" for file in sorted(found)) or "-"


@functools.cache
def _texts(root: pathlib.Path, package: str) -> list[tuple[pathlib.Path, str]]:
    """Return the test files of a package and of the whole stack, with their texts."""
    folders = root / "packages" / package / "tests", root / "integration_tests"
    paths = [path for folder in folders for path in folder.rglob("test_*.py")]
    return [(path, path.read_text()) for path in paths]
