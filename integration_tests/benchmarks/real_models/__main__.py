"""Measure workloads and print their table, row by row."""

from __future__ import annotations

import argparse
import pathlib
import sys

from integration_tests.benchmarks.real_models import _table
from integration_tests.benchmarks.real_models._processes import Place, measure_all
from integration_tests.benchmarks.real_models._workload import Workload
from integration_tests.benchmarks.real_models.workloads import MODELS, PROGRAMS, QUICK, WORKLOADS


def selected(names: list[str]) -> list[Workload]:
    """Return the workloads of these names; a name that none has stands for all that contain it."""
    if not names:
        return list(WORKLOADS.values())

    found: dict[str, Workload] = {}
    for name in names:
        keys = [name] if name in WORKLOADS else [key for key in WORKLOADS if name.lower() in key.lower()]
        if not keys:
            raise SystemExit(f"no workload is named {name!r}; --list prints all names")
        found |= {key: WORKLOADS[key] for key in keys}
    return list(found.values())


def parse(arguments: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="real_models", description="Call overhead of real models.")
    parser.add_argument("names", nargs="*", help="workloads; a part of a name stands for all that contain it")
    parser.add_argument("--list", action="store_true", help="print the names and stop")
    parser.add_argument("--quick", action="store_true", help=f"{len(QUICK)} workloads, one process each")
    parser.add_argument("--repeats", type=int, default=3, help="processes for each workload and compiler")
    parser.add_argument("--python", default=sys.executable, help="the interpreter of these processes")
    parser.add_argument("--tree", type=pathlib.Path, help="the checkout to measure instead of what is installed")
    return parser.parse_args(arguments)


def main(arguments: list[str]) -> None:
    options = parse(arguments)
    if options.list:
        print("\n".join(WORKLOADS))
        return

    names = options.names or (list(QUICK) if options.quick else [])
    repeats = 1 if options.quick else options.repeats
    chosen = selected(names)
    place = Place(options.python, options.tree and options.tree.resolve())
    print_table("Models", [each for each in chosen if each.name in MODELS], place, repeats)
    print_table("Programs", [each for each in chosen if each.name in PROGRAMS], place, repeats)


def print_table(title: str, workloads: list[Workload], place: Place, repeats: int) -> None:
    if not workloads:
        return

    of_models = title == "Models"
    print(f"\n## {title}\n\n{_table.MODEL_HEAD if of_models else _table.PROGRAM_HEAD}", flush=True)
    by_name = {workload.name: workload for workload in workloads}
    rows = []
    for measured in measure_all(workloads, place, repeats):
        row = _table.row_of(by_name[measured.name], measured)
        if row is None:
            print(_table.failure_line(measured), flush=True)
            continue
        rows.append(row)
        print(_table.model_line(row) if of_models else _table.program_line(row), flush=True)
    if of_models:
        print(f"\n{_table.summary(rows)}")


if __name__ == "__main__":
    main(sys.argv[1:])
