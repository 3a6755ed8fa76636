"""`python -m stator`: versions and backends. `python -m stator report script.py`: run a script and
report what was compiled. `python -m stator minify FILE`: reduce a graph that a backend fails on."""

import argparse
import importlib.metadata
import platform
import runpy
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import attrs
import stator_backends
import torch
from stator_backends import ACCURACY, MINIFY_AFTER, SavedGraph

from stator._report import Report
from stator._settings._stance import REGIONS

__all__ = ["DISTRIBUTIONS", "main", "minified", "reports", "versions"]

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
    _add_minify(commands)
    given = parser.parse_args(arguments)
    print(_COMMANDS[given.command](given))
    return 0


def _add_minify(commands: Any) -> None:
    minify = commands.add_parser(
        "minify", help="reduce the graph of a repro script, or one saved by torch with its inputs"
    )
    minify.add_argument("file")
    minify.add_argument("--backend", help="a name, module:name or file.py:name")
    minify.add_argument("--accuracy", choices=ACCURACY, help="the difference that is a fault")
    minify.add_argument("--seconds", type=float, help="compilations that take longer are a fault")
    minify.add_argument("--after", choices=MINIFY_AFTER, default="capture", help="whose graph")
    minify.add_argument("--output", help="the script to write; FILE_minified.py by default")


def minified(given: argparse.Namespace) -> str:
    """Reduce the graph in a file; return the fault and the script that shows it."""
    path = Path(given.file)
    saved = SavedGraph.load(path)
    backend = saved.backend if given.backend is None else stator_backends.lookup(given.backend)
    if backend is None:
        raise SystemExit(f"{path} names no backend: pass --backend")
    options = {"accuracy": given.accuracy, "seconds": given.seconds}
    changes = {name: value for name, value in options.items() if value is not None}

    output = Path(given.output or path.with_name(f"{path.stem}_minified.py"))
    check = attrs.evolve(saved.check, **changes)
    reduced = stator_backends.minify_to(saved, backend, check, given.after, output)
    return f"{output.read_text()}\n# {reduced.ops} operators: {output}\n# {reduced.fault}"


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


_COMMANDS: dict[str | None, Callable[[argparse.Namespace], str]] = {
    None: lambda given: versions(),
    "report": lambda given: reports(given.script, given.arguments),
    "minify": minified,
}


if __name__ == "__main__":
    raise SystemExit(main())
