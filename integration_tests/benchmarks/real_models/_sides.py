"""The two compilers, behind one interface."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol


class Side(Protocol):
    """A compiler under measurement; one process uses one of them once."""

    def compile(
        self, fn: Callable[..., Any], backend: Callable[..., Any], recompile_limit: int
    ) -> Any: ...

    def compilations(self) -> int:
        """Return a number that has grown if anything was compiled or traced, graph or not."""


class Stator:
    """stator; every entry is a compilation."""

    def __init__(self) -> None:
        self._compiled: Any = None

    def compile(
        self, fn: Callable[..., Any], backend: Callable[..., Any], recompile_limit: int
    ) -> Any:
        import stator

        self._compiled = stator.compile(fn, backend=backend, recompile_limit=recompile_limit)
        return self._compiled

    def compilations(self) -> int:
        report = self._compiled.report
        return len(report.entries) + len(report.refused)


class Torch:
    """torch.compile; every frame that it has looked at is a compilation.

    It leaves recurrent layers to eager execution unless ``allow_rnn`` is set, which would not be
    overhead.
    """

    def compile(
        self, fn: Callable[..., Any], backend: Callable[..., Any], recompile_limit: int
    ) -> Any:
        import torch._dynamo

        torch._dynamo.config.recompile_limit = recompile_limit
        torch._dynamo.config.allow_rnn = True
        return torch.compile(fn, backend=backend)

    def compilations(self) -> int:
        from torch._dynamo.utils import counters

        return int(counters["frames"]["total"])


SIDES: dict[str, Callable[[], Side]] = {"stator": Stator, "torch": Torch}
