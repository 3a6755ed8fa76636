"""`python -m stator minify FILE`: reduce a graph that a backend fails on."""

from __future__ import annotations

import argparse
import json
from pathlib import Path

import attrs
import stator_backends
from stator_backends import ACCURACY, MINIFY_AFTER, Minified, SavedGraph

from stator._command_line._command import Command, UsageError

EXAMPLES = """examples:
  python -m stator minify /tmp/stator_repros_0/repro_2c269390f228.py
  python -m stator minify --accuracy strict --backend inductor saved.py
"""


def _add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("file")
    parser.add_argument("--backend", help="a name, module:name or file.py:name")
    parser.add_argument("--accuracy", choices=ACCURACY, help="the difference that is a fault")
    parser.add_argument("--seconds", type=float, help="compilations that take longer are a fault")
    parser.add_argument("--after", choices=MINIFY_AFTER, default="capture", help="whose graph")
    parser.add_argument("--json", action="store_true", help="the fault and its script as JSON")
    parser.add_argument("--output", help="the script to write; FILE_minified.py by default")


def _run(given: argparse.Namespace) -> int:
    output, reduced = minified(given)
    if given.json:
        found = {"script": str(output), "operators": reduced.ops, "fault": str(reduced.fault)}
        print(json.dumps(found, indent=2))
    else:
        print(f"{output.read_text()}\n# {reduced.ops} operators: {output}\n# {reduced.fault}")
    return 0


def minified(given: argparse.Namespace) -> tuple[Path, Minified]:
    """Reduce the graph in a file; return the script that shows the fault, and what is left."""
    path = Path(given.file)
    if not path.exists():
        raise UsageError(f"there is no file {given.file!r}")
    if path.suffix == ".py" and "def graph_0(" not in path.read_text(encoding="utf-8"):
        hint = "pass the script that an error of a backend names"
        raise UsageError(f"{given.file!r} has no graph: {hint}")

    saved = SavedGraph.load(path)
    backend = saved.backend if given.backend is None else stator_backends.lookup(given.backend)
    if backend is None:
        raise UsageError(f"{path} names no backend: pass --backend")
    options = {"accuracy": given.accuracy, "seconds": given.seconds}
    changes = {name: value for name, value in options.items() if value is not None}

    output = Path(given.output or path.with_name(f"{path.stem}_minified.py"))
    check = attrs.evolve(saved.check, **changes)
    return output, stator_backends.minify_to(saved, backend, check, given.after, output)


MINIFY = Command(
    "minify",
    "reduce the graph of a repro script, or one saved by torch with its inputs",
    EXAMPLES,
    _add_arguments,
    _run,
)
