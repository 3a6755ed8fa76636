"""The location table: for each run of up to 8 code units, its line and columns, in the shortest of
five forms.

An entry starts with a byte of bit 7, four bits of form and three of length; lines are differences
to the entry before. The choice of forms is CPython's own (Objects/locations.md): tables come out
byte for byte as its compiler writes them.
"""

from collections.abc import Iterable

from stator_bytecode.errors import Positions

_NO_COLUMNS, _LONG, _NONE = 13, 14, 15


def location_table(runs: Iterable[tuple[Positions, int]], first_line: int) -> bytes:
    """The table of runs of code units: their positions, and how many they are."""
    table, line = bytearray(), first_line
    for positions, units in runs:
        while units > 8:
            line = _write_entry(table, positions, 7, line)
            units -= 8
        line = _write_entry(table, positions, units - 1, line)
    return bytes(table)


def _write_entry(table: bytearray, positions: Positions, size: int, before: int) -> int:
    """Gives the line that the next entry counts from."""
    line, end_line, column, end_column = positions
    if line is None:
        table.append(128 | _NONE << 3 | size)
        return before
    delta = line - before
    if column is None or end_column is None:
        if end_line is None or end_line == line:
            table.append(128 | _NO_COLUMNS << 3 | size)
            _write_signed(table, delta)
            return line
    elif end_line == line and _write_short(table, delta, column, end_column, size):
        return line

    table.append(128 | _LONG << 3 | size)
    _write_signed(table, delta)
    _write(table, 0 if end_line is None else end_line - line)
    _write(table, 0 if column is None else column + 1)
    _write(table, 0 if end_column is None else end_column + 1)
    return line


def _write_short(table: bytearray, delta: int, column: int, end_column: int, size: int) -> bool:
    if delta == 0 and column < 80 and 0 <= end_column - column < 16:
        table.extend((128 | (column >> 3) << 3 | size, (column & 7) << 4 | (end_column - column)))
        return True
    if 0 <= delta < 3 and column < 128 and end_column < 128:
        table.extend((128 | (10 + delta) << 3 | size, column, end_column))
        return True
    return False


def _write(table: bytearray, value: int) -> None:
    while value >= 64:
        table.append(value & 63 | 64)
        value >>= 6
    table.append(value)


def _write_signed(table: bytearray, value: int) -> None:
    _write(table, -value << 1 | 1 if value < 0 else value << 1)
