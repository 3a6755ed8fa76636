"""Stubs: native functions that run one instruction in frames that look like the user's.

A *step stub* restores locals and cells, re-enters the handled exception, pushes the operands of its
instruction, runs it (the raw instruction itself, at its own position) and returns what it gave,
with the number of the exit taken last. A *call stub* represents an outer frame: it calls the next
stub at the position of the call that frame is parked at.

    def f(state):                       # name, file, line, globals, slots of the user's f
        x, y = state[0], state[1]
        <push state[2], state[3]>
        <BINARY_OP +>
        return (result, 0)
"""

import dis
from collections.abc import Callable
from types import CoroutineType, MethodType
from typing import Any
from weakref import WeakKeyDictionary

import attrs

from stator_bytecode._breaks._glue import Glue
from stator_bytecode._breaks._layout import NULL_KIND, FlatIndices, FrameLayout, RaisedAt
from stator_bytecode._breaks._native_frame import NativeFrame, moved
from stator_bytecode._breaks._shape import UNCHANGED, StepEffect, pushes_null, shapes_of
from stator_bytecode._codec._instruction import Code
from stator_bytecode._codec._raw import disassemble
from stator_bytecode._codec._raw_instruction import Raw

Stub = Callable[[Any], Any]

FRAME_BOUND = frozenset(
    """
    LOAD_FAST DELETE_FAST LOAD_CLOSURE LOAD_DEREF STORE_DEREF DELETE_DEREF
    LOAD_GLOBAL STORE_GLOBAL DELETE_GLOBAL LOAD_FROM_DICT_OR_DEREF LOAD_FROM_DICT_OR_GLOBALS
    MAKE_FUNCTION IMPORT_NAME LOAD_BUILD_CLASS RAISE_VARARGS RERAISE
    """.split()
)
"""Instructions of a hidden frame that need its locals, cells or globals: they run in a native frame
of its own."""

_ENDING = frozenset({"RAISE_VARARGS", "RERAISE"})
_FLAGGED = frozenset({"LOAD_GLOBAL", "LOAD_METHOD", "LOAD_SUPER_ATTR"})
"""Instructions with a flag for the NULL that they push besides."""
_JUMPING = frozenset(dis.hasjrel)
_NAMED = frozenset(dis.hasname)
_CONSTANT = frozenset(dis.hasconst)
_NAME_SHIFTS = {
    "LOAD_SUPER_ATTR": 2,
    **({"LOAD_ATTR": 1} if "LOAD_METHOD" not in dis.opmap else {}),
}
"""Flags below the index of the name, since 3.12."""


def step_stub(layout: FrameLayout, places: FlatIndices, handled: int | None) -> Stub:
    """`handled` is where the exception being handled is, if one is to be re-entered."""
    frame = NativeFrame(layout, places)
    return _StepWriter(frame, frame, handled, raws_of(layout)).write()


def merged_step_stub(
    visible: FrameLayout,
    visible_places: FlatIndices,
    hidden: FrameLayout,
    hidden_places: FlatIndices,
    handled: int | None,
) -> Stub:
    """The instruction of a hidden frame, run in the frame of the user's code that it works for."""
    frame, operands = NativeFrame(visible, visible_places), NativeFrame(hidden, hidden_places)
    operands.glue = frame.glue
    # there is one native frame
    operands.load_state = frame.load_state  # type: ignore[method-assign]
    raws = raws_of(hidden)
    for raw in raws:
        _adopt(raw, frame, hidden)
    return _StepWriter(frame, operands, handled, raws).write()


def _adopt(raw: Raw, frame: NativeFrame, hidden: FrameLayout) -> None:
    """Names and constants of the hidden frame's code, in the visible one's."""
    glue = frame.glue
    raw.positions = glue.positions
    if raw.opcode in _NAMED:
        shift = _NAME_SHIFTS.get(raw.name, 0)
        glue.names.append(hidden.raw.co_names[raw.arg >> shift])
        raw.arg = (len(glue.names) - 1) << shift | raw.arg & ((1 << shift) - 1)
    elif raw.opcode in _CONSTANT:
        glue.consts.append(hidden.raw.co_consts[raw.arg])
        raw.arg = len(glue.consts) - 1


