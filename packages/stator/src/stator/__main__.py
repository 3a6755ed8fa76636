"""`python -m stator COMMAND`: run a script with stator, report what was compiled, explain,
diagnose, time, reduce faults, compile ahead of calls. Without a command, versions and backends."""

import argparse
import sys

from stator._command_line._bench import BENCH
from stator._command_line._command import UsageError
from stator._command_line._doctor import DISTRIBUTIONS, DOCTOR, versions
from stator._command_line._explain import EXPLAIN
from stator._command_line._minify import MINIFY
from stator._command_line._precompile import PRECOMPILE
from stator._command_line._report import REPORT
from stator._command_line._run import RUN
from stator._command_line._why import WHY

__all__ = ["COMMANDS", "DISTRIBUTIONS", "main"]

_ALL = (RUN, REPORT, EXPLAIN, WHY, DOCTOR, BENCH, MINIFY, PRECOMPILE)
COMMANDS = {command.name: command for command in _ALL}


def main(arguments: list[str] | None = None) -> int:
    """Run a command; return its exit code: 0, 1 for a failure, 2 for wrong arguments."""
    parser = argparse.ArgumentParser(prog="python -m stator", description=__doc__)
    parsers = parser.add_subparsers(dest="command", metavar="COMMAND")
    for name, command in COMMANDS.items():
        command.add_arguments(
            parsers.add_parser(
                name,
                help=command.summary,
                description=f"{command.summary[0].upper()}{command.summary[1:]}.",
                epilog=command.examples,
                formatter_class=argparse.RawDescriptionHelpFormatter,
            )
        )

    given = parser.parse_args(arguments)
    if given.command is None:
        print("\n".join(versions()))
        return 0
    try:
        return COMMANDS[given.command].run(given)
    except UsageError as error:
        print(f"python -m stator {given.command}: {error}", file=sys.stderr)
        return 2


if __name__ == "__main__":
    raise SystemExit(main())
