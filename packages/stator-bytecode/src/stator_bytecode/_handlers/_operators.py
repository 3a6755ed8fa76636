"""Opcodes of operators, items, branches and iteration."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stator_bytecode._codec._instruction import Instruction
from stator_bytecode._handler_table import HandlerTable
from stator_bytecode._handlers._stack import Handler
from stator_bytecode._machine._frame import Frame

if TYPE_CHECKING:
    from stator_bytecode._machine._machine import Machine

operator_ops: HandlerTable[str, Handler] = HandlerTable("opcode")


@operator_ops.handles("UNARY_OP")
def unary_op(machine: Machine, frame: Frame, instr: Instruction) -> int | None:
    value, domain = frame.stack.pop(), machine.domain
    return machine.finish(frame, instr, domain.truth(value) if instr.arg == "not" else domain.unary(instr.arg, value))


@operator_ops.handles("BINARY_OP")
def binary_op(machine: Machine, frame: Frame, instr: Instruction) -> int | None:
    right = frame.stack.pop()
    return machine.finish(frame, instr, machine.domain.binary(instr.arg, frame.stack.pop(), right))


@operator_ops.handles("COMPARE_OP")
def compare_op(machine: Machine, frame: Frame, instr: Instruction) -> int | None:
    right = frame.stack.pop()
    return machine.finish(frame, instr, machine.domain.compare(instr.arg[0], frame.stack.pop(), right))


@operator_ops.handles("IS_OP")
def is_op(machine: Machine, frame: Frame, instr: Instruction) -> int | None:
    right = frame.stack.pop()
    return machine.finish(frame, instr, machine.domain.identical(frame.stack.pop(), right, instr.arg))


@operator_ops.handles("CONTAINS_OP")
def contains_op(machine: Machine, frame: Frame, instr: Instruction) -> int | None:
    container = frame.stack.pop()
    return machine.finish(frame, instr, machine.domain.contains(container, frame.stack.pop(), instr.arg))


@operator_ops.handles("BINARY_SUBSCR")
def binary_subscr(machine: Machine, frame: Frame, instr: Instruction) -> int | None:
    key = frame.stack.pop()
    return machine.finish(frame, instr, machine.domain.get_item(frame.stack.pop(), key))


@operator_ops.handles("STORE_SUBSCR")
def store_subscr(machine: Machine, frame: Frame, instr: Instruction) -> int | None:
    new, container, key = frame.popn(3)
    return machine.finish(frame, instr, machine.domain.set_item(container, key, new))


@operator_ops.handles("DELETE_SUBSCR")
def delete_subscr(machine: Machine, frame: Frame, instr: Instruction) -> int | None:
    container, key = frame.popn(2)
    return machine.finish(frame, instr, machine.domain.delete_item(container, key))


@operator_ops.handles("BINARY_SLICE")
def binary_slice(machine: Machine, frame: Frame, instr: Instruction) -> int | None:
    container, start, stop = frame.popn(3)
    return machine.finish(frame, instr, machine.domain.get_item(container, machine.domain.build_slice([start, stop])))


@operator_ops.handles("STORE_SLICE")
def store_slice(machine: Machine, frame: Frame, instr: Instruction) -> int | None:
    new, container, start, stop = frame.popn(4)
    return machine.finish(
        frame, instr, machine.domain.set_item(container, machine.domain.build_slice([start, stop]), new)
    )


@operator_ops.handles("TO_BOOL", "POP_JUMP_IF_TRUE", "POP_JUMP_IF_FALSE")
def truth(machine: Machine, frame: Frame, instr: Instruction) -> int | None:
    return machine.finish(frame, instr, machine.domain.truth(frame.stack.pop()))


@operator_ops.handles("JUMP_IF_TRUE_OR_POP", "JUMP_IF_FALSE_OR_POP")
def truth_of_kept(machine: Machine, frame: Frame, instr: Instruction) -> int | None:
    return machine.finish(frame, instr, machine.domain.truth(frame.stack[-1]))


@operator_ops.handles("POP_JUMP_IF_NONE")
def pop_jump_if_none(machine: Machine, frame: Frame, instr: Instruction) -> int | None:
    return instr.target if machine.domain.is_none(frame.stack.pop()) else None


@operator_ops.handles("POP_JUMP_IF_NOT_NONE")
def pop_jump_if_not_none(machine: Machine, frame: Frame, instr: Instruction) -> int | None:
    return None if machine.domain.is_none(frame.stack.pop()) else instr.target


@operator_ops.handles("GET_ITER")
def get_iter(machine: Machine, frame: Frame, instr: Instruction) -> int | None:
    return machine.finish(frame, instr, machine.domain.get_iterator(frame.stack.pop()))


@operator_ops.handles("FOR_ITER")
def for_iter(machine: Machine, frame: Frame, instr: Instruction) -> int | None:
    return machine.finish(frame, instr, machine.domain.next_value(frame.stack[-1]))
