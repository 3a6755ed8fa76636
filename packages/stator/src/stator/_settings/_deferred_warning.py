"""Warnings of stator, shown where the user calls a compiled function.

Inside the compiled function they would reach the program, which may catch warnings or turn them
into errors half way through.
"""

import inspect
import sys
import threading
import warnings
from types import CodeType, FrameType

import attrs
from stator_bytecode import PASSED_OVER

from stator._program._traceback import WRAPPERS


@attrs.define(eq=False, slots=False)
class _DeferredWarnings(threading.local):
    waiting: list[Warning] = attrs.field(factory=list)


deferred_warnings = _DeferredWarnings()
"""The warnings of this thread that wait for the outermost compiled function to return."""
RUNNERS: set[CodeType] = set()
"""Codes of the functions that run parts of the program and show what waits at their end."""


def defer_warning(warning: Warning) -> None:
    """Show a warning when the outermost compiled function has returned."""
    deferred_warnings.waiting.append(warning)


def show_deferred_warnings() -> None:
    """Show the deferred warnings, at the end of a runner; a nested runner leaves them to the outer
    one.

    The depth of the frames is computed only when a warning waits, which is rare: it would cost
    every call. Raises the warnings that the user's filters turn into errors.
    """
    while deferred_warnings.waiting and not _is_inside(sys._getframe(2)):
        warnings.warn(deferred_warnings.waiting.pop(0), stacklevel=depth_of_the_user())


def _is_inside(frame: FrameType | None) -> bool:
    while frame is not None:
        if frame.f_code in RUNNERS:
            return True
        frame = frame.f_back
    return False


def depth_of_the_user() -> int:
    """The stacklevel of the first frame outside of this package, seen from where it is called. What
    Python passes over is not counted."""
    depth, frame = 1, inspect.currentframe()
    frame = None if frame is None else frame.f_back
    while frame is not None and (
        str(frame.f_globals.get("__name__")).startswith("stator.")
        or frame.f_code.co_filename.startswith(WRAPPERS)
    ):
        depth, frame = depth + (not frame.f_code.co_filename.endswith(PASSED_OVER)), frame.f_back
    return depth
