"""Keeping stator's own frames out of tracebacks.

A frame gets its entry when an exception comes into it, so a frame that catches, takes its entry off
and raises again with a bare `raise` (which adds none) is never seen:

    except BaseException as error:
        hide(error, own_codes)
        raise
"""

import os
from collections.abc import Callable, Container
from types import CodeType, FrameType, TracebackType
from typing import Any

from stator_bytecode._fields import exception_field, set_exception_field
from stator_bytecode._own_module import is_own_module

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


def hide_own_modules(error: BaseException, and_torch: bool = False) -> None:
    """Drop the outermost entries of `error`'s traceback that are of modules of these packages, or
    of torch; none if `STATOR_FULL_TRACEBACK=1` is in the environment."""
    if shows_own_frames():
        return
    entry = exception_field(error, "__traceback__")
    while entry is not None and _is_of_own_module(entry.tb_frame, and_torch):
        entry = entry.tb_next
    set_exception_field(error, "__traceback__", entry)


def shows_own_frames() -> bool:
    """Return True if the user wants to see the frames of these packages in tracebacks."""
    return os.environ.get("STATOR_FULL_TRACEBACK", "") not in ("", "0")


def _is_of_own_module(frame: FrameType, or_torch: bool) -> bool:
    if PASSED_OVER in frame.f_code.co_filename:
        return True
    module = str(frame.f_globals.get("__name__"))
    return is_own_module(module) or (or_torch and module.partition(".")[0] == "torch")


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
