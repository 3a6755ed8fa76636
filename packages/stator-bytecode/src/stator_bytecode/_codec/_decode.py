"""Code objects to the neutral instruction stream.

One pass over the raw instructions applies the dialect's rules; a second resolves jump targets and
handlers, which are then neutral indices. A code object is decoded once while its `Code` is in use,
or was among the last few thousand.

    KW_NAMES 2, PRECALL 3, CALL 3      =>  CALL (3, ("key",))            CPython 3.11
    LOAD_CONST ("key",), CALL_KW 3     =>  CALL (3, ("key",))            CPython 3.13
    MAKE_FUNCTION, SET_FUNCTION_ATTRIBUTE 8  =>  MAKE_FUNCTION 8         CPython 3.13
"""

from collections import deque
from types import CodeType
from typing import Any
from weakref import WeakValueDictionary

from stator_bytecode._codec._dialect import Scope
from stator_bytecode._codec._instruction import Code, ExceptionHandler, Instruction
from stator_bytecode._codec._raw import disassemble
from stator_bytecode._codec._raw_instruction import Raw, RawHandler
from stator_bytecode._codec._tables import NO_JUMPS, OPCODES
from stator_bytecode.errors import Unsupported

# Keyed by id, since code objects compare by value. A Code keeps its code object alive, so as long
# as the entry is there the id is taken; holding codes weakly instead would keep every entry alive
# through its own `Code.raw`.
_decoded: WeakValueDictionary[int, Code] = WeakValueDictionary()
_recent: deque[Code] = deque(maxlen=4096)


def decode(code: CodeType) -> Code:
    """The neutral form of `code`; the same object each time while anything holds it."""
    if (decoded := _decoded.get(id(code))) is None:
        decoded = _decoded.setdefault(id(code), _decode(code))
        _recent.append(decoded)
    return decoded


def _decode(code: CodeType) -> Code:
    raws = disassemble(code)
    slots = slot_names(code)
    if cells := cell_slots(code, slots):
        # Without those that an inlined comprehension takes over: they hold a cell or a value, at
        # different times.
        cells = cells.difference(raw.arg for raw in raws if raw.name == "LOAD_FAST_AND_CLEAR")
    scope = Scope(code.co_names, code.co_consts, cells)
    drafts, starts = _apply_rules(raws, scope)
    instructions = _resolve(drafts, raws, starts)
    return Code(code, instructions, slots, len(code.co_freevars), OPCODES.dialect.null_first)


def slot_names(code: CodeType) -> tuple[str, ...]:
    """An argument that is a cell has one slot for both; a free variable always has its own."""
    cells = (
        tuple(name for name in code.co_cellvars if name not in code.co_varnames)
        if code.co_cellvars
        else ()
    )
    return code.co_varnames + cells + code.co_freevars


def cell_slots(code: CodeType, slots: tuple[str, ...]) -> frozenset[int]:
    """Slots that hold a cell, where they hold anything."""
    return frozenset(
        {
            *map(slots.index, code.co_cellvars),
            *range(len(slots) - len(code.co_freevars), len(slots)),
        }
    )


_Draft = tuple[str, Any, int, int, int]
"""Op, argument, leading raw instruction, raw start and stop."""


def _apply_rules(raws: list[Raw], scope: Scope) -> tuple[list[_Draft], list[int]]:
    """Neutral instructions without targets, and the neutral index that each raw one starts at (-1:
    in the middle)."""
    drafts: list[_Draft] = []
    starts: list[int] = []
    rules = OPCODES.rules
    count = len(raws)
    index = 0

    while index < count:
        raw = raws[index]
        starts.append(len(drafts))
        rule = rules[raw.opcode]
        if type(rule) is tuple:
            for op, resolve in rule:
                drafts.append((op, resolve(scope, raw.arg), index, index, index + 1))
            index += 1
        elif rule is not None:
            # a Fuse
            stop, lead, op_or_none, arg = rule(raws, index, scope)  # type: ignore[operator]
            if op_or_none is not None:
                drafts.append((op_or_none, arg, lead, index, stop))
            starts.extend([-1] * (stop - index - 1))
            index = stop
        else:
            raise Unsupported(
                "unexpected-bytecode", f"{raw.name} without the instruction that belongs before it"
            )

    return drafts, starts


def _resolve(drafts: list[_Draft], raws: list[Raw], starts: list[int]) -> tuple[Instruction, ...]:
    for index, raw in enumerate(raws):
        raw.index = index
    handlers: dict[RawHandler | None, ExceptionHandler | None] = {None: None}
    instructions = []

    for index, (op, arg, lead, start, stop) in enumerate(drafts):
        raw = raws[lead]
        if (handler := raw.handler) is not None and handler not in handlers:
            handlers[handler] = ExceptionHandler(
                _neutral_index(handler.target, starts), handler.depth, handler.lasti
            )
        target = -1
        if raw.target is not None and op not in NO_JUMPS:
            target = _neutral_index(raw.target, starts)
        instructions.append(
            Instruction(op, arg, index, target, handlers[handler], raw.positions, (start, stop))
        )

    return tuple(instructions)


def _neutral_index(target: Raw, starts: list[int]) -> int:
    index = starts[target.index]
    if index < 0:
        raise Unsupported(
            "unexpected-bytecode", f"a jump to {target!r}, into the middle of one operation"
        )
    return index
