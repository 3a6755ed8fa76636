"""Opcodes of names that live in mappings: globals, class bodies, imports, and of attributes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stator_bytecode._codec._instruction import Instruction
from stator_bytecode._handler_table import HandlerTable
from stator_bytecode._handlers._stack import Handler
from stator_bytecode._machine._frame import Frame

if TYPE_CHECKING:
    from stator_bytecode._machine._machine import Machine

name_ops: HandlerTable[str, Handler] = HandlerTable("opcode")


@name_ops.handles("LOAD_GLOBAL")
def load_global(machine: Machine, frame: Frame, instr: Instruction) -> int | None:
    return machine.finish(frame, instr, machine.domain.load_global(frame, instr.arg[0]))


@name_ops.handles("STORE_GLOBAL")
def store_global(machine: Machine, frame: Frame, instr: Instruction) -> int | None:
    return machine.finish(frame, instr, machine.domain.store_global(frame, instr.arg, frame.stack.pop()))


@name_ops.handles("DELETE_GLOBAL")
def delete_global(machine: Machine, frame: Frame, instr: Instruction) -> int | None:
    return machine.finish(frame, instr, machine.domain.delete_global(frame, instr.arg))


@name_ops.handles("LOAD_NAME")
def load_name(machine: Machine, frame: Frame, instr: Instruction) -> int | None:
    return machine.finish(frame, instr, machine.domain.load_name(frame, instr.arg))


@name_ops.handles("STORE_NAME")
def store_name(machine: Machine, frame: Frame, instr: Instruction) -> int | None:
    return machine.finish(frame, instr, machine.domain.store_name(frame, instr.arg, frame.stack.pop()))


@name_ops.handles("DELETE_NAME")
def delete_name(machine: Machine, frame: Frame, instr: Instruction) -> int | None:
    return machine.finish(frame, instr, machine.domain.delete_name(frame, instr.arg))


@name_ops.handles("LOAD_LOCALS")
def load_locals(machine: Machine, frame: Frame, instr: Instruction) -> int | None:
    return machine.finish(frame, instr, machine.domain.load_locals(frame))


@name_ops.handles("LOAD_CLASSDEREF")
def load_classderef(machine: Machine, frame: Frame, instr: Instruction) -> int | None:
    name = frame.code.slots[instr.arg]
    return machine.finish(frame, instr, machine.domain.load_from_mapping(frame.names, name))


@name_ops.handles("LOAD_FROM_DICT_OR_DEREF")
def load_from_dict_or_deref(machine: Machine, frame: Frame, instr: Instruction) -> int | None:
    name = frame.code.slots[instr.arg]
    return machine.finish(frame, instr, machine.domain.load_from_mapping(frame.stack.pop(), name))


@name_ops.handles("LOAD_FROM_DICT_OR_GLOBALS")
def load_from_dict_or_globals(machine: Machine, frame: Frame, instr: Instruction) -> int | None:
    return machine.finish(frame, instr, machine.domain.load_from_mapping(frame.stack.pop(), instr.arg))


@name_ops.handles("SETUP_ANNOTATIONS")
def setup_annotations(machine: Machine, frame: Frame, instr: Instruction) -> int | None:
    return machine.finish(frame, instr, machine.domain.load_from_mapping(frame.names, "__annotations__"))


@name_ops.handles("IMPORT_NAME")
def import_name(machine: Machine, frame: Frame, instr: Instruction) -> int | None:
    fromlist, level = frame.stack.pop(), frame.stack.pop()
    return machine.finish(frame, instr, machine.domain.import_name(frame, instr.arg, fromlist, level))


@name_ops.handles("IMPORT_FROM")
def import_from(machine: Machine, frame: Frame, instr: Instruction) -> int | None:
    return machine.finish(frame, instr, machine.domain.import_from(frame.stack[-1], instr.arg))


@name_ops.handles("IMPORT_STAR")
def import_star(machine: Machine, frame: Frame, instr: Instruction) -> int | None:
    return machine.finish(frame, instr, machine.domain.import_star(frame, frame.stack.pop()))


@name_ops.handles("LOAD_ATTR")
def load_attr(machine: Machine, frame: Frame, instr: Instruction) -> int | None:
    return machine.finish(frame, instr, machine.domain.get_attribute(frame.stack.pop(), instr.arg))


@name_ops.handles("LOAD_METHOD")
def load_method(machine: Machine, frame: Frame, instr: Instruction) -> int | None:
    return machine.finish(frame, instr, machine.domain.load_method(frame.stack.pop(), instr.arg))


@name_ops.handles("LOAD_SUPER_ATTR")
def load_super_attr(machine: Machine, frame: Frame, instr: Instruction) -> int | None:
    super_fn, cls, receiver = frame.popn(3)
    return machine.finish(frame, instr, machine.domain.load_super(frame, super_fn, cls, receiver, instr.arg[0]))


@name_ops.handles("STORE_ATTR")
def store_attr(machine: Machine, frame: Frame, instr: Instruction) -> int | None:
    new, value = frame.popn(2)
    return machine.finish(frame, instr, machine.domain.set_attribute(value, instr.arg, new))


@name_ops.handles("DELETE_ATTR")
def delete_attr(machine: Machine, frame: Frame, instr: Instruction) -> int | None:
    return machine.finish(frame, instr, machine.domain.delete_attribute(frame.stack.pop(), instr.arg))
