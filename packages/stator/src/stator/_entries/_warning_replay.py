"""Replay of the warnings of a graph's operators: each call warns as the program does, with the
program's lines.

The graph itself would name a line of generated code, and a compiled graph may not warn at all. So
the warnings captured while tracing are issued after each run, and those of the graph itself are
suppressed.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any

import attrs
from stator_variables import filtered

if TYPE_CHECKING:
    from stator_subgraphs import CapturedWarning


def silent(warned: list[CapturedWarning]) -> AbstractContextManager[None]:
    return filtered("ignore", *[one.text for one in warned])


@attrs.define(eq=False)
class WarningReplay:
    """`graph`, with the warnings of its operators."""

    graph: Callable[..., Any]
    warned: list[CapturedWarning]
    # by file: the name, and what Python has shown of it
    modules: dict[str, dict[str, Any]] = attrs.field(factory=dict)

    def __call__(self, *inputs: object) -> Any:
        with silent(self.warned):
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
