"""What generated entries call at run time."""

from __future__ import annotations

import types
from collections import OrderedDict, deque
from collections.abc import Callable, Iterator
from typing import Any


def make_function(
    code: types.CodeType, globals_: dict[str, Any], name: str, qualname: str, closure: tuple[types.CellType, ...]
) -> types.FunctionType:
    """A function object as MAKE_FUNCTION makes it."""
    function = types.FunctionType(code, globals_, name, None, closure or None)
    function.__qualname__ = qualname
    function.__module__ = globals_.get("__name__", function.__module__)
    return function


def advanced(iterator: Iterator[Any], steps: int) -> Iterator[Any]:
    """A fresh builtin iterator, moved on by `steps` items."""
    for _ in range(steps):
        next(iterator)
    return iterator


def finished(iterator: Iterator[Any]) -> Iterator[Any]:
    """A builtin iterator at its end."""
    for _ in iterator:
        pass
    return iterator


def spoiled(container: Any, through: Any, make: Callable[[Any], Iterator[Any]], most: int) -> Iterator[Any]:
    """An iterator over `container` (itself, or a view of it) that will find it changed.

    Dicts and sets compare sizes, and end up with at most `most` items; deques count what is done to them.
    """
    if isinstance(container, deque):
        held, made = list(container), make(through)
        deque.append(container, None)
        deque.clear(container)
        deque.extend(container, held)
        return made
    marks = [object() for _ in range(most + 1)]
    base: Any = next(base for base in (set, OrderedDict, dict) if isinstance(container, base))
    put, drop = (set.add, set.discard) if base is set else (base.setdefault, base.pop)
    for mark in marks:
        put(container, mark)
    made = make(through)
    for mark in marks:
        drop(container, mark)
    return made