_raws: WeakKeyDictionary[Code, list[Raw]] = WeakKeyDictionary()


def raws_of(layout: FrameLayout) -> list[Raw]:
    """The raw instructions of the layout's neutral one, copied, without handlers."""
    if (raws := _raws.get(layout.code)) is None:
        raws = _raws[layout.code] = disassemble(layout.raw)
    start, stop = layout.instruction.raw
    copies = [raw.copy() for raw in raws[start:stop]]
    for raw in copies:
        raw.handler = raw.target = None
    return moved(copies, layout.raw)


@attrs.define(eq=False)
class _StepWriter:
    """`frame` is the native frame, `operands` the one whose instruction and stack it is."""

    frame: NativeFrame
    operands: NativeFrame
    handled: int | None
    raws: list[Raw]

    def write(self) -> Stub:
        frame, glue, instr = self.frame, self.frame.glue, self.operands.layout.instruction
        shapes = shapes_of(instr)
        # Guarded from here: for an exception out of a called frame 3.13 looks up the instruction
        # before.
        begin = frame.open(self.handled)
        for depth in shapes.used:
            self._push(len(self.operands.layout.stack) - depth)
        frame.restore_first_slot()
        self._adapt()
        self._write_instruction()
        end = len(glue.raws)
        if instr.op not in _ENDING:
            self._write_exits(shapes)
        frame.clean_up(self.handled, glue.raws[begin:end])
        return frame.function()

    def _write_instruction(self) -> None:
        """The raw instruction, and what makes its results such that they can be returned."""
        glue, instr = self.frame.glue, self.operands.layout.instruction
        if pushes_null(instr) and instr.op == "GET_ITER":
            glue.get_iterator()
            return
        if pushes_null(instr) and instr.op == "GET_YIELD_FROM_ITER":
            _get_delegate(glue, self.raws)
            return

        for raw in self.raws:
            glue.add(raw)
        if pushes_null(instr) and instr.op == "BEFORE_WITH":
            _bind_exit(glue)
        elif pushes_null(instr) and instr.op == "CLEANUP_THROW":
            glue.emit("SWAP", 2)
            glue.emit("POP_TOP")

    def _push(self, depth: int) -> None:
        if isinstance(self.operands.layout.stack[depth], RaisedAt):
            self.frame.glue.constant(0)  # WITH_EXCEPT_START takes a number there
        else:
            self.operands.push(depth)

    def _adapt(self) -> None:
        """Let the instruction find its operands where the stub has them, and push no NULL."""
        instr, last = self.operands.layout.instruction, self.raws[-1]
        if instr.op in UNCHANGED:
            last.arg = 1
        elif instr.op == "RERAISE":
            # The instruction to blame is that of the traceback's entry, which is there already.
            last.arg = 0
        elif pushes_null(instr) and instr.op in _FLAGGED:
            if last.name == "LOAD_METHOD":
                last.opcode = dis.opmap["LOAD_ATTR"]
            else:
                last.arg &= ~1

    def _write_exits(self, shapes: StepEffect) -> None:
        glue, op = self.frame.glue, self.operands.layout.instruction.op
        lowest = len(self.operands.layout.stack) - shapes.used[0] if shapes.used else 0
        if op == "CHECK_EG_MATCH":
            # A match becomes the exception being handled, so there are two ways on.
            glue.emit("COPY", 1)
            unmatched = glue.jump_if("NONE")
            self._write_exit(1, lowest, 0, shapes.made[0])
            glue.bind(unmatched)
            self._write_exit(0, lowest, 0, shapes.made[0])
            return

        self._write_exit(0, lowest, shapes.kept[0], shapes.made[0])
        if (jump := next((raw for raw in self.raws if raw.opcode in _JUMPING), None)) is None:
            return
        if op == "FOR_ITER":
            glue.end_loop(jump)
        else:
            glue.bind(jump)
        self._write_exit(1, lowest, shapes.kept[1], shapes.made[1])

    def _write_exit(self, number: int, lowest: int, kept: int, made: int) -> None:
        glue, stack = self.frame.glue, self.operands.layout.stack
        glue.constant(number)
        glue.emit("BUILD_TUPLE", made + 1)
        for depth in reversed(range(lowest, lowest + kept)):
            glue.emit("SWAP", 2)
            # POP_TOP would read a NULL; STORE_FAST may have one, and the locals are done with.
            if stack[depth] is NULL_KIND:
                glue.emit("STORE_FAST", 0)
            else:
                glue.emit("POP_TOP")
        leave(self.frame, self.handled)


