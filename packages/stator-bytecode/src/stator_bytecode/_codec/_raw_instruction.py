"""The raw instruction: one opcode of the running interpreter, ready to be moved, copied and
changed.

Jump targets and handlers are references to other instructions, not offsets, so a list of them may
be edited freely. `EXTENDED_ARG` and caches are not in the list: they follow from argument and
opcode.
"""

from __future__ import annotations

import dis

import attrs

from stator_bytecode.errors import Positions

NO_POSITIONS: Positions = (None, None, None, None)


@attrs.frozen(cache_hash=True)
class RawHandler:
    """The target of an exception: stack cut to `depth`, then the offset (if `lasti`) and the
    exception pushed."""

    target: Raw
    depth: int
    lasti: bool


@attrs.define(eq=False, repr=False)
class Raw:
    """One raw instruction. `arg` counts for nothing where there is a `target`."""

    opcode: int
    arg: int = 0
    target: Raw | None = None
    positions: Positions = NO_POSITIONS
    handler: RawHandler | None = None
    extended: int = 0
    """The least number of EXTENDED_ARG units before it. Compilers leave some that are not
    needed."""
    index: int = -1
    """Scratch of the assembler: its place in the list that was assembled last."""

    @property
    def name(self) -> str:
        return dis.opname[self.opcode]

    def copy(self) -> Raw:
        """The same instruction once more; its target and handler are those of the original."""
        return Raw(self.opcode, self.arg, self.target, self.positions, self.handler, self.extended)

    def __repr__(self) -> str:
        return (
            f"{self.name} -> {self.target.name}"
            if self.target is not None
            else f"{self.name} {self.arg}"
        )
