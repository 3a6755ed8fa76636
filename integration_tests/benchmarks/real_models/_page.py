"""The part of docs/reference/benchmarks.md that is about calls."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from integration_tests.benchmarks.real_models import _table
from integration_tests.benchmarks.real_models._results import Results, Store
from integration_tests.benchmarks.real_models._table import Row
from integration_tests.benchmarks.real_models._workload import Workload
from integration_tests.benchmarks.real_models.workloads import MODELS, PROGRAMS

_HEAD = """## Call overhead

Time that a call takes beyond its graphs, stator's as a multiple of torch.compile's: below 1, stator adds less. Both
have the same backend, whose graphs return outputs cached from a real run, so guards, glue and effects are left.
Training steps are the forward with its loss. Models are built from configurations, with random weights.

Each figure is the median over processes. A process measures one workload under one compiler with empty caches of its
own; processes of the two compilers alternate. *Ratio* is the steady state: the minimum over rounds, after the first
100 calls. *Calls 2-100* is the sum over these calls of a new entry. *Slowest* is the call among them that takes stator
longest in all processes, as a multiple of its steady state and of a *cold* call: one in the steady state after other data
has passed through all caches of the processor. Code and data of a new entry are not in these caches, either, so that
call 2, which runs the same functions as all later ones, takes as long. Calls that compiled something are in neither; *recompiled*
is their number and *graph calls* the number of graphs that one call runs, both for stator / torch.compile.

*Break* rows are another figure: time over the plain function, with graphs that run, for each graph break crossed; so is
the row of the recompile limit, where the function runs as it is.

The figures come from a shared machine of two cores, most of the time under load. A row that was
measured again after a change has one process for each compiler; where torch.compile took much longer
in it than before, its earlier process counts as well.
"""


def lines(store: Store) -> Iterator[str]:
    """Yield the section, with a part for each interpreter that has results."""
    yield _HEAD
    for python, results in sorted(store.results.items(), key=lambda item: _version(item[0])):
        yield from _interpreter(python, results)


def _version(python: str) -> list[int]:
    return [int(part) for part in python.split(".") if part.isdigit()]


def _interpreter(python: str, results: Results) -> Iterator[str]:
    models = _rows(MODELS.values(), results)
    programs = _rows(PROGRAMS.values(), results)

    yield f"### CPython {python}, torch {results.torch}\n"
    yield f"{_table.summary(models)}\n"
    yield "\n".join([_table.MODEL_HEAD, *map(_table.model_line, models)]) + "\n"
    yield "\n".join([_table.PROGRAM_HEAD, *map(_table.program_line, programs)]) + "\n"

    measured = {row.workload.name for row in (*models, *programs)}
    left_out = [name for name in (*MODELS, *PROGRAMS) if name not in measured]
    if left_out:
        yield f"Not measured here: {'; '.join(left_out)}.\n"


def _rows(workloads: Iterable[Workload], results: Results) -> list[Row]:
    found = []
    for workload in workloads:
        if workload.name in results.workloads:
            row = _table.row_of(workload, results.workloads[workload.name])
            if row is not None:
                found.append(row)
    return found
