"""Opcodes of `match` statements."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stator_bytecode._codec._instruction import Instruction
from stator_bytecode._handler_table import HandlerTable
from stator_bytecode._handlers._stack import Handler
from stator_bytecode._machine._frame import Frame

if TYPE_CHECKING:
    from stator_bytecode._machine._machine import Machine

match_ops: HandlerTable[str, Handler] = HandlerTable("opcode")


@match_ops.handles("MATCH_CLASS")
def match_class(machine: Machine, frame: Frame, instr: Instruction) -> int | None:
    subject, cls, names = frame.popn(3)
    return machine.finish(frame, instr, machine.domain.match_class(subject, cls, instr.arg, names))


@match_ops.handles("MATCH_MAPPING")
def match_mapping(machine: Machine, frame: Frame, instr: Instruction) -> int | None:
    return machine.finish(frame, instr, machine.domain.match_mapping(frame.stack[-1]))


@match_ops.handles("MATCH_SEQUENCE")
def match_sequence(machine: Machine, frame: Frame, instr: Instruction) -> int | None:
    return machine.finish(frame, instr, machine.domain.match_sequence(frame.stack[-1]))


@match_ops.handles("MATCH_KEYS")
def match_keys(machine: Machine, frame: Frame, instr: Instruction) -> int | None:
    subject, keys = frame.stack[-2:]
    return machine.finish(frame, instr, machine.domain.match_keys(subject, keys))


@match_ops.handles("GET_LEN")
def get_len(machine: Machine, frame: Frame, instr: Instruction) -> int | None:
    return machine.finish(frame, instr, machine.domain.length(frame.stack[-1]))
