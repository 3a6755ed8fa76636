"""Capture of warnings that operators issue on fakes: they are recorded on their nodes, and issued
again when the graph runs, with the program's lines.

Operators are called by stator's code: a warning attributed to it, or to torch's private modules,
belongs to the user's line. A public function in Python that names a line of its own keeps that.

The graph itself would name a line of generated code, and a compiled graph may not warn at all. So
the warnings are issued after each run, and those of the graph itself are suppressed.
"""

import os
import re
import sys
import threading
import warnings
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any

import attrs
import torch
from stator_variables import filtered, give_warning
from torch import fx

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


def computes_nothing(node: fx.Node) -> bool:
    """Return True if a node computes nothing: it sets a mode, or warns."""
    return node.target is give_warning or _fake.is_mode_call(node)


# -- where the graph runs --------------------------------------------------------------------------
def quiet(graph: fx.Graph) -> AbstractContextManager[None]:
    """Show no warning that operators of the graph gave while it was traced."""
    return _silenced(_all_of(graph))


def with_messages(function: Callable[..., Any], graph: fx.Graph) -> Callable[..., Any]:
    """Return a compiled graph that issues the warnings of its operators in each call."""
    warned = _all_of(graph)
    return WarningReplay(function, warned) if warned else function


def _all_of(graph: fx.Graph) -> list[CapturedWarning]:
    return [warning for node in graph.nodes for warning in node.meta.get("warns", ())]


def _silenced(warned: list[CapturedWarning]) -> AbstractContextManager[None]:
    return filtered("ignore", *[one.text for one in warned])


@attrs.define(eq=False)
class WarningReplay:
    """`graph`, with the warnings of its operators."""

    graph: Callable[..., Any]
    warned: list[CapturedWarning]
    # by file: the name, and what Python has shown of it
    modules: dict[str, dict[str, Any]] = attrs.field(factory=dict)

    def __call__(self, *inputs: object) -> Any:
        with _silenced(self.warned):
            outputs = self.graph(*inputs)
        for one in self.warned:
            if (known := self.modules.get(one.filename)) is None:
                known = self.modules[one.filename] = _module(one.filename)
            warnings.warn_explicit(one.text, one.category, one.filename, one.line, **known)
        self.warned = [one for one in self.warned if one.often]
        return outputs


def _module(filename: str) -> dict[str, Any]:
    found = (
        module
        for module in [*sys.modules.values()]
        if getattr(module, "__file__", None) == filename
    )
    if (module := next(found, None)) is None:
        # code of a notebook or of `exec`; `module=None` would suppress the warning
        return {"registry": {}}
    return {
        "module": module.__name__,
        "registry": vars(module).setdefault("__warningregistry__", {}),
    }
