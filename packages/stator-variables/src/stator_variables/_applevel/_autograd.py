"""The context that forward and backward of an `autograd.Function` are interpreted with."""

from __future__ import annotations

from typing import Any

from torch.autograd.function import FunctionCtx


class Context(FunctionCtx):
    """Stores what the real one does, under the same names. What it cannot know is asked of `unknown`, and refused."""

    @property
    def saved_tensors(self) -> Any:
        return self.saved

    def __getattr__(self, name: str) -> Any:
        return unknown(self, name)


def unknown(context: Any, name: str) -> Any:
    """An attribute that nobody stored; handled by whoever interprets this."""
    raise AttributeError(name)
