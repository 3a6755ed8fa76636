"""The location table: for each run of up to 8 code units, its line and columns, in the shortest of five forms.

An entry starts with a byte of bit 7, four bits of form and three of length; lines are differences to the entry before.
The choice of forms is CPython's own (Objects/locations.md): tables come out byte for byte as its compiler writes them.
"""

from stator_bytecode._codec._instruction import Positions

_NO_COLUMNS, _LONG, _NONE = 13, 14, 15


class LocationWriter:
    """Takes (positions, units) in order, gives the table. `merges` joins equal neighbours, as CPython 3.12 began to."""

    __slots__ = ("_line", "_merges", "_positions", "_units", "table")

    def __init__(self, first_line: int, merges: bool) -> None:
        self.table = bytearray()
        self._line = first_line
        self._merges = merges
        self._positions: Positions | None = None
        self._units = 0

    def add(self, positions: Positions, units: int) -> None:
        if self._merges and (positions is self._positions or positions == self._positions):
            self._units += units
            return
        self.flush()
        self._positions = positions
        self._units = units

    def flush(self) -> None:
        units = self._units
        if units and self._positions is not None:
            while units > 8:
                self._entry(self._positions, 7)
                units -= 8
            self._entry(self._positions, units - 1)
        self._units = 0

    def _entry(self, positions: Positions, size: int) -> None:
        line, end_line, column, end_column = positions
        if line is None:
            self.table.append(128 | _NONE << 3 | size)
            return
        delta = line - self._line
        self._line = line
        if column is None or end_column is None:
            if end_line is None or end_line == line:
                self.table.append(128 | _NO_COLUMNS << 3 | size)
                _write_signed(self.table, delta)
                return
        elif end_line == line and self._short(delta, column, end_column, size):
            return
        self._long(delta, line if end_line is None else end_line, column, end_column, size)

    def _short(self, delta: int, column: int, end_column: int, size: int) -> bool:
        if delta == 0 and column < 80 and 0 <= end_column - column < 16:
            self.table.append(128 | (column >> 3) << 3 | size)
            self.table.append((column & 7) << 4 | (end_column - column))
            return True
        if 0 <= delta < 3 and column < 128 and end_column < 128:
            self.table.append(128 | (10 + delta) << 3 | size)
            self.table.append(column)
            self.table.append(end_column)
            return True
        return False

    def _long(self, delta: int, end_line: int, column: int | None, end_column: int | None, size: int) -> None:
        self.table.append(128 | _LONG << 3 | size)
        _write_signed(self.table, delta)
        _write(self.table, end_line - self._line)
        _write(self.table, 0 if column is None else column + 1)
        _write(self.table, 0 if end_column is None else end_column + 1)


def _write(table: bytearray, value: int) -> None:
    while value >= 64:
        table.append(value & 63 | 64)
        value >>= 6
    table.append(value)


def _write_signed(table: bytearray, value: int) -> None:
    _write(table, -value << 1 | 1 if value < 0 else value << 1)
