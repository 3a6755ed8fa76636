"""Run measurements in processes of their own, and compare what they computed."""

from __future__ import annotations

import functools
import json
import os
import statistics
import subprocess
import tempfile
from collections.abc import Iterable
from typing import Any

import attrs
import torch

from integration_tests.benchmarks.compiled_share._inductor import Seconds, Times
from integration_tests.benchmarks.compiled_share._measure import PLAIN, Counts, difference
from integration_tests.benchmarks.real_models._processes import SIDES, Place
from integration_tests.benchmarks.real_models._workload import Workload

_CHILD = "integration_tests.benchmarks.compiled_share.child"
_SECONDS = 900


@attrs.frozen
class Share:
    """Counts of one workload by compiler, differences from plain PyTorch, and errors of those
    without counts. ``report`` has those of the processes, of this run only; ``commit`` is that of
    the sources measured, empty if unknown."""

    counts: dict[str, Counts]
    differences: dict[str, float]
    errors: dict[str, str]
    report: str = ""
    commit: str = ""


@attrs.frozen
class Ratios:
    """Figures of stator under Inductor as multiples of torch.compile's: CPU times, times on the
    wall, and memory. ``commit`` is that of the sources measured, empty if unknown."""

    steady: float
    steady_wall: float
    first: float
    first_wall: float
    memory: float
    commit: str = ""


def count(workload: Workload, place: Place) -> Share:
    """Count under both compilers and as it is."""
    share = Share({}, {}, {})
    with tempfile.TemporaryDirectory() as folder:
        plain = _counted(workload, PLAIN, place, folder, share)
        if plain is None:
            return share

        reports = []
        for side in SIDES:
            found = _counted(workload, side, place, folder, share)
            if found is not None:
                share.differences[side] = difference(found[0], plain[0])
                reports.append(found[1])
    return attrs.evolve(share, report="\n".join(reports))


def _counted(
    workload: Workload, side: str, place: Place, folder: str, share: Share
) -> tuple[list[list[torch.Tensor]], str] | None:
    """Add the counts of one process to ``share``, and return its results and its report."""
    file = os.path.join(folder, side)
    found = _run("counts", workload, side, file, place)
    if isinstance(found, str):
        share.errors[side] = found
        return None

    share.counts[side] = Counts(**found)
    results: tuple[list[list[torch.Tensor]], str] = torch.load(file, weights_only=False)
    return results


def time(workload: Workload, place: Place, repeats: int) -> Ratios | str:
    """Time under both compilers in turns, ``repeats`` processes each; return what went wrong if
    anything did."""
    times: dict[str, list[Times]] = {side: [] for side in SIDES}
    for number in range(repeats):
        for side in SIDES if number % 2 == 0 else reversed(SIDES):
            found = _run("times", workload, side, os.devnull, place)
            if isinstance(found, str):
                return f"{side}: {found}"
            times[side].append(Times.of(found))
    return ratios(times)


def ratios(times: dict[str, list[Times]]) -> Ratios:
    """Return ratios of the least times, since noise only adds, and of the medians of memory."""
    ours, theirs = times["stator"], times["torch"]
    steady = _least(each.steady for each in ours), _least(each.steady for each in theirs)
    first = _least(each.first for each in ours), _least(each.first for each in theirs)
    return Ratios(
        steady[0].cpu / steady[1].cpu,
        steady[0].wall / steady[1].wall,
        first[0].cpu / first[1].cpu,
        first[0].wall / first[1].wall,
        statistics.median(each.memory for each in ours)
        / statistics.median(each.memory for each in theirs),
    )


def _least(seconds: Iterable[Seconds]) -> Seconds:
    return functools.reduce(Seconds.least, seconds)


def _run(kind: str, workload: Workload, side: str, file: str, place: Place) -> dict[str, Any] | str:
    """Return the figures of one new process with empty caches, or the end of its error output."""
    command = [place.python, "-W", "ignore", "-m", _CHILD, kind, workload.name, side, file]
    with tempfile.TemporaryDirectory() as caches:
        try:
            done = subprocess.run(
                command,
                env=place.environment(caches),
                capture_output=True,
                text=True,
                check=False,
                timeout=_SECONDS,
            )
        except subprocess.TimeoutExpired:
            return f"took more than {_SECONDS} s"

    if done.returncode != 0:
        return f"ended with {done.returncode}: {_without_traces(done.stderr)[-400:]}"
    found: dict[str, Any] = json.loads(done.stdout.strip().splitlines()[-1])
    return found


def _without_traces(text: str) -> str:
    """Return error output without the lines that the profiler writes there."""
    lines = [line for line in text.splitlines() if not line.startswith("USDT:")]
    return "\n".join(lines)
