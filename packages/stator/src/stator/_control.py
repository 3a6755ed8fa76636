"""What users put into their own code: `graph_break`, `disable`, `is_compiling`; and `reset`."""

from __future__ import annotations

import functools
import weakref
from collections.abc import Callable
from typing import Any, TypeVar

import torch

F = TypeVar("F", bound=Callable[..., Any])


def graph_break() -> None:
    """Break the graph here. Does nothing when the code runs plainly."""


graph_break._stator_graph_break = True  # type: ignore[attr-defined]


def disable(fn: F) -> F:
    """Mark a function to run without being compiled; compiled code that calls it breaks there."""

    @functools.wraps(fn)
    def plainly(*args: Any, **kwargs: Any) -> Any:
        return fn(*args, **kwargs)

    plainly._stator_disable = True  # type: ignore[attr-defined]
    return plainly  # type: ignore[return-value]


def is_compiling() -> bool:
    """Whether this code is being captured, by stator or by torch.compile. False when it runs plainly."""
    return torch.compiler.is_compiling()


REGIONS: weakref.WeakSet[Any] = weakref.WeakSet()


def reset() -> None:
    """Forget everything that was compiled; compiled functions compile again on their next call."""
    for region in list(REGIONS):
        region.reset()
