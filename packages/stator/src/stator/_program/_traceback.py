"""Our own frames are no part of the user's traceback.

A frame that catches, takes its entry off and raises again with a bare `raise` is never seen.
"""

from types import CodeType

from stator_bytecode import (
    exception_field,
    hide_own_modules,
    set_exception_field,
    shows_own_frames,
)
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
    cls = type(error)  # `isinstance` would call the `__class__` of an error of the program
    drops_all = issubclass(cls, StatorError) and not issubclass(cls, InternalError)
    if drops_all and not shows_own_frames():
        hide_own_modules(error)
        return
    entry = exception_field(error, "__traceback__")
    while entry is not None and _is_ours(entry.tb_frame.f_code):
        entry = entry.tb_next
    set_exception_field(error, "__traceback__", entry)


def _is_ours(code: CodeType) -> bool:
    return code in OWN_CODES or code.co_filename.startswith(WRAPPERS)


class hidden_frames:
    """Drop the entries of our own frames from the traceback of what leaves the block."""

    def __enter__(self) -> None:
        return None

    def __exit__(
        self, cls: type[BaseException] | None, error: BaseException | None, entry: object
    ) -> None:
        if error is not None:
            hide(error)
