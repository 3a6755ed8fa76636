"""The command line: which workloads are measured, and where results go."""

from __future__ import annotations

import argparse
import importlib.metadata
import pathlib
import platform
import subprocess
import sys

import attrs

from integration_tests.benchmarks.compiled_share import _page
from integration_tests.benchmarks.compiled_share._processes import count, time
from integration_tests.benchmarks.compiled_share._results import Store
from integration_tests.benchmarks.compiled_share.workloads import INDUCTOR, WORKLOADS
from integration_tests.benchmarks.real_models._processes import Place
from integration_tests.benchmarks.real_models._workload import Workload

_REFERENCE = pathlib.Path(__file__).resolve().parents[3] / "docs" / "reference"
PAGE = _REFERENCE / "compiled-share.md"
RESULTS = _REFERENCE / "benchmarks" / "compiled_share.json"


def parser() -> argparse.ArgumentParser:
    found = argparse.ArgumentParser(description="Compiled share of public models.")
    found.add_argument("names", nargs="*", help="workloads or parts of their names; all if none")
    found.add_argument("--list", action="store_true", help="print the names of all and stop")
    found.add_argument("--part", choices=("counts", "inductor"), help="measure this part only")
    found.add_argument("--repeats", type=int, default=3, help="processes for each time")
    found.add_argument("--resume", action="store_true", help="skip what the results have")
    found.add_argument("--page", action="store_true", help="write the page of the results")
    found.add_argument("--reports", action="store_true", help="print stator's where it is short")
    found.add_argument("--tree", type=pathlib.Path, help="the checkout to measure")
    found.add_argument(
        "--save", type=pathlib.Path, metavar="FILE", default=RESULTS, help="the file of results"
    )
    return found


def selected(names: list[str]) -> list[Workload]:
    """Return the workloads of these names; a name that none has stands for all that contain it."""
    found: dict[str, Workload] = {}
    for name in names or list(WORKLOADS):
        keys = [name] if name in WORKLOADS else [key for key in WORKLOADS if name in key]
        if not keys:
            raise SystemExit(f"no workload is named {name!r}; --list prints all names")
        found |= {key: WORKLOADS[key] for key in keys}
    return list(found.values())


def installed(names: list[str]) -> list[Workload]:
    """Return the selected workloads whose libraries are there, and print which are left out."""
    found = selected(names)
    for workload in found:
        if workload.missing:
            print(f"{workload.name} is left out, not installed: {', '.join(workload.missing)}")
    return [workload for workload in found if not workload.missing]


def main(arguments: list[str]) -> None:
    """Measure, adding each result to the file at once, and write the page if everything was
    measured or it is requested."""
    options = parser().parse_args(arguments)
    if options.list:
        print("\n".join(WORKLOADS))
        return

    store = Store.read(options.save)
    store.versions = {"CPython": platform.python_version(), "torch": _torch_version()}
    workloads = installed(options.names) if options.names or not options.page else []
    if options.part != "inductor":
        print_counts(workloads, options, store)
    if options.part != "counts":
        timed = [workload for workload in workloads if workload.name in INDUCTOR]
        print_ratios(timed, options, store)

    if options.page or not options.names:
        PAGE.write_text(_page.page(store, WORKLOADS))


def print_counts(workloads: list[Workload], options: argparse.Namespace, store: Store) -> None:
    """Count and print row by row."""
    place = Place(sys.executable, options.tree and options.tree.resolve())
    for workload in workloads:
        if not (options.resume and workload.name in store.shares):
            found = count(workload, place)
            store.shares[workload.name] = attrs.evolve(found, commit=commit_of(place))
            store.write()
        share = store.shares[workload.name]
        print(_page.count_line(workload.name, share), flush=True)
        for side, error in share.errors.items():
            print(f"{side} failed: {error}", flush=True)
        if options.reports and (_page.is_short(share) or _page.is_wrong(share)):
            print(share.report, flush=True)

    measured = [store.shares[workload.name] for workload in workloads]
    if measured:
        print(_page.summary(measured))


def commit_of(place: Place) -> str:
    """Return the commit of the sources that are measured; empty outside of a checkout."""
    command = ["git", "rev-parse", "--short=8", "HEAD"]
    tree = place.tree or pathlib.Path(__file__).parent
    done = subprocess.run(command, cwd=tree, capture_output=True, text=True, check=False)
    return done.stdout.strip()


def print_ratios(workloads: list[Workload], options: argparse.Namespace, store: Store) -> None:
    """Time and print row by row; what failed is printed and not kept."""
    place = Place(sys.executable, options.tree and options.tree.resolve())
    for workload in workloads:
        if not (options.resume and workload.name in store.ratios):
            found = time(workload, place, options.repeats)
            if isinstance(found, str):
                print(f"{workload.name} failed: {found}", flush=True)
                continue
            store.ratios[workload.name] = attrs.evolve(found, commit=commit_of(place))
            store.write()
        print(_page.ratio_line(workload.name, store.ratios[workload.name]), flush=True)


def _torch_version() -> str:
    return importlib.metadata.version("torch")
