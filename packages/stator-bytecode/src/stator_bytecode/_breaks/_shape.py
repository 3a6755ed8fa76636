"""The stack operands and results of a native step: the layout of a step stub.

FOR_ITER        uses [iterator]; goes on with it kept and one value made;
                jumps with nothing kept, nothing made
LIST_APPEND 3   uses the list (deep in the stack) and the item; keeps the list
"""

import attrs

from stator_bytecode._breaks._layout import FrameLayout
from stator_bytecode._codec._instruction import Instruction
from stator_bytecode._codec._stack_effect import operands, results

UNCHANGED = frozenset(
    {"LIST_APPEND", "SET_ADD", "MAP_ADD", "LIST_EXTEND", "SET_UPDATE", "DICT_UPDATE"}
)
"""Operations that change a container which lies anywhere below. In the stub it lies next to the
operand."""

_LOOKS_AT_ONE = (
    "GET_LEN",
    "MATCH_MAPPING",
    "MATCH_SEQUENCE",
    "IMPORT_FROM",
    "CHECK_EXC_MATCH",
)
_KEPT: dict[str, tuple[int, int]] = {
    **dict.fromkeys(_LOOKS_AT_ONE, (1, 0)),
    "MATCH_KEYS": (2, 0),
    **dict.fromkeys(("JUMP_IF_TRUE_OR_POP", "JUMP_IF_FALSE_OR_POP"), (0, 1)),
}
"""The number of lowest operands that stay as they were, when the instruction goes on and when it
jumps."""

_MAKES_ITERATOR = ("GET_ITER", "GET_YIELD_FROM_ITER", "CLEANUP_THROW")
"""Operations that push an iterator, or a None in the place of one, with an empty second slot if it
has two."""


@attrs.frozen
class StepEffect:
    """Operands used by a native step, how many are kept, and values made, per exit."""

    used: tuple[int, ...]
    """Depths from the top (1 is the top) of the operands pushed, lowest first."""
    kept: tuple[int, int]
    made: tuple[int, int]
    jumps: bool


def shapes_of(instr: Instruction) -> StepEffect:
    op, arg = instr.op, instr.arg
    count = operands(instr)
    if op in UNCHANGED:
        added = 2 if op == "MAP_ADD" else 1
        return StepEffect((arg + added, *range(added, 0, -1)), (1, 0), (0, 0), False)

    used = tuple(range(count, 0, -1))
    if op == "DICT_MERGE":
        return StepEffect(used, (count - 1, 0), (0, 0), False)
    if op == "SEND":
        return StepEffect(used, (max(arg, 1), arg), (1, 1), True)
    if op == "FOR_ITER":
        return StepEffect(used, (arg, 0), (1, 0), True)
    if op == "RERAISE":
        return StepEffect((1,), (0, 0), (0, 0), False)
    kept = (count, 0) if op == "WITH_EXCEPT_START" else _KEPT.get(op, (0, 0))
    made = (values_made(instr) - kept[0], results(instr, True) - kept[1])
    return StepEffect(used, kept, made, instr.target >= 0)


def values_made(instr: Instruction) -> int:
    """Return the number of values that the instruction makes.

    A NULL that it pushes besides is not counted: the stub omits it, since it cannot be returned.
    """
    return results(instr, False) - pushes_null(instr)


def pushes_null(instr: Instruction) -> bool:
    if instr.op == "LOAD_GLOBAL":
        return instr.arg[1] is not None
    if instr.op == "BEFORE_WITH":
        return bool(instr.arg)
    if instr.op in _MAKES_ITERATOR:
        return bool(instr.arg == 2)
    return instr.op == "LOAD_METHOD" or (instr.op == "LOAD_SUPER_ATTR" and bool(instr.arg[1]))


def null_of(layout: FrameLayout) -> str | None:
    """Return the side of the value on which the instruction pushes a NULL, if it does.

    BEFORE_WITH and CLEANUP_THROW have it between their two values.
    """
    instr = layout.instruction
    if not pushes_null(instr):
        return None
    if instr.op == "LOAD_GLOBAL":
        return str(instr.arg[1])
    if instr.op in ("BEFORE_WITH", "CLEANUP_THROW"):
        return "between"
    if instr.op in _MAKES_ITERATOR:
        return "after"
    return "before" if layout.code.null_first else "after"
