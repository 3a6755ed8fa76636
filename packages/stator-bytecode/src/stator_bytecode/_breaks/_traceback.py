"""Keeping stator's own frames out of tracebacks.

A frame gets its entry when an exception comes into it, so a frame that catches, takes its entry off
and raises again with a bare `raise` (which adds none) is never seen:

    except BaseException as error:
        hide(error, own_codes)
        raise
"""

from collections.abc import Callable, Container
from types import CodeType, TracebackType
from typing import Any

from stator_bytecode._fields import exception_field, set_exception_field

PASSED_OVER = " (as importlib._bootstrap)"


def passed_over(*functions: Callable[..., Any]) -> frozenset[CodeType]:
    """Return the codes of functions of ours that stand between two frames of the program.

    `warnings` and `logging` count no frame whose file is named as those of the import system (its
    internal frames in Python/_warnings.c). Named so, these leave `stacklevel=2` at the program's
    own frame.
    """
    for function in functions:
        code = function.__code__
        function.__code__ = code.replace(co_filename=f"{code.co_filename}{PASSED_OVER}")
    return frozenset(function.__code__ for function in functions)


def hide(error: BaseException, own: Container[CodeType]) -> None:
    """Drop the outermost entries of `error`'s traceback, as long as they are those of `own`
    codes."""
    entry = exception_field(error, "__traceback__")
    while entry is not None and entry.tb_frame.f_code in own:
        entry = entry.tb_next
    set_exception_field(error, "__traceback__", entry)


def drop_outer(error: BaseException, count: int) -> None:
    """Drop the `count` outermost entries."""
    set_exception_field(
        error, "__traceback__", after(exception_field(error, "__traceback__"), count)
    )


def drop_at(error: BaseException, place: int) -> None:
    """Drop the entry with `place` entries outside of it."""
    if not place:
        drop_outer(error, 1)
        return
    if (outer := after(exception_field(error, "__traceback__"), place - 1)) is not None:
        outer.tb_next = after(outer, 2)


def after(entry: TracebackType | None, count: int) -> TracebackType | None:
    for _ in range(count):
        entry = None if entry is None else entry.tb_next
    return entry


def outermost(entry: TracebackType | None, count: int) -> TracebackType | None:
    """A copy of the `count` outermost entries."""
    if entry is None or not count:
        return None
    return TracebackType(
        outermost(entry.tb_next, count - 1), entry.tb_frame, entry.tb_lasti, entry.tb_lineno
    )
