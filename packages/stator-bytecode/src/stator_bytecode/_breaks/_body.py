"""A function's original code, entered in its middle: the body of native continuations and of
rebuilt generators.

    <prologue: the frame as it was>; JUMP_FORWARD → instruction `pc`; <all of the original code>

The entry is written first and jumps forward, so every jump and every handler of the original stays
as it is.
"""

import dis
from collections.abc import Callable
from types import CodeType
from typing import Any

from stator_bytecode._breaks._layout import NO_PREVIOUS, FlatIndices, FrameLayout, RaisedAt
from stator_bytecode._breaks._native_frame import GeneratorPlace, NativeFrame, moved
from stator_bytecode._codec._raw import disassemble
from stator_bytecode._codec._raw_instruction import Raw
from stator_bytecode._codec._tables import OPCODES


class NativeBody:
    """The code being written. `raws` is the original, to be jumped into."""

    def __init__(
        self, layout: FrameLayout, places: FlatIndices, generator_place: GeneratorPlace
    ) -> None:
        self.layout = layout
        self.frame = NativeFrame(layout, places, generator_place)
        self.glue = self.frame.glue
        self.raws = moved(disassemble(layout.raw), layout.raw)
        self.blamed: list[tuple[int, Raw]] = []

    def restore_stack(self) -> None:
        """The whole stack, and the exception being handled. Markers are plain objects to
        POP_EXCEPT."""
        for depth, kind in enumerate(self.layout.stack):
            if kind is NO_PREVIOUS:
                self._push_previous(depth)
            elif isinstance(kind, RaisedAt):
                self._push_offset_of(self.raw_at(kind.index))
            else:
                self.frame.push(depth)
        if self.frame.places.handled is not None:
            self.frame.handle(self.frame.places.handled)
            self.glue.emit("POP_TOP")

    def _push_previous(self, depth: int) -> None:
        """Push the exception that was handled at the call: PUSH_EXC_INFO shows it, POP_EXCEPT
        restores it."""
        first = self.layout.stack.index(NO_PREVIOUS)
        if depth > first:
            self.glue.emit("COPY", depth - first)
            return
        self.glue.constant(None)
        self.glue.emit("PUSH_EXC_INFO")
        self.glue.emit("POP_TOP")
        self.glue.emit("COPY", 1)
        self.glue.emit("POP_EXCEPT")

    def _push_offset_of(self, raw: Raw) -> None:
        """Filled in once it is known: `function` does."""
        self.blamed.append((len(self.glue.consts), raw))
        self.glue.constant(None)

    def raw_at(self, index: int) -> Raw:
        """The raw instruction that runs: the last of those that are one neutral one."""
        return self.raws[self.layout.code.instructions[index].raw[1] - 1]

    def leave(self, jump: bool, popped: int = 0, made: int = 0, null: str | None = None) -> None:
        """Go on in the original code after the instruction that waited: see `_complete.Leave`."""
        glue, instr = self.glue, self.layout.instruction
        for _ in range(popped):
            if made:
                glue.emit("SWAP", 2)
            glue.emit("POP_TOP")
        if null is not None:
            glue.emit("PUSH_NULL")
        if null == "before":
            glue.emit("SWAP", 2)
        self.go_on_at(instr.target if jump else instr.index + 1)

    def go_on_at(self, pc: int) -> None:
        """Jump to the neutral instruction `pc`, with what is on the stack."""
        instructions = self.layout.code.instructions
        start, stop = instructions[pc].raw
        if pc and instructions[pc - 1].raw == (start, stop):
            self._write_second_half(pc, self.raws[start])
            if instructions[pc].op == "RETURN_VALUE":
                return
            start = stop
        self.glue.emit("JUMP_FORWARD", target=self.raws[start])

    def _write_second_half(self, pc: int, raw: Raw) -> None:
        """Write the second half of a superinstruction whose first half has run."""
        instr = self.layout.code.instructions[pc]
        self.glue.add(Raw(dis.opmap[instr.op], instr.arg or 0, None, raw.positions, raw.handler))

    def function(self, generator: bool) -> Callable[[Any], Any]:
        for raw in self.raws:
            self.glue.add(raw)
        function = self.frame.function(generator)
        if self.blamed:
            _fill_offsets(function, self.blamed, self.glue.raws)
        return function


def _fill_offsets(function: Any, blamed: list[tuple[int, Raw]], raws: list[Raw]) -> None:
    code: CodeType = function.__code__
    units = _units_of(code)
    consts = list(code.co_consts)
    for index, raw in blamed:
        consts[index] = units[raw.index]
    function.__code__ = code.replace(co_consts=tuple(consts))


def _units_of(code: CodeType) -> list[int]:
    """The code unit of each raw instruction."""
    units: list[int] = []
    unit, content = 0, code.co_code
    while 2 * unit < len(content):
        opcode = content[2 * unit]
        if opcode != dis.EXTENDED_ARG:
            units.append(unit)
        unit += 1 + OPCODES.caches[opcode]
    return units
