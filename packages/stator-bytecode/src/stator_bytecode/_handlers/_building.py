"""Opcodes that build containers and strings, add to them, and take them apart."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stator_bytecode._codec._instruction import Instruction
from stator_bytecode._handler_table import HandlerTable
from stator_bytecode._handlers._stack import Handler
from stator_bytecode._machine._frame import Frame

if TYPE_CHECKING:
    from stator_bytecode._machine._machine import Machine

building_ops: HandlerTable[str, Handler] = HandlerTable("opcode")


@building_ops.handles("BUILD_TUPLE")
def build_tuple(machine: Machine, frame: Frame, instr: Instruction) -> None:
    stack, count = frame.stack, instr.arg
    built = machine.domain.build_tuple(stack[len(stack) - count :])
    del stack[len(stack) - count :]
    stack.append(built)


@building_ops.handles("BUILD_LIST")
def build_list(machine: Machine, frame: Frame, instr: Instruction) -> int | None:
    return machine.finish(frame, instr, machine.domain.build_list(frame.popn(instr.arg)))


@building_ops.handles("BUILD_SET")
def build_set(machine: Machine, frame: Frame, instr: Instruction) -> int | None:
    return machine.finish(frame, instr, machine.domain.build_set(frame.popn(instr.arg)))


@building_ops.handles("BUILD_STRING")
def build_string(machine: Machine, frame: Frame, instr: Instruction) -> int | None:
    return machine.finish(frame, instr, machine.domain.build_string(frame.popn(instr.arg)))


@building_ops.handles("BUILD_SLICE")
def build_slice(machine: Machine, frame: Frame, instr: Instruction) -> int | None:
    return machine.finish(frame, instr, machine.domain.build_slice(frame.popn(instr.arg)))


@building_ops.handles("BUILD_MAP")
def build_map(machine: Machine, frame: Frame, instr: Instruction) -> int | None:
    items = frame.popn(2 * instr.arg)
    return machine.finish(frame, instr, machine.domain.build_map(items[::2], items[1::2]))


@building_ops.handles("BUILD_CONST_KEY_MAP")
def build_const_key_map(machine: Machine, frame: Frame, instr: Instruction) -> int | None:
    keys = frame.stack.pop()
    return machine.finish(frame, instr, machine.domain.build_const_key_map(keys, frame.popn(instr.arg)))


@building_ops.handles("LIST_APPEND")
def list_append(machine: Machine, frame: Frame, instr: Instruction) -> int | None:
    item = frame.stack.pop()
    return machine.finish(frame, instr, machine.domain.list_append(frame.stack[-instr.arg], item))


@building_ops.handles("SET_ADD")
def set_add(machine: Machine, frame: Frame, instr: Instruction) -> int | None:
    item = frame.stack.pop()
    return machine.finish(frame, instr, machine.domain.set_add(frame.stack[-instr.arg], item))


@building_ops.handles("MAP_ADD")
def map_add(machine: Machine, frame: Frame, instr: Instruction) -> int | None:
    key, value = frame.popn(2)
    return machine.finish(frame, instr, machine.domain.map_add(frame.stack[-instr.arg], key, value))


@building_ops.handles("LIST_EXTEND")
def list_extend(machine: Machine, frame: Frame, instr: Instruction) -> int | None:
    iterable = frame.stack.pop()
    return machine.finish(frame, instr, machine.domain.list_extend(frame.stack[-instr.arg], iterable))


@building_ops.handles("SET_UPDATE")
def set_update(machine: Machine, frame: Frame, instr: Instruction) -> int | None:
    iterable = frame.stack.pop()
    return machine.finish(frame, instr, machine.domain.set_update(frame.stack[-instr.arg], iterable))


@building_ops.handles("DICT_UPDATE")
def dict_update(machine: Machine, frame: Frame, instr: Instruction) -> int | None:
    mapping = frame.stack.pop()
    return machine.finish(frame, instr, machine.domain.dict_update(frame.stack[-instr.arg], mapping))


@building_ops.handles("DICT_MERGE")
def dict_merge(machine: Machine, frame: Frame, instr: Instruction) -> int | None:
    """`[NULL, fn, args, dict]` or `[fn, NULL, args, dict]`: the error names the function."""
    mapping = frame.stack.pop()
    function = frame.stack[-(instr.arg + (2 if frame.code.null_first else 3))]
    return machine.finish(frame, instr, machine.domain.dict_merge(frame.stack[-instr.arg], mapping, function))


@building_ops.handles("LIST_TO_TUPLE")
def list_to_tuple(machine: Machine, frame: Frame, instr: Instruction) -> None:
    frame.stack[-1] = machine.domain.list_to_tuple(frame.stack[-1])


@building_ops.handles("UNPACK_SEQUENCE")
def unpack_sequence(machine: Machine, frame: Frame, instr: Instruction) -> int | None:
    return machine.finish(frame, instr, machine.domain.unpack(frame.stack.pop(), instr.arg))


@building_ops.handles("UNPACK_EX")
def unpack_ex(machine: Machine, frame: Frame, instr: Instruction) -> int | None:
    before, after = instr.arg
    return machine.finish(frame, instr, machine.domain.unpack_ex(frame.stack.pop(), before, after))


@building_ops.handles("FORMAT_VALUE")
def format_value(machine: Machine, frame: Frame, instr: Instruction) -> int | None:
    conversion, has_spec = instr.arg
    spec = frame.stack.pop() if has_spec else None
    return machine.finish(frame, instr, machine.domain.format_value(frame.stack.pop(), conversion, spec))


@building_ops.handles("CONVERT_VALUE")
def convert_value(machine: Machine, frame: Frame, instr: Instruction) -> int | None:
    convert = machine.domain.constant(_CONVERTERS[instr.arg])
    return machine.finish(frame, instr, machine.domain.call(convert, [frame.stack.pop()], {}))


_CONVERTERS = {"s": str, "r": repr, "a": ascii}
