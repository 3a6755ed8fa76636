"""Times of entries: how long each compilation took, and, under `options={"measure": True}`, how
often and how long entries ran."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import attrs
from stator_bytecode import passed_over
from stator_guards import Checked, Entry

from stator._program._traceback import OWN_CODES

GUARD_ROUNDS = 5
"""The times that guards are checked to find how long a check takes."""


@attrs.define(eq=False)
class CompileTimes:
    """The times of one compilation in seconds; `begun` is that of the clock (`time.time`).

    `total` includes tracing and the backend, and what is neither.
    """

    begun: float = 0.0
    backend: float = 0.0
    total: float = 0.0


@attrs.define(eq=False)
class MeasuredRun:
    """Takes the place of `entry.run`: counts the calls and sums up their times.

    The check of the guards is timed in the second call, by when it is planned what is watched.
    """

    run: Callable[..., Any]
    guards: Checked
    calls: int = 0
    seconds: float = 0.0
    first_seconds: float = 0.0
    guard_seconds: float | None = None

    @classmethod
    def install(cls, entry: Entry) -> None:
        entry.run = entry.data.measured = cls(entry.run, entry.guards)

    def __call__(self, *state: object) -> Any:
        self.calls += 1
        if self.calls == 2:
            self.guard_seconds = min(self._time_guards(state) for _ in range(GUARD_ROUNDS))
        begun = time.perf_counter()
        try:
            return self.run(*state)
        finally:
            spent = time.perf_counter() - begun
            self.seconds += spent
            if self.calls == 1:
                self.first_seconds = spent

    def _time_guards(self, state: tuple[object, ...]) -> float:
        begun = time.perf_counter()
        self.guards.check(*state)
        return time.perf_counter() - begun


OWN_CODES.update(passed_over(MeasuredRun.__call__))
