"""Code objects to lists of raw instructions and back, without loss.

`assemble(disassemble(code), code)` is byte for byte the same code object: instructions, locations
and exception table. In between, instructions may be added, removed, copied and re-targeted; sizes,
offsets, jump directions, EXTENDED_ARGs, ranges of handlers and the stack size follow by themselves.
"""

from collections.abc import Iterable, Sequence
from dis import EXTENDED_ARG
from itertools import accumulate, groupby
from operator import add, attrgetter, itemgetter, sub
from types import CodeType
from typing import Any

from stator_bytecode._codec._exception_table import parse_exception_table, write_entry
from stator_bytecode._codec._location_table import location_table
from stator_bytecode._codec._raw_instruction import Raw, RawHandler
from stator_bytecode._codec._stack_size import stack_size
from stator_bytecode._codec._tables import OPCODES
from stator_bytecode.errors import InvalidUse, Positions


def disassemble(code: CodeType) -> list[Raw]:
    """Fresh raw instructions of `code`, in order."""
    raws: list[Raw] = []
    at: list[Raw | None] = [None] * (len(code.co_code) // 2 + 1)
    for raw, target in _read_units(code, raws, at):
        raw.target = _starting_at(at, target)
        raw.arg = 0
    for start, end, target, depth, lasti in parse_exception_table(code.co_exceptiontable):
        handler = RawHandler(_starting_at(at, target), depth, lasti)
        for unit in range(start, end):
            if (covered := at[unit]) is not None:
                covered.handler = handler
    return raws


def _read_units(code: CodeType, raws: list[Raw], at: list[Raw | None]) -> list[tuple[Raw, int]]:
    """Fills `raws`, and `at` with the instruction that each code unit belongs to (caches: None);
    gives the jumps."""
    units = code.co_code
    end = len(units) // 2
    positions = list(code.co_positions())
    # the table of replaced code may be too short
    positions += [(None, None, None, None)] * (end - len(positions))
    caches, directions = OPCODES.caches, OPCODES.directions
    jumps: list[tuple[Raw, int]] = []
    unit = extended = prefix = 0

    while unit < end:
        opcode = units[2 * unit]
        arg = units[2 * unit + 1] | prefix
        if opcode == EXTENDED_ARG:
            prefix = arg << 8
            extended += 1
            unit += 1
            continue
        at[unit] = raw = Raw(opcode, arg, None, positions[unit])
        raws.append(raw)
        direction = directions[opcode]
        if extended:
            at[unit - extended : unit] = [raw] * extended
            # A jump may keep prefixes that a shorter way made superfluous; elsewhere they follow
            # from the argument.
            raw.extended = extended if direction or extended > _prefixes(arg) else 0
            prefix = extended = 0
        unit += 1 + caches[opcode]
        if direction:
            jumps.append((raw, unit + direction * arg))

    return jumps


def _starting_at(at: list[Raw | None], unit: int) -> Raw:
    if (raw := at[unit]) is None:
        raise InvalidUse(
            f"code unit {unit} is no instruction", "pass a code object that CPython could run"
        )
    return raw


def assemble(raws: Sequence[Raw], like: CodeType, **replacements: Any) -> CodeType:
    """A code object like `like` with these instructions; `replacements` go to `code.replace`.

    Every target must be in `raws`, which must hold each instruction once. Jumps that exist in both
    directions are turned round as needed. Unless `co_stacksize` is among the replacements it is
    what the instructions need, and at least that of `like`: compilers count handlers that nothing
    raises into, too.
    """
    _number(raws)
    opcodes = [_directed(raw, raws) if raw.target is not None else raw.opcode for raw in raws]
    extended, starts, args = _lay_out(raws, opcodes)
    flags = replacements.get("co_flags", like.co_flags)
    first_line = replacements.get("co_firstlineno", like.co_firstlineno)
    computed: dict[str, Any] = {
        "co_code": _units(opcodes, extended, args),
        "co_linetable": _locations(raws, starts, first_line),
        "co_exceptiontable": _handlers(raws, starts),
    }
    if "co_stacksize" not in replacements:
        computed["co_stacksize"] = max(stack_size(raws, flags), like.co_stacksize)
    computed |= replacements
    return like.replace(**computed)


def _number(raws: Sequence[Raw]) -> None:
    for index, raw in enumerate(raws):
        raw.index = index
    if len(set(raws)) != len(raws):
        raise InvalidUse("an instruction is in the list twice", "copy it: `raw.copy()`")


def _directed(raw: Raw, raws: Sequence[Raw]) -> int:
    """The opcode that jumps in the direction of the target."""
    if (OPCODES.directions[raw.opcode] > 0) == (_place(raw.target, raws) > raw.index):
        return raw.opcode
    if raw.opcode not in OPCODES.opposite:
        raise InvalidUse(
            f"{raw.name} cannot jump in the direction of its target",
            "jump over an unconditional jump",
        )
    return OPCODES.opposite[raw.opcode]


def _place(raw: Raw | None, raws: Sequence[Raw]) -> int:
    if raw is None or not 0 <= raw.index < len(raws) or raws[raw.index] is not raw:
        raise InvalidUse(
            f"the target {raw!r} is not among the instructions", "re-target copies too"
        )
    return raw.index


def _lay_out(raws: Sequence[Raw], opcodes: list[int]) -> tuple[list[int], list[int], list[int]]:
    """Return for each instruction its number of prefixes, its first unit and its argument. `starts`
    has the end, too."""
    args = [0 if raw.target is not None else raw.arg for raw in raws]
    extended = [
        max(raw.extended, _prefixes(arg)) if arg > 255 or raw.extended else 0
        for raw, arg in zip(raws, args, strict=True)
    ]
    jumps = [(raw.index, raw.target.index) for raw in raws if raw.target is not None]
    sizes = [1 + OPCODES.caches[opcode] for opcode in opcodes]
    while True:
        starts = list(accumulate(map(add, sizes, extended), initial=0))
        if not _measure_jumps(jumps, starts, args, extended):
            return extended, starts, args


def _measure_jumps(
    jumps: list[tuple[int, int]], starts: list[int], args: list[int], extended: list[int]
) -> bool:
    """Sets the arguments of jumps. True when one needs more prefixes, so that everything after it
    moves."""
    grew = False
    for index, target in jumps:
        args[index] = distance = abs(starts[target] - starts[index + 1])
        if distance > 255 and (needed := _prefixes(distance)) > extended[index]:
            extended[index] = needed
            grew = True
    return grew


def _prefixes(arg: int) -> int:
    return (arg > 0xFF) + (arg > 0xFFFF) + (arg > 0xFFFFFF)


def _units(opcodes: list[int], extended: list[int], args: list[int]) -> bytes:
    units = bytearray()
    caches = OPCODES.caches
    for opcode, prefixes, arg in zip(opcodes, extended, args, strict=True):
        for prefix in range(prefixes, 0, -1):
            units += bytes((EXTENDED_ARG, arg >> 8 * prefix & 0xFF))
        units.append(opcode)
        units.append(arg & 0xFF)
        if cache := caches[opcode]:
            units += bytes(2 * cache)
    return bytes(units)


def _locations(raws: Sequence[Raw], starts: list[int], first_line: int) -> bytes:
    runs: Iterable[tuple[Positions, int]]
    runs = zip([raw.positions for raw in raws], map(sub, starts[1:], starts), strict=True)
    if OPCODES.dialect.merges_locations:
        runs = (
            (positions, sum(units for _, units in equal))
            for positions, equal in groupby(runs, itemgetter(0))
        )
    return location_table(runs, first_line)


def _handlers(raws: Sequence[Raw], starts: list[int]) -> bytes:
    table = bytearray()
    for handler, run in groupby(raws, attrgetter("handler")):
        if handler is not None:
            places = [raw.index for raw in run]
            start, end, target = (
                starts[places[0]],
                starts[places[-1] + 1],
                starts[_place(handler.target, raws)],
            )
            write_entry(table, (start, end, target, handler.depth, handler.lasti))
    return bytes(table)
