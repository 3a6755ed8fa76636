"""The command line: which workloads are measured, under which interpreters, and where the results
go."""

from __future__ import annotations

import argparse
import pathlib
import sys
from collections.abc import Callable

from integration_tests.benchmarks.real_models import _table
from integration_tests.benchmarks.real_models._processes import Measured, Place, measure_in_turns
from integration_tests.benchmarks.real_models._results import Environment, Store
from integration_tests.benchmarks.real_models._workload import Workload
from integration_tests.benchmarks.real_models.workloads import MODELS, PROGRAMS, QUICK, WORKLOADS

_ROOT = pathlib.Path(__file__).resolve().parents[3]


def parser() -> argparse.ArgumentParser:
    found = argparse.ArgumentParser(
        description="Call overhead of real models, stator beside torch.compile."
    )
    found.add_argument(
        "names", nargs="*", help="workloads; a part of a name stands for all that contain it"
    )
    found.add_argument("--only", nargs="+", default=[], metavar="NAME", help="the same as names")
    found.add_argument(
        "--list", action="store_true", help="print the names of all workloads and stop"
    )
    found.add_argument(
        "--quick",
        action="store_true",
        help=f"{len(QUICK)} workloads, one process for each compiler",
    )
    found.add_argument(
        "--repeats", type=int, default=3, help="processes for each workload and compiler"
    )
    found.add_argument(
        "--python",
        action="append",
        metavar="PATH",
        help="an interpreter to measure; may be repeated",
    )
    found.add_argument(
        "--tree", type=pathlib.Path, help="the checkout to measure instead of what is installed"
    )
    found.add_argument(
        "--save", type=pathlib.Path, metavar="FILE", help="add the results to this JSON file"
    )
    found.add_argument("--resume", action="store_true", help="skip what the file of results has")
    return found


def selected(names: list[str]) -> list[Workload]:
    """Return the workloads of these names; a name that none has stands for all that contain it."""
    if not names:
        return list(WORKLOADS.values())

    found: dict[str, Workload] = {}
    for name in names:
        keys = (
            [name]
            if name in WORKLOADS
            else [key for key in WORKLOADS if name.lower() in key.lower()]
        )
        if not keys:
            raise SystemExit(f"no workload is named {name!r}; --list prints all names")
        found |= {key: WORKLOADS[key] for key in keys}
    return list(found.values())


def main(arguments: list[str]) -> None:
    options = parser().parse_args(arguments)
    if options.list:
        print("\n".join(WORKLOADS))
        return

    names = [*options.names, *options.only]
    if options.quick:
        names, options.repeats = names or list(QUICK), 1
    store = Store.read(options.save) if options.save else None
    measure(selected(names), options, store)


def measure(workloads: list[Workload], options: argparse.Namespace, store: Store | None) -> None:
    """Measure under each interpreter and print the tables; keep the results in ``store``."""
    for python in options.python or [sys.executable]:
        place = Place(python, _tree(options.tree, python))
        environment = Environment.of(place)
        print(f"\nCPython {environment.python}, torch {environment.torch}")

        def run(
            workload: Workload, place: Place = place, environment: Environment = environment
        ) -> Measured:
            return _kept(workload, place, environment, options, store)

        print_models([each for each in workloads if each.name in MODELS], run)
        print_programs([each for each in workloads if each.name in PROGRAMS], run)


def _tree(given: pathlib.Path | None, python: str) -> pathlib.Path | None:
    """Return the checkout to measure; another interpreter has none of our packages installed, so it
    gets this one."""
    if given is None and python != sys.executable:
        return _ROOT
    return given.resolve() if given else None


def _kept(
    workload: Workload,
    place: Place,
    environment: Environment,
    options: argparse.Namespace,
    store: Store | None,
) -> Measured:
    """Measure a workload, or return what the store has of it."""
    if store is None:
        return measure_in_turns(workload, place, options.repeats)

    known = store.of(environment).workloads
    if not (options.resume and workload.name in known):
        known[workload.name] = measure_in_turns(workload, place, options.repeats)
        store.write()
    return known[workload.name]


def print_models(workloads: list[Workload], run: Callable[[Workload], Measured]) -> None:
    """Print the table of the models and its summary, each row as soon as it is measured."""
    if workloads:
        rows = _print_rows(workloads, run, _table.MODEL_HEAD, _table.model_line)
        print(f"\n{_table.summary(rows)}")


def print_programs(workloads: list[Workload], run: Callable[[Workload], Measured]) -> None:
    """Print the table of the programs that have a limit of their own."""
    if workloads:
        _print_rows(workloads, run, _table.PROGRAM_HEAD, _table.program_line)


def _print_rows(
    workloads: list[Workload],
    run: Callable[[Workload], Measured],
    head: str,
    line: Callable[[_table.Row], str],
) -> list[_table.Row]:
    print(f"\n{head}", flush=True)
    rows = []
    for workload in workloads:
        measured = run(workload)
        row = _table.row_of(workload, measured)
        if row is None:
            print(_table.failure_line(measured), flush=True)
            continue

        rows.append(row)
        print(line(row), flush=True)
    return rows
