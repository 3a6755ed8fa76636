"""Capture of warnings that operators issue on fakes: they are recorded on their nodes, and issued
again when the graph runs.

Operators are called by stator's code: a warning attributed to it, or to torch's private modules,
belongs to the user's line. A public function in Python that names a line of its own keeps that.
"""

import os
import re
import threading
import warnings
from collections.abc import Callable
from typing import Any

import attrs
import torch

from stator_subgraphs import _fake
from stator_subgraphs._location import Location

MACHINERY = (
    os.path.join(os.path.dirname(__file__), ""),
    os.path.join(os.path.dirname(torch.__file__), "_"),
)
SYMBOL = re.compile(r"\b[suz]\d+\b")


@attrs.frozen
class CapturedWarning:
    """One warning. `often`: in each call of the operator; else C++ may give it once in the life of
    the process."""

    category: type[Warning]
    text: str
    filename: str
    line: int
    often: bool


@attrs.define(eq=False)
class WarningCapture:
    """Around a run on fakes: what this thread warns of is kept in `captured`, and not shown."""

    location: Location
    captured: list[CapturedWarning] = attrs.Factory(list)
    thread: int = 0
    show: Callable[..., Any] = warnings.showwarning

    def __enter__(self) -> list[CapturedWarning]:
        # all operators are called at one line: a repeated warning must be issued again
        vars(_fake).pop("__warningregistry__", None)
        self.thread, self.show = threading.get_ident(), warnings.showwarning
        warnings.showwarning = self._capture
        return self.captured

    def __exit__(self, *error: object) -> None:
        warnings.showwarning = self.show
        self.thread = 0

    def _capture(
        self, message: Any, category: Any, filename: str, lineno: int, *more: Any, **named: Any
    ) -> None:
        # Of another thread; or somebody kept this method, and it is over; or nothing that the
        # operator does each time.
        if threading.get_ident() != self.thread or issubclass(category, DeprecationWarning):
            self.show(message, category, filename, lineno, *more, **named)
            return
        text = str(message)
        # mentions a size that may differ in each call: the graph itself issues it
        if SYMBOL.search(text):
            return
        often = "(Triggered internally at" not in text or torch.is_warn_always_enabled()
        if filename.startswith(MACHINERY):
            span = self.location.span()
            filename, lineno = span.filename, span.line or 0
        self.captured.append(CapturedWarning(category, text, filename, lineno, often))
