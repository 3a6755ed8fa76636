"""Measure one workload under one compiler, in this process.

Times are CPU times of the process, taken with the collector of cyclic garbage off, since either
would measure the machine otherwise.
"""

from __future__ import annotations

import contextlib
import gc
import statistics
import time
from collections.abc import Callable, Iterator
from typing import Any

import attrs
import torch

from integration_tests.benchmarks.real_models._replay import Replay
from integration_tests.benchmarks.real_models._sides import SIDES, Side
from integration_tests.benchmarks.real_models._workload import Figure, Program, Workload
from integration_tests.support.counting import Counting

_ROUNDS = 30
_SECONDS_PER_ROUND = 0.004
_MOST_CALLS_PER_ROUND = 500
_SLOWEST = 8
_COLD_CALLS = 9
_BYTES_OF_CACHES = 1 << 28


@attrs.frozen
class Figures:
    """The figures of one process, in seconds, without the time of the graphs.

    ``steady`` is one call in the steady state, ``cold`` one whose code and data have left the
    caches of the processor by then, as those of a new entry have, and ``first`` the call that
    compiles. ``early`` is the sum over calls 2 to ``first_calls``, ``slowest`` the longest of them
    by their number; calls that compiled something are left out and counted in ``recompiled``.
    """

    steady: float
    early: float
    slowest: dict[int, float]
    recompiled: int
    graph_calls: int
    first: float
    cold: float = 0.0


def measure(workload: Workload, side: Side) -> Figures:
    """Compile the workload's program and measure its calls."""
    torch.manual_seed(0)
    program = workload.make()
    with torch.set_grad_enabled(workload.gradients), _no_collections():
        if workload.figure is Figure.OVER_EAGER:
            return _over_eager(workload, program, side)
        return _overhead(workload, program, side)


def measure_named(workload: Workload, side: str) -> Figures:
    return measure(workload, SIDES[side]())


@contextlib.contextmanager
def _no_collections() -> Iterator[None]:
    gc.collect()
    gc.freeze()
    gc.disable()
    try:
        yield
    finally:
        gc.enable()
        gc.unfreeze()


def _overhead(workload: Workload, program: Program, side: Side) -> Figures:
    replay = Replay()
    run = program.driver(side.compile(program.fn, replay, workload.recompile_limit))

    first = _timed(run, program, 0) - replay.take_real_seconds()
    replay.end_call()
    calls = _early_calls(workload, program, run, side, replay)

    replay.record_next_call()
    _timed(run, program, workload.first_calls)
    replay.end_call()
    graph_seconds = replay.seconds_per_call()

    steady = (
        _best(run, program, workload.first_calls + 1) - _best(_nothing, program, 0) - graph_seconds
    )
    clock = min(_timed(_nothing, program, 0) for _ in range(20))
    early = {number: max(seconds - clock - graph_seconds, 0.0) for number, seconds in calls.items()}
    slowest = sorted(early, key=lambda number: early[number], reverse=True)[:_SLOWEST]
    return Figures(
        steady,
        sum(early.values()),
        {number: early[number] for number in slowest},
        workload.first_calls - 1 - len(calls),
        replay.graph_calls(),
        first,
        _cold(run, program, workload.first_calls + 1) - clock - graph_seconds,
    )


def _early_calls(
    workload: Workload, program: Program, run: Callable[..., Any], side: Side, replay: Replay
) -> dict[int, float]:
    """Time calls 2 to ``first_calls`` one by one, and return those that compiled nothing by their
    number."""
    found: dict[int, float] = {}
    best = 0.0
    compilations = side.compilations()
    for i in range(1, workload.first_calls):
        seconds = _timed(run, program, i) - replay.take_real_seconds()
        replay.end_call()

        # A compilation takes many times a call. To look for one takes time as well, so only slow
        # calls are checked.
        if seconds > 2 * best and side.compilations() != compilations:
            compilations = side.compilations()
            continue

        found[i + 1] = seconds
        best = min(best or seconds, seconds)
    return found


def _over_eager(workload: Workload, program: Program, side: Side) -> Figures:
    counting = Counting()
    run = program.driver(side.compile(program.fn, counting, workload.recompile_limit))
    plain = program.driver(program.fn)

    first = _timed(run, program, 0)
    for i in range(1, workload.first_calls):
        _timed(run, program, i)

    # In turns, so that a machine that is busy for a while disturbs both.
    halves = [(_best(run, program, 0), _best(plain, program, 0)) for _ in range(3)]
    steady = min(ours for ours, _ in halves) - min(eager for _, eager in halves)
    per_break = steady / max(1, workload.breaks)
    return Figures(per_break, 0.0, {}, 0, counting.count, first)


def _timed(run: Callable[..., Any], program: Program, number: int) -> float:
    args, kwargs = program.arguments(number)
    start = time.process_time()
    run(*args, **kwargs)
    return time.process_time() - start


def _best(run: Callable[..., Any], program: Program, number: int) -> float:
    """Return the seconds of one call: the least of many rounds, each the mean of some calls."""
    once = max(_timed(run, program, number), 1e-7)
    repeats = int(min(_MOST_CALLS_PER_ROUND, max(1, _SECONDS_PER_ROUND / once)))
    best = float("inf")
    for _ in range(_ROUNDS):
        arguments = [program.arguments(number + i) for i in range(repeats)]
        number += repeats

        start = time.process_time()
        for args, kwargs in arguments:
            run(*args, **kwargs)
        best = min(best, time.process_time() - start)

        # Caches that were made for single calls are garbage with cycles.
        del arguments, args, kwargs
        gc.collect(0)
    return best / repeats


def _cold(run: Callable[..., Any], program: Program, number: int) -> float:
    """Return the seconds of one call after something else had all caches of the processor."""
    others = torch.zeros(_BYTES_OF_CACHES, dtype=torch.uint8)
    found = []
    for i in range(_COLD_CALLS):
        others.add_(1)
        found.append(_timed(run, program, number + i))
    return statistics.median(found)


def _nothing(*args: Any, **kwargs: Any) -> None:
    """Take the place of a compiled function, to measure the loop around it."""
