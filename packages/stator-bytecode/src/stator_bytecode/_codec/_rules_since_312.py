"""The rules that CPython 3.12 brought and 3.13 kept: intrinsics, undirected jumps, merged attribute loads."""

from collections.abc import Sequence

from stator_bytecode._codec._dialect import Emit, Fused, Rule, Scope
from stator_bytecode._codec._raw_instruction import Raw
from stator_bytecode._codec._rules import always, constant, followed_by, name, nothing, number, one, same

_WITH_ONE_OPERAND = (
    "INTRINSIC_1_INVALID INTRINSIC_PRINT IMPORT_STAR STOPITERATION_ERROR ASYNC_GEN_WRAP UNARY_OP LIST_TO_TUPLE "
    "INTRINSIC_TYPEVAR INTRINSIC_PARAMSPEC INTRINSIC_TYPEVARTUPLE INTRINSIC_SUBSCRIPT_GENERIC INTRINSIC_TYPEALIAS"
).split()
_WITH_TWO_OPERANDS = (
    "INTRINSIC_2_INVALID PREP_RERAISE_STAR INTRINSIC_TYPEVAR_WITH_BOUND INTRINSIC_TYPEVAR_WITH_CONSTRAINTS "
    "INTRINSIC_SET_FUNCTION_TYPE_PARAMS INTRINSIC_SET_TYPEPARAM_DEFAULT"
).split()


def _intrinsic_1(raws: Sequence[Raw], index: int, scope: Scope) -> Fused:
    op = _WITH_ONE_OPERAND[raws[index].arg]
    if op != "IMPORT_STAR":
        return index + 1, index, op, "+" if op == "UNARY_OP" else None
    # Neutral IMPORT_STAR leaves nothing; this one leaves a None for the POP_TOP after it.
    followed_by(raws, index, "POP_TOP")
    return index + 2, index, op, None


def _intrinsic_2(raws: Sequence[Raw], index: int, scope: Scope) -> Fused:
    return index + 1, index, _WITH_TWO_OPERANDS[raws[index].arg], None


def _attribute(raws: Sequence[Raw], index: int, scope: Scope) -> Fused:
    arg = raws[index].arg
    return index + 1, index, "LOAD_METHOD" if arg & 1 else "LOAD_ATTR", scope.names[arg >> 1]


def _super_attribute(scope: Scope, arg: int) -> tuple[str, bool, bool]:
    return scope.names[arg >> 2], bool(arg & 1), bool(arg & 2)


SINCE_312: dict[str, Rule] = {
    **same(nothing, "BINARY_SLICE", "STORE_SLICE", "LOAD_LOCALS", "END_SEND", "CLEANUP_THROW"),
    **same(nothing, "POP_JUMP_IF_TRUE", "POP_JUMP_IF_FALSE", "POP_JUMP_IF_NONE", "POP_JUMP_IF_NOT_NONE"),
    **same(number, "LOAD_FAST_AND_CLEAR", "LOAD_FROM_DICT_OR_DEREF"),
    **same(name, "LOAD_FROM_DICT_OR_GLOBALS"),
    "LOAD_FAST_CHECK": one("LOAD_FAST", number),
    "LOAD_ATTR": _attribute,
    "LOAD_SUPER_ATTR": one("LOAD_SUPER_ATTR", _super_attribute),
    "RETURN_CONST": (Emit("LOAD_CONST", constant), Emit("RETURN_VALUE", nothing)),
    "SEND": one("SEND", always(True)),
    "CALL_INTRINSIC_1": _intrinsic_1,
    "CALL_INTRINSIC_2": _intrinsic_2,
}
