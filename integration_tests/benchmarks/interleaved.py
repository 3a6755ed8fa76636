"""Time several ways of doing one thing so that a busy machine disturbs them alike.

Rounds go through the ways in turn; the figure of a way is the least time of any round, since noise
only ever adds. Only ratios of such figures mean anything.
"""

from __future__ import annotations

import gc
import time
from collections.abc import Callable


def best_times(
    ways: dict[str, Callable[[], object]], rounds: int, repeats: int = 1
) -> dict[str, float]:
    """Seconds for one call of each way: the least of ``rounds``, each the mean of ``repeats``
    calls."""
    best = dict.fromkeys(ways, float("inf"))
    gc.collect()
    gc.disable()
    try:
        for _ in range(rounds):
            for name, way in ways.items():
                best[name] = min(best[name], _mean(way, repeats))
    finally:
        gc.enable()
    return best


def _mean(way: Callable[[], object], repeats: int) -> float:
    start = time.process_time()
    for _ in range(repeats):
        way()
    return (time.process_time() - start) / repeats
