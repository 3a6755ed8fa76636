"""The table of the running interpreter, bound to its opcode numbers. The only place that reads the
version."""

import dis
import opcode
import sys
from typing import Any

import attrs

from stator_bytecode._codec._dialect import Dialect, Rule
from stator_bytecode._codec._tables_311 import DIALECT_311
from stator_bytecode._codec._tables_312 import DIALECT_312
from stator_bytecode._codec._tables_313 import DIALECT_313
from stator_bytecode._codec._tables_314 import DIALECT_314
from stator_bytecode._codec._tables_315 import DIALECT_315
from stator_bytecode.errors import InvalidUse

_ALL = (DIALECT_311, DIALECT_312, DIALECT_313, DIALECT_314, DIALECT_315)
DIALECTS = {dialect.version: dialect for dialect in _ALL}


def dialect_of(version: tuple[int, int]) -> Dialect:
    if version in DIALECTS:
        return DIALECTS[version]
    known = ", ".join(f"{major}.{minor}" for major, minor in sorted(DIALECTS))
    problem = f"no bytecode table for Python {version[0]}.{version[1]}"
    raise InvalidUse(problem, f"run under one of {known}, or add a table")


@attrs.frozen(eq=False)
class Opcodes:
    """A dialect by opcode number: what the loops of disassembler, assembler and decoder index."""

    dialect: Dialect
    caches: tuple[int, ...]
    directions: tuple[int, ...]
    """+1 for a forward jump, -1 for a backward one, 0 for no jump."""
    rules: tuple[Rule | None, ...]
    opposite: dict[int, int]
    """Jumps that exist in both directions."""
    no_fall_through: frozenset[int]


NO_JUMPS = frozenset({"END_ASYNC_FOR"})
"""Opcodes whose argument is the distance, backward, to an instruction that they never go to: it is
for tools that observe the interpreter (3.14)."""

_ENDINGS = (
    "RETURN_VALUE",
    "RETURN_CONST",
    "RAISE_VARARGS",
    "RERAISE",
    "JUMP_FORWARD",
    "JUMP_BACKWARD",
)


def bind(dialect: Dialect) -> Opcodes:
    """Numbers come from `dis`: a dialect can be bound only under its own Python."""
    numbers = {name: number for name, number in dis.opmap.items() if number < 256}
    names = {number: name for name, number in numbers.items()}

    return Opcodes(
        dialect,
        tuple(map(_caches, range(256))),
        tuple(map(_direction, range(256))),
        tuple(dialect.rules.get(names.get(number, "")) for number in range(256)),
        {
            numbers[name]: numbers[other]
            for name in numbers
            if (other := _other_direction(name)) in numbers and other != name
        },
        frozenset(
            numbers[name] for name in (*_ENDINGS, "JUMP_BACKWARD_NO_INTERRUPT") if name in numbers
        ),
    )


def _caches(number: int) -> int:
    """Inline cache units that follow an opcode. A list by number, since 3.13 a mapping by name."""
    counts: Any = opcode._inline_cache_entries  # type: ignore[attr-defined]
    return int(counts[number] if isinstance(counts, list) else counts.get(dis.opname[number], 0))


def _direction(number: int) -> int:
    if number not in dis.hasjrel:
        return 0
    name = dis.opname[number]
    return -1 if "BACKWARD" in name or name in NO_JUMPS else 1


def _other_direction(name: str) -> str:
    if "_NO_INTERRUPT" in name or "INSTRUMENTED" in name or "JUMP" not in name:
        return ""
    return (
        name.replace("BACKWARD", "FORWARD")
        if "BACKWARD" in name
        else name.replace("FORWARD", "BACKWARD")
    )


OPCODES = bind(dialect_of((sys.version_info[0], sys.version_info[1])))