def _get_delegate(glue: Glue, raws: list[Raw]) -> None:
    """The iterator of `yield from`, in one slot. The instruction itself refuses a coroutine."""
    glue.emit("COPY", 1)
    glue.call_on_top(_is_coroutine)
    refused = glue.jump_if("TRUE")
    glue.get_iterator()
    over = glue.emit("JUMP_FORWARD")
    glue.bind(refused)
    for raw in raws:
        glue.add(raw)
    glue.emit("POP_TOP")
    glue.bind(over)


_is_coroutine: Callable[[object], bool] = CoroutineType.__instancecheck__
"""A function of C, so that no frame is made for it."""


def _bind_exit(glue: Glue) -> None:
    """`[exit, self or NULL, entered]` => `[bound exit, entered]`: no NULL can be returned.

    A call takes the second of its slots for an argument unless that is a NULL: `bound(self, exit)`.
    """
    glue.emit("SWAP", 3)
    glue.constant(_bound)
    glue.emit("SWAP", 3)
    glue.emit("SWAP", 2)
    glue.emit("CALL", 1)
    glue.emit("SWAP", 2)


def _bound(*found: Any) -> Any:
    """The method of `(self, function)`, or the one callable."""
    return MethodType(found[1], found[0]) if len(found) == 2 else found[0]


def leave(frame: NativeFrame, handled: int | None) -> None:
    """Return the top of the stack, under which the exception before `handled` lies."""
    if handled is not None:
        frame.glue.emit("SWAP", 2)
        frame.glue.emit("POP_EXCEPT")
    frame.glue.emit("RETURN_VALUE")


def call_stub(layout: FrameLayout, places: FlatIndices, inner: Stub) -> Stub:
    """An outer frame: it calls the next stub where it called the user's function."""
    frame = NativeFrame(layout, places)
    begin = frame.open(places.handled)
    frame.glue.call(inner, frame.hand_on)
    guarded = frame.glue.raws[begin:]
    leave(frame, places.handled)
    frame.clean_up(places.handled, guarded)
    return frame.function()


def return_stub(layout: FrameLayout, places: FlatIndices) -> Stub:
    """The innermost frame at its RETURN_VALUE."""
    frame = NativeFrame(layout, places)
    frame.open(None)
    frame.push(len(layout.stack) - 1)
    frame.restore_first_slot()
    frame.glue.emit("RETURN_VALUE")
    return frame.function()


def raise_stub(layout: FrameLayout, places: FlatIndices, handled: int | None, error: int) -> Stub:
    """A frame that raises the exception at place `error` of the state where it stands.

    RAISE_VARARGS keeps the traceback that the exception has, behind the entries of the frames that
    it leaves, and makes the exception being handled its context: as an instruction in C that raises
    it does.
    """
    frame = NativeFrame(layout, places)
    begin = frame.open(handled)
    frame.load(error)
    frame.restore_first_slot()
    frame.glue.emit("RAISE_VARARGS", 1)
    frame.clean_up(handled, frame.glue.raws[begin:])
    return frame.function()
