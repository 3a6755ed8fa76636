"""Opcodes that only move values: the stack, constants, locals, cells, jumps."""

from typing import Any

from stator_bytecode._codec._instruction import Instruction
from stator_bytecode._handler_table import HandlerTable
from stator_bytecode._machine._completion import UNBOUND_LOCAL, cell_content
from stator_bytecode._machine._domain import Raised
from stator_bytecode._machine._frame import NULL, Frame
from stator_bytecode._machine._machine import Machine, OpcodeHandler
from stator_bytecode.errors import Unsupported

stack_ops: HandlerTable[str, OpcodeHandler] = HandlerTable(
    "opcode",
    {
        "PUSH_NULL": lambda machine, frame, instr: frame.stack.append(NULL),
        "COPY": lambda machine, frame, instr: frame.stack.append(frame.stack[-instr.arg]),
        "JUMP": lambda machine, frame, instr: instr.target,
        "LOAD_CLOSURE": lambda machine, frame, instr: frame.stack.append(frame.slots[instr.arg]),
        "LOAD_DEREF": lambda machine, frame, instr: frame.stack.append(
            cell_content(machine, frame, instr.arg)
        ),
    },
)


@stack_ops.handles("NOP", "COPY_FREE_VARS")
def nop(machine: Machine, frame: Frame, instr: Instruction) -> None:
    """`new_frame` has put the free variables' cells into their slots, so that any state of a frame
    shows them."""
    return None


@stack_ops.handles("POP_TOP")
def pop_top(machine: Machine, frame: Frame, instr: Instruction) -> None:
    value = frame.stack.pop()
    try:
        machine.domain.drop(value, machine.frames)
    except Unsupported:
        frame.stack.append(value)
        raise


@stack_ops.handles("SWAP")
def swap(machine: Machine, frame: Frame, instr: Instruction) -> None:
    stack = frame.stack
    stack[-1], stack[-instr.arg] = stack[-instr.arg], stack[-1]


@stack_ops.handles("LOAD_CONST")
def load_const(machine: Machine, frame: Frame, instr: Instruction) -> None:
    frame.stack.append(machine.domain.constant(instr.arg))


@stack_ops.handles("LOAD_FAST")
def load_fast(machine: Machine, frame: Frame, instr: Instruction) -> None:
    if (value := frame.slots[instr.arg]) is NULL:
        _unbound(machine, frame, instr)
    frame.stack.append(value)


@stack_ops.handles("LOAD_FAST_AND_CLEAR")
def load_fast_and_clear(machine: Machine, frame: Frame, instr: Instruction) -> None:
    frame.stack.append(frame.slots[instr.arg])
    frame.slots[instr.arg] = NULL


@stack_ops.handles("STORE_FAST")
def store_fast(machine: Machine, frame: Frame, instr: Instruction) -> None:
    value = frame.stack.pop()
    try:
        _replace(machine, frame, instr.arg, value)
    except Unsupported:
        frame.stack.append(value)
        raise


def _replace(machine: Machine, frame: Frame, slot: int, value: Any) -> None:
    before = frame.slots[slot]
    frame.slots[slot] = value
    if before is not NULL:
        try:
            machine.domain.drop(before, machine.frames)
        except Unsupported:
            frame.slots[slot] = before
            raise


@stack_ops.handles("DELETE_FAST")
def delete_fast(machine: Machine, frame: Frame, instr: Instruction) -> None:
    if frame.slots[instr.arg] is NULL:
        _unbound(machine, frame, instr)
    _replace(machine, frame, instr.arg, NULL)


@stack_ops.handles("MAKE_CELL")
def make_cell(machine: Machine, frame: Frame, instr: Instruction) -> None:
    frame.slots[instr.arg] = machine.domain.make_cell(frame.slots[instr.arg])


@stack_ops.handles("STORE_DEREF")
def store_deref(machine: Machine, frame: Frame, instr: Instruction) -> None:
    machine.domain.cell_set(frame.slots[instr.arg], frame.stack[-1])
    frame.stack.pop()


@stack_ops.handles("DELETE_DEREF")
def delete_deref(machine: Machine, frame: Frame, instr: Instruction) -> None:
    cell_content(machine, frame, instr.arg)
    machine.domain.cell_set(frame.slots[instr.arg], NULL)


def _unbound(machine: Machine, frame: Frame, instr: Instruction) -> None:
    name = frame.code.slots[instr.arg]
    raise Raised(machine.domain.python_error(UnboundLocalError, UNBOUND_LOCAL.format(name)))
