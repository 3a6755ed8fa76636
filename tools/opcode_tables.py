"""The opcodes of this interpreter against the tables of ``stator-bytecode``.

``python tools/opcode_tables.py`` prints what the table of this Python lacks or has too much:
opcodes, intrinsics, operators, common constants, special methods. Without a table for it, the
newest one is compared, so the output is the list of what a new one needs. ``--page`` writes
the page of ``docs/reference`` instead, which needs a table. Needs attrs, and no torch.
"""

from __future__ import annotations

import argparse
import dis
import importlib
import inspect
import opcode
import pathlib
import sys
from collections.abc import Iterable, Iterator, Mapping
from types import ModuleType
from typing import Any

import attrs
from interpreters import CURRENT

ROOT = pathlib.Path(__file__).resolve().parents[1]
PACKAGE = "stator_bytecode"
SOURCES = ROOT / "packages" / "stator-bytecode" / "src"
TABLES = SOURCES / PACKAGE / "_codec"
PAGES = ROOT / "docs" / "reference"


@attrs.frozen
class Interpreter:
    """The description that a CPython has of its bytecode."""

    opcodes: Mapping[str, int]
    with_argument: frozenset[int]
    intrinsics: tuple[tuple[str, ...], tuple[str, ...]] = ((), ())
    operators: tuple[str, ...] = ()
    constants: tuple[object, ...] = ()
    special_methods: tuple[str, ...] = ()


def running() -> Interpreter:
    """Return the description of the interpreter that runs this."""
    names = {
        name: number
        for name, number in dis.opmap.items()
        if number < 256 and not name.startswith("INSTRUMENTED_")
    }
    has_argument = getattr(dis, "hasarg", range(dis.HAVE_ARGUMENT, 256))
    return Interpreter(
        names,
        frozenset(number for number in names.values() if number in has_argument),
        (_words("_intrinsic_1_descs"), _words("_intrinsic_2_descs")),
        tuple(symbol for _, symbol in getattr(opcode, "_nb_ops", ())),
        tuple(getattr(opcode, "_common_constants", ())),
        _words("_special_method_names"),
    )


def _words(name: str) -> tuple[str, ...]:
    return tuple(getattr(opcode, name, ()))


def table_for(version: str) -> ModuleType:
    """Return the module with the table of `version`, or the newest one.

    The package itself refuses a Python without a table when it is imported, so it is passed over.
    """
    numbers = sorted(int(path.stem.removeprefix("_tables_")) for path in TABLES.glob("_tables_*"))
    wanted = int(version.replace(".", ""))
    number = wanted if wanted in numbers else numbers[-1]
    if PACKAGE not in sys.modules:
        bare = ModuleType(PACKAGE)
        bare.__path__ = [str(SOURCES / PACKAGE)]
        sys.modules[PACKAGE] = bare
    return importlib.import_module(f"{PACKAGE}._codec._tables_{number}")


def faults(table: ModuleType, found: Interpreter) -> Iterator[str]:
    """Yield where the table and the interpreter differ, each with the place in our sources."""
    place = f"{table.__name__.rpartition('.')[2]}.py"
    number = place.removesuffix(".py").rpartition("_")[2]
    dialect = getattr(table, f"DIALECT_{number}")
    known = {*dialect.rules, *dialect.parts, *dialect.refused}
    for name in sorted(set(found.opcodes) - known):
        yield f"{place}: no rule, part or refusal for {name} ({found.opcodes[name]})"
    for name in sorted(known - set(found.opcodes)):
        yield f"{place}: the interpreter has no {name}"

    expected = {each for each in found.opcodes.values() if each >= dialect.argument_from}
    if expected != found.with_argument:
        lowest = min(found.with_argument, default=0)
        yield f"{place}: argument_from is {dialect.argument_from}, the lowest is {lowest}"
    yield from _other_faults(table, found)


def _other_faults(table: ModuleType, found: Interpreter) -> Iterator[str]:
    rules = importlib.import_module(f"{PACKAGE}._codec._rules")
    older = importlib.import_module(f"{PACKAGE}._codec._tables_312")
    lists = (older._WITH_ONE_OPERAND, older._WITH_TWO_OPERANDS)
    for names, ours in zip(found.intrinsics, lists, strict=True):
        yield from _surplus("_tables_312.py", "intrinsic", names[len(ours) :])
    yield from _surplus("_rules.py", "operator", found.operators[len(rules.BINARY) + 1 :])
    constants = len(getattr(table, "COMMON_CONSTANTS", ()))
    place = f"{table.__name__.rpartition('.')[2]}.py"
    yield from _surplus(place, "common constant", found.constants[constants:])
    yield from _surplus("_tables_314.py", "special method", found.special_methods[4:])


def _surplus(place: str, kind: str, names: Iterable[object]) -> Iterator[str]:
    for name in names:
        yield f"{place}: {kind} {name!r} is not known"


def page(handlers: Mapping[str, Any], refused: Mapping[str, str]) -> str:
    """Return the page of what is handled and refused; raw names among the latter are those of this
    version."""
    rows = [f"| `{name}` | {_first_line(handlers[name])} |" for name in sorted(handlers)]
    reasons = [f"| `{name}` | {reason} |" for name, reason in sorted(refused.items())]
    lines = [
        f"# Opcodes under CPython {CURRENT}",
        "<!-- generated by tools/reference.py -->",
        "Neutral operations that the Machine runs, then names that it refuses and why.",
        "\n".join(["| handled | |", "|---|---|", *rows]),
        "\n".join(["| refused | why |", "|---|---|", *reasons]),
    ]
    return "\n\n".join(lines) + "\n"


def _first_line(handler: Any) -> str:
    return (inspect.getdoc(handler) or "").partition("\n")[0].replace("|", "\\|")


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--page", action="store_true", help="write the page of docs/reference")
    given = parser.parse_args(arguments)
    if given.page:
        sys.path.insert(0, str(SOURCES))
        package = importlib.import_module(PACKAGE)
        text = page(package.DEFAULT, package.REFUSED)
        (PAGES / f"opcodes-{CURRENT}.md").write_text(text)
        return 0

    table = table_for(CURRENT)
    found = [*faults(table, running())]
    print("\n".join([*found, f"CPython {CURRENT}: {len(found)} differences to {table.__name__}"]))
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
