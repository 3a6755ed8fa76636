"""Run measurements in processes of their own, the two compilers in turns."""

from __future__ import annotations

import json
import os
import pathlib
import subprocess
import sys
import tempfile
from collections.abc import Callable
from typing import Any

import attrs

from integration_tests.benchmarks.real_models._measure import Figures
from integration_tests.benchmarks.real_models._workload import Workload

_CHILD = "integration_tests.benchmarks.real_models.child"
_SECONDS = 600
SIDES = ("stator", "torch")


@attrs.frozen
class Place:
    """An interpreter, and the sources that are measured; ``tree`` is None for what the interpreter
    has installed."""

    python: str = sys.executable
    tree: pathlib.Path | None = None

    def environment(self, caches: str) -> dict[str, str]:
        """Return the environment of a process: one thread, empty caches, and nothing downloaded."""
        own = {
            name: os.path.join(caches, name.lower())
            for name in ("TORCHINDUCTOR_CACHE_DIR", "TRITON_CACHE_DIR")
        }
        fixed = {
            "OMP_NUM_THREADS": "1",
            "TORCHINDUCTOR_COMPILE_THREADS": "1",
            "HF_HUB_OFFLINE": "1",
        }
        found = {**os.environ, **own, **fixed}
        if self.tree is not None:
            paths = [str(self.tree), *map(str, sorted(self.tree.glob("packages/*/src")))]
            found["PYTHONPATH"] = os.pathsep.join(
                [*paths, *filter(None, [os.environ.get("PYTHONPATH")])]
            )
        return found


@attrs.frozen
class Measured:
    """All processes of one workload: their figures by compiler, and what went wrong in those
    without figures."""

    name: str
    figures: dict[str, list[Figures]]
    errors: dict[str, str] = attrs.field(factory=dict)


def run_child(workload: Workload, side: str, place: Place) -> Figures | str:
    """Return the figures of one new process, or the end of its error output."""
    with tempfile.TemporaryDirectory() as caches:
        command = [place.python, "-W", "ignore", "-m", _CHILD, workload.name, side]
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
        return done.stderr.strip()[-300:]
    return figures_of(json.loads(done.stdout.strip().splitlines()[-1]))


def figures_of(found: dict[str, Any]) -> Figures:
    """Return figures from JSON, which has no numbers as keys."""
    slowest = {int(number): seconds for number, seconds in found["slowest"].items()}
    return Figures(**{**found, "slowest": slowest})


def measure_in_turns(
    workload: Workload,
    place: Place,
    repeats: int,
    run: Callable[[Workload, str, Place], Figures | str] = run_child,
) -> Measured:
    """Measure under both compilers, ``repeats`` times each, in turns; a compiler that failed is not
    tried again."""
    measured = Measured(workload.name, {side: [] for side in SIDES})
    for _ in range(repeats):
        for side in SIDES:
            if side in measured.errors:
                continue

            found = run(workload, side, place)
            if isinstance(found, str):
                measured.errors[side] = found
            else:
                measured.figures[side].append(found)
    return measured
