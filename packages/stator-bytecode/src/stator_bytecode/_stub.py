"""Stubs: native functions that run one instruction in frames that look like the user's.

A *step stub* restores locals and cells, re-enters the handled exception, pushes the operands of its instruction, runs it
(the raw instruction itself, at its own position) and returns what it gave, with the number of the exit taken last.
A *call stub* stands for an outer frame: it calls the next stub at the position of the call that frame is parked at.

    def f(state):                       # name, file, line, globals, slots of the user's f
        x, y = state[0], state[1]
        <push state[2], state[3]>
        <BINARY_OP +>
        return (result, 0)
"""

from __future__ import annotations

import dis
from collections.abc import Callable
from typing import Any

import attrs

from stator_bytecode._instruction import Instruction
from stator_bytecode._layout import NULL_KIND, FrameLayout, Places, RaisedAt
from stator_bytecode._native_frame import NativeFrame, raws_of
from stator_bytecode._raw_instruction import Raw
from stator_bytecode._stack_effect import operands, results

State = tuple[Any, ...]
Stub = Callable[[Any], Any]

UNCHANGED = frozenset({"LIST_APPEND", "SET_ADD", "MAP_ADD", "LIST_EXTEND", "SET_UPDATE", "DICT_UPDATE"})
"""They change the container they look at, which lies anywhere below. The stub has it next to what is added."""

_KEPT: dict[str, tuple[int, int]] = {
    "FOR_ITER": (1, 0),
    "GET_LEN": (1, 0),
    "MATCH_MAPPING": (1, 0),
    "MATCH_SEQUENCE": (1, 0),
    "MATCH_KEYS": (2, 0),
    "IMPORT_FROM": (1, 0),
    "CHECK_EXC_MATCH": (1, 0),
    "WITH_EXCEPT_START": (4, 0),
    "JUMP_IF_TRUE_OR_POP": (0, 1),
    "JUMP_IF_FALSE_OR_POP": (0, 1),
}
"""How many of the lowest operands stay as they were, when the instruction goes on and when it jumps."""

ENDING = frozenset({"RAISE_VARARGS", "RERAISE"})


@attrs.frozen
class Shapes:
    """What a native step takes and leaves: top operands used, how many of them are kept, and values made, per exit."""

    used: tuple[int, ...]
    """Depths from the top (1 is the top) of the operands pushed, lowest first."""
    kept: tuple[int, int]
    made: tuple[int, int]
    jumps: bool


def shapes_of(instr: Instruction) -> Shapes:
    op, arg = instr.op, instr.arg
    count = operands(instr)
    if op in UNCHANGED:
        added = 2 if op == "MAP_ADD" else 1
        return Shapes((arg + added, *range(added, 0, -1)), (1, 0), (0, 0), False)
    used = tuple(range(count, 0, -1))
    if op == "DICT_MERGE":
        return Shapes(used, (count - 1, 0), (0, 0), False)
    if op == "SEND":
        return Shapes(used, (1, int(instr.arg)), (1, 1), True)
    if op == "RERAISE":
        return Shapes((1,), (0, 0), (0, 0), False)
    kept = _KEPT.get(op, (0, 0))
    made = (values_made(instr) - kept[0], results(instr, True) - kept[1])
    return Shapes(used, kept, made, instr.target >= 0)


def values_made(instr: Instruction) -> int:
    """Without the NULL that the instruction pushes besides: the stub leaves it away, since it cannot be returned."""
    return results(instr, False) - pushes_null(instr)


def pushes_null(instr: Instruction) -> bool:
    if instr.op == "LOAD_GLOBAL":
        return instr.arg[1] is not None
    return instr.op == "LOAD_METHOD" or (instr.op == "LOAD_SUPER_ATTR" and bool(instr.arg[1]))


def null_of(layout: FrameLayout) -> str | None:
    """On which side of the value the instruction pushes a NULL."""
    instr = layout.instruction
    if not pushes_null(instr):
        return None
    if instr.op == "LOAD_GLOBAL":
        return str(instr.arg[1])
    return "before" if layout.code.null_first else "after"


def step_stub(layout: FrameLayout, places: Places) -> Stub:
    frame = NativeFrame(layout, places)
    frame.start()
    frame.restore_slots()
    write_step(frame, layout, raws_of(layout))
    return frame.function(co_flags=frame.flags())


