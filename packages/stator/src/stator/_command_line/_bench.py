"""`python -m stator bench SCRIPT`: a script eagerly, under torch.compile and under stator."""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from statistics import median

from stator._command_line._command import Command, UsageError

EXAMPLES = """examples:
  python -m stator bench --rounds 5 train.py --steps 10

Each run is a process of its own with an empty cache of Inductor's; the runs are interleaved.
"""
ENGINES = ("eager", "torch.compile", "stator")


def _add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--rounds", type=int, default=3, help="runs of each (3)")
    parser.add_argument("--json", action="store_true", help="the times as JSON")
    parser.add_argument("script", metavar="SCRIPT")
    parser.add_argument("arguments", nargs=argparse.REMAINDER)


def _run(given: argparse.Namespace) -> int:
    if given.rounds < 1:
        raise UsageError("--rounds must be at least 1")

    found: dict[str, list[tuple[float, float]]] = {engine: [] for engine in ENGINES}
    for _ in range(given.rounds):
        for engine, times in found.items():
            times.append(_timed(engine, [given.script, *given.arguments]))

    medians = {engine: _medians(found[engine]) for engine in ENGINES}
    if given.json:
        print(json.dumps(medians, indent=2))
        return 0
    print(f"{'':14}  wall, s   CPU, s   (medians of {given.rounds} runs, whole process)")
    for engine, seconds in medians.items():
        print(f"{engine:14}{seconds['wall']:9.2f}{seconds['cpu']:9.2f}")
    return 0


def _medians(times: Sequence[tuple[float, float]]) -> Mapping[str, float]:
    return {
        "wall": median(wall for wall, _ in times),
        "cpu": median(cpu for _, cpu in times),
    }


def _timed(engine: str, script: list[str]) -> tuple[float, float]:
    """Return the wall and CPU seconds of one run; raises UsageError if it fails."""
    runner = ["-m", "stator", "run"] if engine == "stator" else []

    with tempfile.TemporaryDirectory(prefix="stator_bench_") as cache:
        environment = {**os.environ, "TORCHINDUCTOR_CACHE_DIR": cache}
        if engine == "eager":
            environment["TORCH_COMPILE_DISABLE"] = "1"
        before, start = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
        done = subprocess.run(
            [sys.executable, *runner, *script],
            env=environment,
            stdout=subprocess.DEVNULL,
            check=False,
        )
        wall, after = time.perf_counter() - start, resource.getrusage(resource.RUSAGE_CHILDREN)

    if done.returncode:
        raise UsageError(f"{script[0]} ended with code {done.returncode} under {engine}")
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return wall, cpu


BENCH = Command(
    "bench",
    "time a script eagerly, under torch.compile and under stator",
    EXAMPLES,
    _add_arguments,
    _run,
)
