"""Handlers that pass their operands to one operation of the Domain, as tables: those of most
opcodes.

    domain_handlers({"BINARY_OP": lambda domain, frame, arg: domain.binary(arg, *frame.popn(2))})

The result completes the instruction: see `_machine/_completion.py`.
"""

from collections.abc import Callable, Mapping
from typing import Any

from stator_bytecode._codec._instruction import Instruction
from stator_bytecode._handler_table import HandlerTable
from stator_bytecode._machine._domain import Domain, Result
from stator_bytecode._machine._frame import Frame
from stator_bytecode._machine._machine import Machine, OpcodeHandler

DomainCall = Callable[[Domain, Frame, Any], Result]
"""Take the operands off the frame's stack and return the operation's result.

The last argument is that of the instruction."""


def domain_handlers(calls: Mapping[str, DomainCall]) -> HandlerTable[str, OpcodeHandler]:
    return HandlerTable("opcode", {op: _domain_handler(op, call) for op, call in calls.items()})


def _domain_handler(op: str, call: DomainCall) -> OpcodeHandler:
    def run(machine: Machine, frame: Frame, instr: Instruction) -> int | None:
        return machine.finish(frame, instr, call(machine.domain, frame, instr.arg))

    run.__qualname__, run.__doc__ = f"domain_handlers[{op}]", call.__doc__
    return run
