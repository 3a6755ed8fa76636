"""The bytecode of CPython 3.12."""

from collections.abc import Sequence

from stator_bytecode._codec import _rules as rules
from stator_bytecode._codec._dialect import Dialect, Emit, Fused, Rules, Scope
from stator_bytecode._codec._raw_instruction import Raw

_WITH_ONE_OPERAND = (
    "INTRINSIC_1_INVALID INTRINSIC_PRINT IMPORT_STAR STOPITERATION_ERROR ASYNC_GEN_WRAP "
    "UNARY_OP LIST_TO_TUPLE INTRINSIC_TYPEVAR INTRINSIC_PARAMSPEC INTRINSIC_TYPEVARTUPLE "
    "INTRINSIC_SUBSCRIPT_GENERIC INTRINSIC_TYPEALIAS"
).split()
_WITH_TWO_OPERANDS = (
    "INTRINSIC_2_INVALID PREP_RERAISE_STAR INTRINSIC_TYPEVAR_WITH_BOUND "
    "INTRINSIC_TYPEVAR_WITH_CONSTRAINTS INTRINSIC_SET_FUNCTION_TYPE_PARAMS "
    "INTRINSIC_SET_TYPEPARAM_DEFAULT"
).split()


def _intrinsic_1(raws: Sequence[Raw], index: int, scope: Scope) -> Fused:
    op = _WITH_ONE_OPERAND[raws[index].arg]
    if op != "IMPORT_STAR":
        return index + 1, index, op, "+" if op == "UNARY_OP" else None
    # Neutral IMPORT_STAR leaves nothing; this one leaves a None for the POP_TOP after it.
    rules.followed_by(raws, index, "POP_TOP")
    return index + 2, index, op, None


def _intrinsic_2(raws: Sequence[Raw], index: int, scope: Scope) -> Fused:
    return index + 1, index, _WITH_TWO_OPERANDS[raws[index].arg], None


def _attribute(raws: Sequence[Raw], index: int, scope: Scope) -> Fused:
    arg = raws[index].arg
    return index + 1, index, "LOAD_METHOD" if arg & 1 else "LOAD_ATTR", scope.names[arg >> 1]


def _super_attribute(scope: Scope, arg: int) -> tuple[str, bool, bool]:
    return scope.names[arg >> 2], bool(arg & 1), bool(arg & 2)


SINCE_312: Rules = {
    **rules.same(rules.nothing, "BINARY_SLICE STORE_SLICE LOAD_LOCALS"),
    **rules.same(rules.always(1), "SEND END_SEND CLEANUP_THROW"),
    **rules.same(
        rules.nothing,
        "POP_JUMP_IF_TRUE POP_JUMP_IF_FALSE POP_JUMP_IF_NONE POP_JUMP_IF_NOT_NONE",
    ),
    **rules.same(rules.number, "LOAD_FAST_AND_CLEAR LOAD_FROM_DICT_OR_DEREF"),
    **rules.same(rules.name, "LOAD_FROM_DICT_OR_GLOBALS"),
    "LOAD_FAST_CHECK": rules.one("LOAD_FAST", rules.number),
    "LOAD_ATTR": _attribute,
    "LOAD_SUPER_ATTR": rules.one("LOAD_SUPER_ATTR", _super_attribute),
    "RETURN_CONST": (Emit("LOAD_CONST", rules.constant), Emit("RETURN_VALUE", rules.nothing)),
    "CALL_INTRINSIC_1": _intrinsic_1,
    "CALL_INTRINSIC_2": _intrinsic_2,
    "CALL": rules.one("CALL", lambda scope, arg: (arg, ())),
}
"""The rules that this one brought and 3.13 kept: intrinsics, undirected jumps, merged attribute
loads."""


_RULES: Rules = {
    **rules.SHARED,
    **SINCE_312,
    **rules.UNTIL_312,
    **rules.UNTIL_313,
    **rules.UNTIL_314,
    "COMPARE_OP": rules.one("COMPARE_OP", lambda scope, arg: (rules.COMPARISONS[arg >> 4], False)),
    "END_FOR": rules.loop_end(),
    "KW_NAMES": rules.call("CALL", named=True),
}

DIALECT_312 = Dialect(
    version=(3, 12),
    argument_from=90,
    merges_locations=True,
    sent_value_on_entry=True,
    null_first=True,
    iterator_slots=1,
    rules=_RULES,
    parts=frozenset({"EXTENDED_ARG"}),
    refused={
        "INTERPRETER_EXIT": "the interpreter's own entry frame",
        "RESERVED": "an opcode without a meaning",
    },
)
