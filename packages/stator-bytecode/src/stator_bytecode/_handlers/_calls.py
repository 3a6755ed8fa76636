"""Opcodes that call, and that make functions and classes.

Layouts: `[NULL|method, fn|self, args]` where `Code.null_first`, else `[fn, NULL|self, args]`.
"""

from types import CodeType

from stator_bytecode._codec._instruction import Instruction
from stator_bytecode._handlers._domain_handler import domain_handlers
from stator_bytecode._machine._domain import Domain, Result, V
from stator_bytecode._machine._frame import NULL, Frame
from stator_bytecode._machine._machine import Machine
from stator_bytecode.errors import InternalError

PARTS = {1: "defaults", 2: "kwdefaults", 4: "annotations", 16: "annotate", 8: "closure"}
"""The flags of MAKE_FUNCTION, in the order in which the parts are pushed."""


def call_function_ex(domain: Domain, frame: Frame, has_kwargs: bool) -> Result:
    """The slot of the keyword arguments may hold a NULL (since 3.14)."""
    kwargs = frame.stack.pop() if has_kwargs else NULL
    lower, upper, args = frame.popn(3)
    function = upper if frame.code.null_first else lower
    return domain.call_spread(function, args, None if kwargs is NULL else kwargs)


call_ops = domain_handlers(
    {
        "CALL_FUNCTION_EX": call_function_ex,
        "LOAD_BUILD_CLASS": lambda domain, frame, _: domain.build_class(frame),
    }
)


@call_ops.handles("CALL")
def call(machine: Machine, frame: Frame, instr: Instruction) -> int | None:
    argc, names = instr.arg
    stack = frame.stack
    start = len(stack) - argc - 2
    function, args = _callee(frame, stack[start], stack[start + 1], stack[start + 2 :])
    del stack[start:]
    kwargs: dict[str, V] = {}
    if names:
        split = len(args) - len(names)
        kwargs = dict(zip(names, args[split:], strict=True))
        del args[split:]
    return machine.finish(frame, instr, machine.domain.call(function, args, kwargs))


def _callee(frame: Frame, lower: V, upper: V, args: list[V]) -> tuple[V, list[V]]:
    if frame.code.null_first and lower is NULL:
        return upper, args
    if upper is NULL:
        return lower, args
    return lower, [upper, *args]


@call_ops.handles("MAKE_FUNCTION")
def make_function(machine: Machine, frame: Frame, instr: Instruction) -> int | None:
    frame.stack.pop()
    parts = {}
    for flag in reversed(PARTS):
        if instr.arg & flag:
            parts[PARTS[flag]] = frame.stack.pop()
    return machine.finish(
        frame, instr, machine.domain.make_function(frame, _code_of(frame, instr), parts)
    )


def _code_of(frame: Frame, instr: Instruction) -> CodeType:
    """The value on the stack is the Domain's; compilers always load the code object just before."""
    if not isinstance(code := frame.code.instructions[instr.index - 1].arg, CodeType):
        raise InternalError("MAKE_FUNCTION does not follow the load of its code object")
    return code