def write_step(frame: NativeFrame, layout: FrameLayout, raws: list[Raw]) -> None:
    glue, shapes = frame.glue, shapes_of(layout.instruction)
    if layout.handled:
        assert frame.places.handled is not None
        frame.handle(frame.places.handled)
    # Guarded from here: for an exception out of a called frame, 3.13 asks for the handler of the instruction before.
    begin = len(glue.raws)
    for depth in shapes.used:
        _push_operand(frame, len(layout.stack) - depth)
    frame.restore_first_slot()
    _adapt(raws, layout.instruction)
    for raw in raws:
        raw.target = None
        glue.add(raw)
    end = len(glue.raws)
    if layout.instruction.op not in ENDING:
        _write_exits(frame, shapes, next((raw for raw in raws if raw.opcode in _JUMPING), None))
    if layout.handled:
        frame.clean_up(glue.raws[begin:end])


_JUMPING = frozenset(dis.hasjrel)


def _push_operand(frame: NativeFrame, depth: int) -> None:
    if isinstance(frame.layout.stack[depth], RaisedAt):
        frame.glue.constant(0)  # WITH_EXCEPT_START wants a number there
    else:
        frame.push(depth)


def _adapt(raws: list[Raw], instr: Instruction) -> None:
    """Let the instruction find its operands where the stub has them, and push no NULL."""
    last = raws[-1]
    if instr.op in UNCHANGED:
        last.arg = 1
    elif instr.op == "RERAISE":
        # The instruction to blame is that of the traceback's entry, which is there already.
        last.arg = 0
    elif pushes_null(instr):
        if last.name == "LOAD_METHOD":
            last.opcode = dis.opmap["LOAD_ATTR"]
        else:
            last.arg &= ~1


def _write_exits(frame: NativeFrame, shapes: Shapes, jump: Raw | None) -> None:
    glue = frame.glue
    lowest = len(frame.layout.stack) - shapes.used[0] if shapes.used else 0
    if frame.layout.instruction.op == "CHECK_EG_MATCH":
        # A match becomes the exception being handled, so there are two ways on.
        glue.emit("COPY", 1)
        jump = glue.jump_if("NONE")
        _write_exit(frame, 1, lowest, 0, shapes.made[0])
        glue.land(jump)
        _write_exit(frame, 0, lowest, 0, shapes.made[0])
        return
    _write_exit(frame, 0, lowest, shapes.kept[0], shapes.made[0])
    if jump is None:
        return
    if frame.layout.instruction.op == "FOR_ITER":
        glue.end_loop(jump)
    else:
        glue.land(jump)
    _write_exit(frame, 1, lowest, shapes.kept[1], shapes.made[1])


def _write_exit(frame: NativeFrame, number: int, lowest: int, kept: int, made: int) -> None:
    glue, stack = frame.glue, frame.layout.stack
    glue.constant(number)
    glue.emit("BUILD_TUPLE", made + 1)
    for depth in reversed(range(lowest, lowest + kept)):
        glue.emit("SWAP", 2)
        # POP_TOP would read a NULL; STORE_FAST may have one, and the locals are done with.
        glue.emit(*(("STORE_FAST", 0) if stack[depth] is NULL_KIND else ("POP_TOP",)))
    if frame.layout.handled:
        glue.emit("SWAP", 2)
        glue.emit("POP_EXCEPT")
    glue.emit("RETURN_VALUE")


def call_stub(layout: FrameLayout, places: Places, inner: Stub) -> Stub:
    frame = NativeFrame(layout, places)
    glue = frame.glue
    frame.start()
    frame.restore_slots()
    if layout.handled:
        assert places.handled is not None
        frame.handle(places.handled)
    begin = len(glue.raws)

    def state_then_slot() -> None:
        frame.load_state()
        frame.restore_first_slot()

    glue.call(inner, state_then_slot)
    end = len(glue.raws)
    if layout.handled:
        glue.emit("SWAP", 2)
        glue.emit("POP_EXCEPT")
    glue.emit("RETURN_VALUE")
    if layout.handled:
        frame.clean_up(glue.raws[begin:end])
    return frame.function(co_flags=frame.flags())


def return_stub(layout: FrameLayout, places: Places) -> Stub:
    """The innermost frame at its RETURN_VALUE."""
    frame = NativeFrame(layout, places)
    frame.start()
    frame.restore_slots()
    frame.push(len(layout.stack) - 1)
    frame.restore_first_slot()
    frame.glue.emit("RETURN_VALUE")
    return frame.function(co_flags=frame.flags())
