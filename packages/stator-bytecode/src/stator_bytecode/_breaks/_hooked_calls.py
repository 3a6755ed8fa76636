"""A copy of a function's code in which each callable passes through a function before it is called.

    f(x)    =>    hook(f)(x)

Lines, names, jumps and handlers stay as they are. Methods are bound before the call, so that the
hook gets what `x.method` gives. Comprehensions that have code of their own are copied, too. Calls
that the compiler makes for `with` statements and decorators are left alone.
"""

import dis
from collections.abc import Callable, Sequence, Set
from types import CodeType
from typing import Any

from stator_bytecode._breaks._glue import Glue
from stator_bytecode._codec._decode import decode
from stator_bytecode._codec._instruction import Code, Instruction
from stator_bytecode._codec._raw import assemble, disassemble
from stator_bytecode._codec._raw_instruction import Raw
from stator_bytecode._codec._stack_effect import operands
from stator_bytecode._machine._check import stack_depths

COMPREHENSIONS = frozenset({"<listcomp>", "<setcomp>", "<dictcomp>", "<genexpr>"})


def with_hooked_calls(
    code: CodeType, hook: Callable[[Any], Any], inner: Set[str] = COMPREHENSIONS
) -> CodeType:
    """Return a code object like `code` that calls `hook(callable)` in place of each callable.

    `inner` are the names of the functions in it whose calls are hooked, too.
    """
    decoded, raws = decode(code), disassemble(code)
    glue = Glue(code, (None, None, None, None))
    glue.consts = [_copied(constant, hook, inner) for constant in code.co_consts]
    inserted: dict[Raw, Raw] = {}
    calls = {instr.raw[0]: instr for instr in decoded.instructions if instr.op in _OPERANDS}
    for index, raw in enumerate(raws):
        if (call := calls.get(index)) is not None and _has_null(decoded, call):
            _write_hook(glue, raw, decoded, call, hook, inserted)
        glue.add(raw)
        if (load := _method_load(raw)) is not None:
            _bind_method(glue, raw, load, decoded.null_first)
    for raw in raws:
        raw.target = inserted.get(raw.target, raw.target) if raw.target is not None else None
    return assemble(glue.raws, code, co_consts=tuple(glue.consts))


def _copied(constant: Any, hook: Callable[[Any], Any], inner: Set[str]) -> Any:
    is_inner = isinstance(constant, CodeType) and constant.co_name in inner
    return with_hooked_calls(constant, hook, inner) if is_inner else constant


_OPERANDS: dict[str, Callable[[Any], int]] = {
    "CALL": lambda arg: arg[0],
    "CALL_FUNCTION_EX": lambda arg: 1 + arg,
}
"""The number of stack slots above callable and NULL, for each instruction that calls."""


def _has_null(code: Code, call: Instruction) -> bool:
    """Return True if the callable is the second of the two slots below the arguments.

    It is where a call has no `self` of its own. The first layout puts the callable of a decorator,
    and the `__exit__` of a `with` statement, in the place of the NULL.
    """
    if not code.null_first or call.op == "CALL_FUNCTION_EX":
        return True
    depths = stack_depths(code)
    depth = depths[call.index]
    if depth is None:
        return False
    place = depth - _OPERANDS[call.op](call.arg) - 2
    before: Sequence[Instruction] = code.instructions[: call.index]
    for instr in reversed(before):
        reached = depths[instr.index]
        if reached is not None and reached - operands(instr) <= place:
            pushes_two = instr.op in ("LOAD_GLOBAL", "LOAD_SUPER_ATTR") and instr.arg[1]
            return instr.op in ("PUSH_NULL", "LOAD_METHOD") or bool(pushes_two)
    return False


def _write_hook(
    glue: Glue,
    first: Raw,
    code: Code,
    call: Instruction,
    hook: Callable[[Any], Any],
    inserted: dict[Raw, Raw],
) -> None:
    """Put `hook(callable)` in the place of the callable."""
    glue.positions, glue.handler = first.positions, first.handler
    depth = _OPERANDS[call.op](call.arg) + (1 if code.null_first else 2)
    start = len(glue.raws)
    glue.call(hook, lambda: glue.emit("COPY", depth + 2))
    glue.emit("SWAP", depth + 1)
    glue.emit("POP_TOP")
    inserted[first] = glue.raws[start]


def _method_load(raw: Raw) -> tuple[int, int] | None:
    """Return opcode and argument that load the attribute alone, for a load of a method."""
    if raw.name == "LOAD_METHOD":
        return dis.opmap["LOAD_ATTR"], raw.arg
    is_flagged = raw.name == "LOAD_SUPER_ATTR" or (raw.name == "LOAD_ATTR" and _ATTR_HAS_FLAG)
    return (raw.opcode, raw.arg - 1) if is_flagged and raw.arg & 1 else None


_ATTR_HAS_FLAG = "PRECALL" not in dis.opmap
"""Since 3.12 the first bit of the argument of LOAD_ATTR is set where a method is loaded."""


def _bind_method(glue: Glue, raw: Raw, load: tuple[int, int], null_first: bool) -> None:
    """Load the bound method, and a NULL beside it."""
    glue.positions, glue.handler = raw.positions, raw.handler
    raw.opcode, raw.arg = load
    glue.emit("PUSH_NULL")
    if null_first:
        glue.emit("SWAP", 2)
