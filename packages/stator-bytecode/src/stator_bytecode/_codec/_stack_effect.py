"""The stack operands and results of each neutral operation, for the native layout.

`operands` counts the slots that an instruction consumes *and* reads: it needs that many on the
stack. `results` counts the slots that it leaves in their place. Drawn for a CALL with two
arguments, in either layout:

    ... [NULL, fn, a, b]   operands 4   =>   ... [value]   results 1   stack_effect -3
"""

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from stator_bytecode._codec._instruction import Instruction

Count = int | Callable[[Any], int]
"""A number, or how it follows from the argument."""


class Effect(NamedTuple):
    operands: Count
    results: Count
    jump_results: Count = 0
    """Results of an instruction that jumps."""


def _number(arg: int) -> int:
    return arg


def _plus(extra: int) -> Callable[[int], int]:
    return lambda arg: arg + extra


def _receiver_and_value(arg: int) -> int:
    return max(arg, 1) + 1


def _each(effect: Effect, ops: str) -> dict[str, Effect]:
    return dict.fromkeys(ops.split(), effect)


EFFECTS: Mapping[str, Effect] = {
    # stack, constants, locals, cells
    **_each(
        Effect(0, 0), "NOP MAKE_CELL COPY_FREE_VARS DELETE_FAST DELETE_DEREF SETUP_ANNOTATIONS"
    ),
    **_each(
        Effect(0, 1), "PUSH_NULL LOAD_CONST LOAD_FAST LOAD_FAST_AND_CLEAR LOAD_CLOSURE LOAD_DEREF"
    ),
    **_each(Effect(1, 0), "POP_TOP STORE_FAST STORE_DEREF"),
    "COPY": Effect(_number, _plus(1)),
    "SWAP": Effect(_number, _number),
    # names, attributes
    **_each(Effect(0, 1), "LOAD_NAME LOAD_LOCALS LOAD_CLASSDEREF LOAD_BUILD_CLASS"),
    **_each(Effect(1, 1), "LOAD_FROM_DICT_OR_DEREF LOAD_FROM_DICT_OR_GLOBALS LOAD_ATTR"),
    **_each(Effect(1, 0), "STORE_GLOBAL STORE_NAME DELETE_ATTR"),
    **_each(Effect(0, 0), "DELETE_GLOBAL DELETE_NAME"),
    "LOAD_GLOBAL": Effect(0, lambda arg: 1 if arg[1] is None else 2),
    "LOAD_METHOD": Effect(1, 2),
    "LOAD_SUPER_ATTR": Effect(3, lambda arg: 2 if arg[1] else 1),
    "STORE_ATTR": Effect(2, 0),
    # operators
    **_each(Effect(1, 1), "UNARY_OP TO_BOOL"),
    **_each(Effect(2, 1), "BINARY_OP BINARY_SUBSCR COMPARE_OP IS_OP CONTAINS_OP"),
    "STORE_SUBSCR": Effect(3, 0),
    "DELETE_SUBSCR": Effect(2, 0),
    "BINARY_SLICE": Effect(3, 1),
    "STORE_SLICE": Effect(4, 0),
    # jumps, iteration
    "JUMP": Effect(0, 0),
    **_each(
        Effect(1, 0), "POP_JUMP_IF_TRUE POP_JUMP_IF_FALSE POP_JUMP_IF_NONE POP_JUMP_IF_NOT_NONE"
    ),
    **_each(Effect(1, 0, 1), "JUMP_IF_TRUE_OR_POP JUMP_IF_FALSE_OR_POP"),
    # the argument is the number of slots that the iterator has
    **_each(Effect(1, _number), "GET_ITER GET_YIELD_FROM_ITER"),
    "FOR_ITER": Effect(_number, _plus(1), 0),
    # building: the container of the adding ones lies `arg` deep once the added is popped
    **_each(Effect(_number, 1), "BUILD_TUPLE BUILD_LIST BUILD_SET BUILD_STRING BUILD_SLICE"),
    "BUILD_MAP": Effect(lambda arg: 2 * arg, 1),
    "BUILD_CONST_KEY_MAP": Effect(_plus(1), 1),
    **_each(Effect(_plus(1), _number), "LIST_APPEND SET_ADD LIST_EXTEND SET_UPDATE DICT_UPDATE"),
    "MAP_ADD": Effect(_plus(2), _number),
    # The error message of DICT_MERGE names the callable, which lies under the positional arguments
    # (and a NULL).
    "DICT_MERGE": Effect(_plus(4), _plus(3)),
    "LIST_TO_TUPLE": Effect(1, 1),
    "UNPACK_SEQUENCE": Effect(1, _number),
    "UNPACK_EX": Effect(1, lambda arg: arg[0] + 1 + arg[1]),
    "FORMAT_VALUE": Effect(lambda arg: 2 if arg[1] else 1, 1),
    "CONVERT_VALUE": Effect(1, 1),
    "BUILD_INTERPOLATION": Effect(lambda arg: 3 if arg[1] else 2, 1),
    "BUILD_TEMPLATE": Effect(2, 1),
    # calls, functions, classes
    "CALL": Effect(lambda arg: arg[0] + 2, 1),
    "CALL_FUNCTION_EX": Effect(lambda arg: 4 if arg else 3, 1),
    "MAKE_FUNCTION": Effect(lambda arg: 1 + arg.bit_count(), 1),
    **_each(Effect(2, 1), "IMPORT_NAME IMPORT_LAZILY"),
    "IMPORT_FROM": Effect(1, 2),
    "IMPORT_STAR": Effect(1, 0),
    # exceptions, with
    "RAISE_VARARGS": Effect(_number, 0),
    "RERAISE": Effect(_plus(1), _number),
    "PUSH_EXC_INFO": Effect(1, 2),
    "POP_EXCEPT": Effect(1, 0),
    **_each(Effect(2, 2), "CHECK_EXC_MATCH CHECK_EG_MATCH"),
    "PREP_RERAISE_STAR": Effect(2, 1),
    # where `__exit__` has two slots: itself or a function, and NULL or its first argument
    "WITH_EXCEPT_START": Effect(lambda two_slots: 4 + two_slots, lambda two_slots: 5 + two_slots),
    **_each(Effect(1, lambda two_slots: 2 + two_slots), "BEFORE_WITH BEFORE_ASYNC_WITH"),
    "STOPITERATION_ERROR": Effect(1, 1),
    # generators: a resumed one finds the value sent on its stack, the first None too
    "RETURN_GENERATOR": Effect(0, 1),
    "YIELD_VALUE": Effect(1, 1),
    # the slots of the receiver that stay; none do in 3.11
    "SEND": Effect(_receiver_and_value, _receiver_and_value, _plus(1)),
    "END_SEND": Effect(_plus(1), 1),
    "CLEANUP_THROW": Effect(_plus(2), _plus(1)),
    "RETURN_VALUE": Effect(1, 0),
    # match
    "MATCH_CLASS": Effect(3, 1),
    **_each(Effect(1, 2), "MATCH_MAPPING MATCH_SEQUENCE GET_LEN"),
    "MATCH_KEYS": Effect(2, 3),
    # refused ones, so that the depth is known everywhere
    **_each(Effect(1, 1), "GET_AITER GET_AWAITABLE ASYNC_GEN_WRAP"),
    "GET_ANEXT": Effect(1, 2),
    "END_ASYNC_FOR": Effect(2, 0),
    "PRINT_EXPR": Effect(1, 0),
    **_each(
        Effect(1, 1),
        """
        INTRINSIC_PRINT INTRINSIC_TYPEVAR INTRINSIC_PARAMSPEC INTRINSIC_TYPEVARTUPLE
        INTRINSIC_SUBSCRIPT_GENERIC INTRINSIC_TYPEALIAS INTRINSIC_1_INVALID
        """,
    ),
    **_each(
        Effect(2, 1),
        """
        INTRINSIC_TYPEVAR_WITH_BOUND INTRINSIC_TYPEVAR_WITH_CONSTRAINTS
        INTRINSIC_SET_FUNCTION_TYPE_PARAMS INTRINSIC_SET_TYPEPARAM_DEFAULT INTRINSIC_2_INVALID
        """,
    ),
}


def operands(instr: Instruction) -> int:
    """Return the number of top stack slots that the instruction consumes or reads, NULLs
    included."""
    return _count(EFFECTS[instr.op].operands, instr.arg)


def results(instr: Instruction, jump: bool) -> int:
    """Return the number of slots it leaves in the place of its operands, when it jumps or when it
    goes on."""
    effect = EFFECTS[instr.op]
    return _count(effect.jump_results if jump else effect.results, instr.arg)


def stack_effect(instr: Instruction, jump: bool) -> int:
    return results(instr, jump) - operands(instr)


def _count(count: Count, arg: Any) -> int:
    return count if isinstance(count, int) else count(arg)
