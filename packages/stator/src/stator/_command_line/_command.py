"""The parts of a command of `python -m stator`."""

from __future__ import annotations

import argparse
from collections.abc import Callable

import attrs


class UsageError(Exception):
    """A mistake in the arguments of a command: its text is printed, and the exit code is 2."""


@attrs.frozen
class Command:
    """A command by its name. `run` returns the exit code; `examples` follow the help text."""

    name: str
    summary: str
    examples: str
    add_arguments: Callable[[argparse.ArgumentParser], None]
    run: Callable[[argparse.Namespace], int]
