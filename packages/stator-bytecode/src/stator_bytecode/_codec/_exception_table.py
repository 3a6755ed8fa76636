"""The exception table: ranges of code units and where their exceptions go, as variable-length
integers.

An entry is four numbers: start, length, target, and depth and lasti in one; six bits a byte, most
significant first, bit 6 set when more follow, bit 7 set on the first byte of an entry so that
CPython can search the table by halves.
"""

from collections.abc import Iterator

ExceptionEntry = tuple[int, int, int, int, bool]
"""Start, end, target (code units), depth, lasti."""


def parse_exception_table(table: bytes) -> Iterator[ExceptionEntry]:
    numbers = _numbers(table)
    for start in numbers:
        length, target, depth_lasti = next(numbers), next(numbers), next(numbers)
        yield start, start + length, target, depth_lasti >> 1, bool(depth_lasti & 1)


def write_entry(table: bytearray, entry: ExceptionEntry) -> None:
    start, end, target, depth, lasti = entry
    _write(table, start, first=128)
    _write(table, end - start)
    _write(table, target)
    _write(table, depth << 1 | lasti)


def _numbers(table: bytes) -> Iterator[int]:
    value = 0
    for byte in table:
        value = value << 6 | byte & 63
        if not byte & 64:
            yield value
            value = 0


def _write(table: bytearray, value: int, first: int = 0) -> None:
    sextets = [value & 63]
    while value := value >> 6:
        sextets.append(value & 63 | 64)
    sextets[-1] |= first
    table.extend(reversed(sextets))
