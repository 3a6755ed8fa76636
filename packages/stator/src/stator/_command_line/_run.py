"""`python -m stator run SCRIPT`: a script that uses `torch.compile`, unchanged, with stator in its
place."""

from __future__ import annotations

import argparse

from stator._command_line._command import Command
from stator._command_line._script import Script, add_script, in_place_of_torch_compile

EXAMPLES = """examples:
  python -m stator run train.py --epochs 3
  python -m stator run --backend eager -m my_package.train
"""


def _add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--backend", help="the backend in place of those that the script names")
    add_script(parser)


def _run(given: argparse.Namespace) -> int:
    with in_place_of_torch_compile(given.backend):
        return Script.of(given).run(lambda: None)


RUN = Command(
    "run",
    "run a script with stator in place of torch.compile",
    EXAMPLES,
    _add_arguments,
    _run,
)
