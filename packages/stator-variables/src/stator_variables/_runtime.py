"""What generated entries call at run time."""

from __future__ import annotations

import contextlib
import types
from collections import deque
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


def unset(member: Any, owner: Any) -> None:
    """Empty a slot, which may have been filled only while tracing."""
    with contextlib.suppress(AttributeError):
        member.__delete__(owner)


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


def spoiled(container: Any, make: Callable[[Any], Iterator[Any]], most: int) -> Iterator[Any]:
    """An iterator over `container`, which will find it changed.

    Sets compare sizes, and end up with at most `most` items; deques count what is done to them.
    """
    if isinstance(container, deque):
        held, made = list(container), make(container)
        deque.append(container, None)
        deque.clear(container)
        deque.extend(container, held)
        return made
    marks = {object() for _ in range(most + 1)}
    set.update(container, marks)
    made = make(container)
    set.difference_update(container, marks)
    return made
