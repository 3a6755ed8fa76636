"""`python -m stator`: versions and backends. `python -m stator report script.py`: run a script and
report what was compiled."""

import argparse
import importlib.metadata
import platform
import runpy
import sys

import stator_backends
import torch

from stator._control import REGIONS
from stator._report import Report

__all__ = ["DISTRIBUTIONS", "main", "reports", "versions"]

_LAYERS = ("backends", "subgraphs", "variables", "guards", "bytecode")
DISTRIBUTIONS = ("stator", *(f"stator-{layer}" for layer in _LAYERS))


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m stator", description=__doc__)
    commands = parser.add_subparsers(dest="command")
    report = commands.add_parser(
        "report", help="run a script and print the reports of what it compiled"
    )
    report.add_argument("script")
    report.add_argument("arguments", nargs=argparse.REMAINDER)
    given = parser.parse_args(arguments)
    print(reports(given.script, given.arguments) if given.command == "report" else versions())
    return 0


def versions() -> str:
    found = [f"{name} {_version(name)}" for name in DISTRIBUTIONS]
    found += [f"torch {torch.__version__}", f"Python {platform.python_version()}"]
    return "\n".join([*found, f"backends: {', '.join(stator_backends.list_backends())}"])


def _version(distribution: str) -> str:
    try:
        return importlib.metadata.version(distribution)
    except importlib.metadata.PackageNotFoundError:
        return "(not installed as a distribution)"


def reports(script: str, arguments: list[str]) -> str:
    before, sys.argv = sys.argv, [script, *arguments]
    try:
        namespace = runpy.run_path(script, run_name="__main__")
    finally:
        sys.argv = before
    texts = [f"{region.root.target.name}: {Report.of(region)}" for region in REGIONS]
    namespace.clear()  # alive until here, or what it compiled would be gone
    return "\n\n".join(sorted(texts)) or "nothing was compiled"


if __name__ == "__main__":
    raise SystemExit(main())
