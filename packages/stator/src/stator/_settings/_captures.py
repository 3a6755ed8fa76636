"""Captures: modules of handlers, each of which can be switched off.

A capture replaces a graph break by graph nodes or folded values. Without it the program breaks
there, and the answer is the same. Its name is the path of the module of its handlers, for modules
of stator without the package and underscores:

    stator_variables._library._random._torch    library.random.torch
    stator_subgraphs._operators._cond           operators.cond
    my_plugin._images                           my_plugin._images

`options={"without": ["operators.cond", "library.random"]}` removes the handlers of one capture and
those of a folder from the tables of a compiled object, and `"*"` those of all.
"""

import difflib
import functools
from collections.abc import Callable, Iterable, Mapping
from itertools import chain
from typing import Any, TypeVar

from stator_bytecode import HandlerTable
from stator_variables import BuilderTable

from stator.errors import InvalidOption

ALL = "*"
"""The name of all captures together."""

_OWN_PACKAGES = frozenset({"stator", "stator_subgraphs", "stator_variables"})

K = TypeVar("K")
Tables = tuple[Mapping[Any, Any], BuilderTable]
"""Handlers with operators, and builders of other distributions: those of stator are storage."""


def capture_of(handler: Callable[..., Any]) -> str:
    """Return the name of the capture that a handler, or a builder, belongs to."""
    while isinstance(handler, functools.partial):
        handler = handler.func
    return _name_of(handler.__module__)


@functools.cache
def _name_of(module: str) -> str:
    package, _, path = module.partition(".")
    if package not in _OWN_PACKAGES or not path:
        return module
    return ".".join(part.removeprefix("_") for part in path.split("."))


def names_of(tables: Tables) -> tuple[str, ...]:
    """Return the names of the captures of these tables, sorted."""
    handlers, builders = tables
    found = chain(handlers.values(), builders.by_class.values(), builders.by_base.values())
    return tuple(sorted(set(map(capture_of, found))))


def matching(names: Iterable[str], selected: Iterable[str]) -> frozenset[str]:
    """Return the names that are selected: by themselves, by their folder or by `"*"`."""
    wanted = frozenset(selected)
    return frozenset(name for name in names if _is_selected(name, wanted))


def _is_selected(name: str, selected: frozenset[str]) -> bool:
    return ALL in selected or name in selected or not selected.isdisjoint(_folders_of(name))


def _folders_of(name: str) -> list[str]:
    """Return the folders that a capture is in, from the outermost."""
    parts = name.split(".")
    return [".".join(parts[:count]) for count in range(1, len(parts))]


def are_names(value: object) -> bool:
    """Return True if `value` is valid for the option `without`, as far as its type shows."""
    if not isinstance(value, list | tuple | set | frozenset):
        return False
    return all(isinstance(name, str) for name in value)


def checked(selected: Iterable[str], tables: Callable[[], Tables]) -> tuple[str, ...]:
    """Return the selected names in one order, so that equal options share entries.

    Raises InvalidOption for a name that selects no capture of the tables, which are made for that.
    """
    ordered = tuple(sorted(set(selected)))
    names = names_of(tables()) if ordered else ()
    for name in ordered:
        if not matching(names, [name]):
            raise InvalidOption(f"no capture is called {name!r}", _near(name, names), "without")
    return ordered


def _near(name: str, names: tuple[str, ...]) -> str:
    """Return a hint with captures and folders whose names, or the last parts of them, are close."""
    known = dict.fromkeys(chain(names, *map(_folders_of, names)))
    ends = {each.rpartition(".")[2]: each for each in known}
    near = dict.fromkeys(difflib.get_close_matches(name, known))
    last = name.rpartition(".")[2]
    near |= dict.fromkeys(ends[end] for end in difflib.get_close_matches(last, ends))
    if not near:
        return "stator.list_captures() has the names"
    return f"did you mean {' or '.join(map(repr, near))}?"


def without_captures(tables: Tables, selected: Iterable[str]) -> Tables:
    """Return the tables without the handlers and builders of the selected captures."""
    off = matching(names_of(tables), selected)
    handlers, builders = tables
    kept = BuilderTable(_kept(builders.by_class, off), _kept(builders.by_base, off))
    return _kept(handlers, off), kept


def _kept(table: Mapping[K, Any], off: frozenset[str]) -> HandlerTable[Any, Any]:
    what = table.what if isinstance(table, HandlerTable) else "callable"
    kept = {key: handler for key, handler in table.items() if capture_of(handler) not in off}
    return HandlerTable(what, kept)
