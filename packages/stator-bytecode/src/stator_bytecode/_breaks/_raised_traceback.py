"""Tracebacks for exceptions that were raised and caught while tracing, and outlive it as objects.

    # entries: (code of f, the CALL, globals), (code of g, the RAISE_VARARGS, globals)
    def f():
        try: g()
        except ValueError as error: return error

Each entry gets a frame with the name, file, line and columns of the place: that of a copy of the
code that does nothing but call the next one, or raise, there. These frames have no locals.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from functools import cached_property
from types import CodeType, FunctionType, TracebackType
from typing import Any

import attrs

from stator_bytecode._breaks._glue import Glue
from stator_bytecode._codec._decode import decode
from stator_bytecode._codec._raw import assemble


@attrs.frozen(eq=False)
class TracebackEntry:
    """A point that an exception passed: the instruction at the neutral `index` of `code`."""

    code: CodeType
    index: int
    globals: dict[str, Any]


_COUNTS = ("co_argcount", "co_posonlyargcount", "co_kwonlyargcount", "co_nlocals")
_NAMES = ("co_varnames", "co_cellvars", "co_freevars")
_NO_FUNCTION = (
    inspect.CO_VARARGS
    | inspect.CO_VARKEYWORDS
    | inspect.CO_GENERATOR
    | inspect.CO_COROUTINE
    | inspect.CO_ASYNC_GENERATOR
)


class TracebackFactory:
    """Makes tracebacks with these entries, outermost first. An entry of a graph captures one."""

    def __init__(self, entries: Sequence[TracebackEntry]) -> None:
        self._entries = tuple(entries)

    def __reduce__(self) -> tuple[type[TracebackFactory], tuple[Any, ...]]:
        return TracebackFactory, (self._entries,)

    def __call__(self) -> TracebackType | None:
        try:
            self._raise()
        except AssertionError as error:
            made = error.__traceback__
            assert made is not None
            return made.tb_next
        return None

    @cached_property
    def _raise(self) -> Callable[[], None]:
        """A function that raises through frames like those of the entries."""
        function: Callable[[], None] | None = None
        for entry in reversed(self._entries):
            function = _frame_at(entry, function)
        return function or _nothing


def _nothing() -> None:
    """Traceback without entries."""


def _frame_at(entry: TracebackEntry, inner: Callable[[], None] | None) -> Callable[[], None]:
    """A function that looks like the code of the entry, and calls `inner`, or raises, at that
    place."""
    glue = Glue(entry.code, decode(entry.code).instructions[entry.index].positions)
    glue.emit("RESUME")
    if inner is None:
        glue.constant(AssertionError)
        glue.emit("RAISE_VARARGS", 1)
    else:
        glue.call(inner)
        glue.emit("RETURN_VALUE")

    changes: dict[str, Any] = {
        **dict.fromkeys(_COUNTS, 0),
        **dict.fromkeys(_NAMES, ()),
        "co_consts": tuple(glue.consts),
        "co_flags": entry.code.co_flags & ~_NO_FUNCTION,
    }
    return FunctionType(assemble(glue.raws, entry.code, **changes), entry.globals)
