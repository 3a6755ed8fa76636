"""One line on the terminal, or in a notebook, while compilations take longer than two seconds.

Compilations that follow each other closely, as those of one call do, count as one. A thread writes
the line by tqdm (`pip install stator[progress]`); it exists from the start of a compilation until a
second after the last one. `STATOR_PROGRESS=0` turns it off.
"""

from __future__ import annotations

import functools
import importlib.util
import os
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import attrs

PATIENCE = 2.0
"""Seconds after which the line appears."""
PAUSE = 1.0
"""Seconds without a compilation after which it goes."""
TICK = 0.2
"""Seconds between two updates."""


@attrs.define(eq=False)
class CompileProgress:
    """The compilations that are under way, and what the line shows of them."""

    name: str = ""
    stage: str = ""
    frames: int = 0
    graphs: int = 0
    begun: float = 0.0
    ended: float = 0.0
    pending: int = 0
    _thread: threading.Thread | None = None

    @contextmanager
    def around(self, name: str) -> Iterator[None]:
        """Surround a compilation."""
        if not is_shown():
            yield
            return
        self._begin(name)
        try:
            yield
        finally:
            self.pending -= 1
            self.ended = time.monotonic()

    def _begin(self, name: str) -> None:
        now = time.monotonic()
        if not self.pending and now - self.ended > PAUSE:
            self.begun, self.frames, self.graphs = now, 0, 0
        self.name, self.stage = name, "tracing"
        self.frames += 1
        self.pending += 1
        if self._thread is None or not self._thread.is_alive():
            self._thread = threading.Thread(target=self._show, args=[sys.stderr], daemon=True)
            self._thread.start()

    def add_graph(self, stage: str) -> None:
        """Count a graph, which the backend gets next."""
        self.graphs += 1
        self.stage = stage

    def text(self, now: float) -> str:
        """Return the line."""
        counts = f"{_counted(self.frames, 'frame')}, {_counted(self.graphs, 'graph')}"
        return f"stator: {self.name}: {self.stage} ({counts}, {now - self.begun:.0f} s)"

    def _show(self, stream: Any) -> None:
        line = None
        while self.pending or time.monotonic() - self.ended < PAUSE:
            now = time.monotonic()
            if line is None and self.pending and now - self.begun > PATIENCE:
                line = _line(stream)
            if line is not None:
                line.set_description_str(self.text(now))
            time.sleep(TICK)
        if line is not None:
            line.close()


def _line(stream: Any) -> Any:
    """Return a line of tqdm, which is erased when it is closed."""
    import tqdm
    import tqdm.auto

    if _in_notebook():
        return tqdm.auto.tqdm(bar_format="{desc}", leave=False)
    return tqdm.tqdm(bar_format="{desc}", leave=False, file=stream, dynamic_ncols=True)


def _counted(count: int, noun: str) -> str:
    return f"1 {noun}" if count == 1 else f"{count} {noun}s"


def is_shown() -> bool:
    """Return True where somebody may look at a line, and tqdm can write it."""
    if os.environ.get("STATOR_PROGRESS") == "0":
        return False
    is_terminal = getattr(sys.stderr, "isatty", bool)()
    return (is_terminal or _in_notebook()) and _has_tqdm()


def _in_notebook() -> bool:
    return "ipykernel" in sys.modules


@functools.cache
def _has_tqdm() -> bool:
    return importlib.util.find_spec("tqdm") is not None


PROGRESS = CompileProgress()
"""The progress of this process."""
