"""Ratios of the figures, and their table in Markdown."""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Iterable

import attrs

from integration_tests.benchmarks.real_models._measure import Figures
from integration_tests.benchmarks.real_models._processes import Measured
from integration_tests.benchmarks.real_models._workload import Figure, Workload

MODEL_HEAD = (
    "| workload | stator, us | torch.compile, us | ratio | calls 2-100, ratio | slowest of them, to steady / cold |"
    " recompiled | graph calls |\n|---|---|---|---|---|---|---|---|"
)
PROGRAM_HEAD = (
    "| program | stator, us | torch.compile, us | ratio | first calls, ratio | slowest of them, to steady / cold | target |\n"
    "|---|---|---|---|---|---|---|"
)


@attrs.frozen
class Row:
    """The medians over the processes of one workload; None where a figure is not measured.

    ``worst`` is the number of stator's slowest early call and its time, as a multiple of the steady
    state, and of a cold call (0: not measured).
    """

    workload: Workload
    stator: float
    torch: float
    early: float | None
    worst: tuple[int, float, float] | None
    recompiled: tuple[int, int]
    graph_calls: tuple[int, int]

    @property
    def ratio(self) -> float:
        return self.stator / self.torch


def row_of(workload: Workload, measured: Measured) -> Row | None:
    """Return the row of a workload that both compilers have run."""
    ours, theirs = measured.figures["stator"], measured.figures["torch"]
    if not ours or not theirs:
        return None

    steady = _median(ours, _steady)
    early, worst = None, None
    if workload.figure is Figure.OVERHEAD:
        early = _median(ours, _early) / _median(theirs, _early)
        number, seconds = slowest_call(ours)
        cold = _median([each for each in ours if each.cold] or ours, _cold)
        worst = (number, seconds / steady, seconds / cold if cold else 0.0)

    return Row(
        workload,
        steady,
        _median(theirs, _steady),
        early,
        worst,
        (ours[0].recompiled, theirs[0].recompiled),
        (ours[0].graph_calls, theirs[0].graph_calls),
    )


def slowest_call(figures: list[Figures]) -> tuple[int, float]:
    """Return the number of the call that is slow in all processes, and its least time in any.

    A call that was slow in some of them only was disturbed by something else on the machine.
    """
    numbers = set.intersection(*(set(each.slowest) for each in figures))
    if not numbers:
        return 0, min(min(each.slowest.values(), default=0.0) for each in figures)

    least = {number: min(each.slowest[number] for each in figures) for number in numbers}
    number = max(least, key=lambda each: least[each])
    return number, least[number]


def _median(figures: list[Figures], read: Callable[[Figures], float]) -> float:
    return statistics.median(map(read, figures))


def _steady(figures: Figures) -> float:
    return figures.steady


def _early(figures: Figures) -> float:
    return figures.early


def _cold(figures: Figures) -> float:
    return figures.cold


def model_line(row: Row) -> str:
    recompiled = " / ".join(map(str, row.recompiled))
    graph_calls = " / ".join(map(str, row.graph_calls))
    return f"{_start(row)} {_number(row.early)} | {_worst(row)} | {recompiled} | {graph_calls} |"


def program_line(row: Row) -> str:
    return f"{_start(row)} {_number(row.early)} | {_worst(row)} | {row.workload.target} |"


def _start(row: Row) -> str:
    return f"| {row.workload.name} | {row.stator * 1e6:.1f} | {row.torch * 1e6:.1f} | {row.ratio:.2f} |"


def _number(value: float | None) -> str:
    return "-" if value is None else f"{value:.2f}"


def _worst(row: Row) -> str:
    if row.worst is None:
        return "-"
    number, to_steady, to_cold = row.worst
    ratios = f"{to_steady:.1f} / {to_cold:.1f}" if to_cold else f"{to_steady:.1f}"
    return f"{ratios} (call {number})"


def failure_line(measured: Measured) -> str:
    causes = "; ".join(
        f"{side}: {_last_line(text)[:100]}" for side, text in measured.errors.items()
    )
    return f"| {measured.name} | failed: {causes} |"


def _last_line(text: str) -> str:
    lines = text.splitlines()
    return lines[-1] if lines else "no output"


def summary(rows: Iterable[Row]) -> str:
    """Return the geometric mean and the maximum of the ratios in a sentence."""
    found = list(rows)
    if not found:
        return "No workload was measured."

    steady = [row.ratio for row in found]
    early = [row.early for row in found if row.early is not None]
    text = f"{len(found)} workloads: geometric mean {_mean(steady):.2f}, maximum {max(steady):.2f}"
    if early:
        text += f"; calls 2-100: geometric mean {_mean(early):.2f}, maximum {max(early):.2f}"
    return f"{text}."


def _mean(ratios: list[float]) -> float:
    """Return the geometric mean. A ratio that noise made zero or negative counts as a
    thousandth."""
    return math.exp(statistics.fmean(math.log(max(ratio, 1e-3)) for ratio in ratios))
