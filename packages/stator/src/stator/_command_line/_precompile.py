"""`python -m stator precompile MODULE:FUNCTION --shapes FILE`: fill the cache for a deployment."""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import Any

from stator._command_line._command import Command, UsageError
from stator._command_line._explain import function_at
from stator._shipping._example import examples_of
from stator._shipping._precompile import MODES, precompile
from stator.errors import InvalidUse

EXAMPLES = """the file of shapes is JSON:
  {"calls": [
    {"args": [{"shape": [[1, 64], 16], "dtype": "float32"}, true], "kwargs": {"scale": 2}}
  ]}
  A call has "args" and "kwargs". An object with a "shape" describes a tensor, whose other keys
  are "dtype", "device" and "requires_grad". A size is a number, a range [least, largest], or a
  range with a name, {"name": "batch", "min": 1, "max": 64}; equal names are equal sizes. Any
  other value is an argument as it is.

examples:
  python -m stator precompile serving:serve --shapes shapes.json
  python -m stator precompile training:step --shapes shapes.json --mode training
"""


def _add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("function", metavar="MODULE:FUNCTION", help="a function or a module")
    parser.add_argument("--shapes", metavar="FILE", required=True, help="the calls, as JSON")
    parser.add_argument("--mode", choices=MODES, default="inference", help="how calls are made")
    parser.add_argument("--processes", type=int, help="at a time; by default one for each core")
    parser.add_argument("--backend", help="for a function that its module does not compile")


def _run(given: argparse.Namespace) -> int:
    function = function_at(given.function)
    try:
        data = json.loads(Path(given.shapes).read_text())
    except (OSError, ValueError) as error:
        raise UsageError(f"{given.shapes}: {error}") from error

    settings: dict[str, Any] = {} if given.backend is None else {"backend": given.backend}
    try:
        examples = examples_of(data)
        lines = precompile(
            function, examples, mode=given.mode, processes=given.processes, **settings
        )
    except InvalidUse as error:
        print(error, file=sys.stderr)
        return 1
    print("\n".join(lines))
    return 0


PRECOMPILE = Command(
    "precompile",
    "compile a function for calls to come, into the cache on disk",
    EXAMPLES,
    _add_arguments,
    _run,
)
