"""The differences between the bytecodes of CPython versions, as data.

A `Dialect` has opcodes by name only, so the tables of every version (`_tables_311.py` and so on)
can be read and tested under any Python; `_tables.py` picks the one of the running interpreter, the
only place that reads the version. A raw opcode has one of two kinds of rule:

- a tuple of `Emit`s: the neutral instructions it represents, each with a resolver of its argument
  (none: it vanishes);
- a `Fuse`: a function that reads the raw instructions after it too, where several are one neutral
  instruction.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, TypeAlias

import attrs

from stator_bytecode._codec._raw_instruction import Raw


@attrs.define(eq=False)
class Scope:
    """The tables that the arguments of one code object's instructions refer to."""

    names: tuple[str, ...]
    consts: tuple[Any, ...]
    cell_slots: frozenset[int]
    """Slots whose native content is always a cell once the prologue has run."""


Fused: TypeAlias = tuple[int, int, str | None, Any]
"""`(stop, lead, op, arg)`: the raw instructions up to `stop` are this one neutral instruction, or
none if `op` is None. The raw instruction at `lead` gives position, target and handler. A plain
tuple, since decoding makes many."""

Resolve: TypeAlias = Callable[[Scope, int], Any]
"""The neutral argument, from the raw one."""
Fuse: TypeAlias = Callable[[Sequence[Raw], int, Scope], Fused]
"""Reads the raw instructions from the given index on."""


class Emit(NamedTuple):
    op: str
    resolve: Resolve


Rule: TypeAlias = tuple[Emit, ...] | Fuse
Rules: TypeAlias = dict[str, Rule]
"""The rule of each raw opcode, under its name."""


@attrs.frozen(eq=False)
class Dialect:
    """The bytecode of one CPython minor version."""

    version: tuple[int, int]
    argument_from: int
    """The lowest opcode that takes an argument."""
    merges_locations: bool
    """True if equal neighbouring positions share an entry of the location table."""
    sent_value_on_entry: bool
    """True if a generator's stack size starts with the value sent, instead of RETURN_GENERATOR
    counting it."""
    null_first: bool
    iterator_slots: int
    """The number of stack slots that an iterator has in a loop."""
    rules: Mapping[str, Rule]
    parts: frozenset[str]
    """Raw opcodes that are met only inside a `Fuse`, or that disassembly consumes."""
    refused: Mapping[str, str]
    """Raw opcodes that no function's code holds, with the reason; REFUSED adds the neutral
    operations."""
