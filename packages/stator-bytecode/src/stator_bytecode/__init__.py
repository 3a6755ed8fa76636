"""CPython bytecode as a neutral instruction stream, an abstract interpreter over it, and continuations."""

from stator_bytecode._decode import decode
from stator_bytecode._handler_table import HandlerConflict, HandlerTable
from stator_bytecode._instruction import Code, Handler, Instruction, Positions
from stator_bytecode._raw import assemble, disassemble
from stator_bytecode._raw_instruction import Raw, RawHandler
from stator_bytecode._refused import REFUSED
from stator_bytecode._stack_effect import operands, results, stack_effect

__all__ = [
    "REFUSED",
    "Code",
    "Handler",
    "HandlerConflict",
    "HandlerTable",
    "Instruction",
    "Positions",
    "Raw",
    "RawHandler",
    "assemble",
    "decode",
    "disassemble",
    "operands",
    "results",
    "stack_effect",
]
