"""Our own frames are no part of the user's traceback.

A frame that catches, takes its entry off and raises again with a bare `raise` is never seen.
"""

import os
from types import CodeType, FrameType

from stator_bytecode import exception_field, is_own_module, set_exception_field
from stator_bytecode.errors import InternalError, StatorError

OWN_CODES: set[CodeType] = set()
"""Codes that may stand between the user's call and the user's code. Each module adds its own when
it is imported."""

WRAPPERS = "<stator wrapper of "
"""The prefix of the file names of wrappers, which are made per function."""


def hide(error: BaseException) -> None:
    """Drop the outermost entries of `error`'s traceback, as long as they are ours.

    An error of ours shows the program only: where it called, and in its text what cannot be
    captured. `STATOR_FULL_TRACEBACK=1` in the environment shows all, and so does a fault of ours.
    """
    drops_all = isinstance(error, StatorError) and not isinstance(error, InternalError)
    if drops_all and not _shows_all():
        hide_all(error)
        return
    entry = exception_field(error, "__traceback__")
    while entry is not None and _is_ours(entry.tb_frame.f_code):
        entry = entry.tb_next
    set_exception_field(error, "__traceback__", entry)


def hide_all(error: BaseException, and_torch: bool = False) -> None:
    """Drop the outermost entries of `error`'s traceback that are of any module of ours, or of
    torch."""
    entry = exception_field(error, "__traceback__")
    while entry is not None and not _shows_all() and _is_of_stator(entry.tb_frame, and_torch):
        entry = entry.tb_next
    set_exception_field(error, "__traceback__", entry)


def _shows_all() -> bool:
    return os.environ.get("STATOR_FULL_TRACEBACK", "") not in ("", "0")


def _is_of_stator(frame: FrameType, or_torch: bool) -> bool:
    module = str(frame.f_globals.get("__name__"))
    if or_torch and module.partition(".")[0] == "torch":
        return True
    return _is_ours(frame.f_code) or is_own_module(module)


def _is_ours(code: CodeType) -> bool:
    return code in OWN_CODES or code.co_filename.startswith(WRAPPERS)
