"""`python -m stator explain MODULE:FUNCTION`: call a function once; report what was compiled."""

from __future__ import annotations

import argparse
import importlib
import json
import sys
from operator import attrgetter
from typing import Any

import torch

from stator._command_line._command import Command, UsageError
from stator._command_line._script import ARGUMENTS, show_error
from stator._explain import explain
from stator.errors import InvalidUse

EXAMPLES = """examples:
  python -m stator explain my_package.model:loss --args "torch.ones(3), 2"
  python -m stator explain model:step --args "x=torch.ones(8, 3)"
  python -m stator explain model:step --args "x=torch.ones(8, 3)" --backend aot_eager
"""


def _add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("function", metavar="MODULE:FUNCTION")
    parser.add_argument("--args", default="", help="the arguments of the call, as Python code")
    parser.add_argument("--backend", help="the backend whose graphs are shown; it does not run")
    parser.add_argument("--json", action="store_true", help="the report as JSON")


def _run(given: argparse.Namespace) -> int:
    function = function_at(given.function)
    module = sys.modules[str(given.function).partition(":")[0]]
    try:
        call = compile(f"__call({given.args})", ARGUMENTS, "eval")
        explained = explain(function, backend=given.backend)
    except SyntaxError as error:
        raise UsageError(f"--args {given.args!r}: {error.msg}") from error
    except InvalidUse as error:
        raise UsageError(str(error)) from error

    try:
        report = eval(call, {**vars(module), "torch": torch, "__call": explained})
    except Exception as error:  # of the program
        show_error(error)
        return 1
    print(json.dumps(report.data(), indent=2) if given.json else report)
    return 0


def function_at(text: str) -> Any:
    """Return the function of `module:function`. Raises UsageError."""
    name, _, path = text.partition(":")
    if not path:
        raise UsageError(f"{text!r} names no function: write module:function")
    sys.path.insert(0, "")
    try:
        return attrgetter(path)(importlib.import_module(name))
    except (ModuleNotFoundError, AttributeError) as error:
        raise UsageError(str(error)) from error
    finally:
        sys.path.remove("")


EXPLAIN = Command(
    "explain",
    "call a function once and report what was compiled",
    EXAMPLES,
    _add_arguments,
    _run,
)
