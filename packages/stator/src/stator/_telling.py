"""Warnings of our own, shown where the user calls what is compiled.

Inside of it they would be heard by the program: it may catch warnings, or make errors of them half way through.
"""

from __future__ import annotations

import inspect
import threading
import warnings
from contextlib import AbstractContextManager

import attrs
from stator_bytecode import PASSED_OVER

from stator._traceback import WRAPPERS


@attrs.define(eq=False, slots=False)
class _Untold(threading.local):
    """`depth` counts the compiled functions that run in this thread, parts of them plainly.

    Not a `contextmanager`, which sets the traceback of what the program raises through its class.
    """

    waiting: list[Warning] = attrs.field(factory=list)
    depth: int = 0

    def __enter__(self) -> None:
        self.depth += 1

    def __exit__(self, *raised: object) -> None:
        self.depth -= 1


_untold = _Untold()


def tell_later(warning: Warning) -> None:
    """Show a warning when the outermost compiled function has returned."""
    _untold.waiting.append(warning)


def inside() -> AbstractContextManager[None]:
    """Code of the program runs: nothing is told before its end."""
    return _untold


def tell() -> None:
    """Show what waits. Raises it where the user makes errors of warnings."""
    while _untold.waiting and not _untold.depth:
        warnings.warn(_untold.waiting.pop(0), stacklevel=depth_of_the_user())


def depth_of_the_user() -> int:
    """The stacklevel of the first frame outside of this package, seen from where it is called. What Python passes over
    is not counted."""
    depth, frame = 1, inspect.currentframe()
    frame = None if frame is None else frame.f_back
    while frame is not None and (
        str(frame.f_globals.get("__name__")).startswith("stator.") or frame.f_code.co_filename.startswith(WRAPPERS)
    ):
        depth, frame = depth + (not frame.f_code.co_filename.endswith(PASSED_OVER)), frame.f_back
    return depth
