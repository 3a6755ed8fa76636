"""The handler of an opcode, and those that ask the Domain one question about their operands: most, as tables.

    asking({"BINARY_OP": lambda domain, frame, arg: domain.binary(arg, *frame.popn(2))})

The answer completes the instruction: see `_machine/_completion.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from stator_bytecode._codec._instruction import Instruction
from stator_bytecode._handler_table import HandlerTable
from stator_bytecode._machine._domain import Domain, Result
from stator_bytecode._machine._frame import Frame
from stator_bytecode._machine._machine import Handler, Machine

Ask = Callable[[Domain, Frame, Any], Result]
"""Takes the operands off the frame's stack; the last argument is that of the instruction."""


def asking(questions: Mapping[str, Ask]) -> HandlerTable[str, Handler]:
    return HandlerTable("opcode", {op: _asking(op, ask) for op, ask in questions.items()})


def _asking(op: str, ask: Ask) -> Handler:
    def run(machine: Machine, frame: Frame, instr: Instruction) -> int | None:
        return machine.finish(frame, instr, ask(machine.domain, frame, instr.arg))

    run.__qualname__, run.__doc__ = f"asking[{op}]", ask.__doc__
    return run
