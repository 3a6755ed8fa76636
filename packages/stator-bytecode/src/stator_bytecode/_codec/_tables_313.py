"""The bytecode of CPython 3.13."""

from collections.abc import Sequence

from stator_bytecode._codec import _rules as rules
from stator_bytecode._codec._dialect import Dialect, Fused, Rules, Scope
from stator_bytecode._codec._raw_instruction import Raw
from stator_bytecode._codec._tables_312 import SINCE_312


def _constant_or_call_with_names(raws: Sequence[Raw], index: int, scope: Scope) -> Fused:
    value = scope.consts[raws[index].arg]
    following = raws[index + 1] if index + 1 < len(raws) else None
    if following is None or following.name != "CALL_KW":
        return index + 1, index, "LOAD_CONST", value
    return index + 2, index + 1, "CALL", (following.arg, value)


def _function_with_parts(raws: Sequence[Raw], index: int, scope: Scope) -> Fused:
    """One operation, so that nobody ever sees a function that still waits for its closure: to call
    it is a crash."""
    stop, flags = index + 1, 0
    while stop < len(raws) and raws[stop].name == "SET_FUNCTION_ATTRIBUTE":
        flags |= raws[stop].arg
        stop += 1
    return stop, index, "MAKE_FUNCTION", flags


def local_or_closure(raws: Sequence[Raw], index: int, scope: Scope) -> Fused:
    slot = raws[index].arg
    return index + 1, index, "LOAD_CLOSURE" if slot in scope.cell_slots else "LOAD_FAST", slot


SINCE_313: Rules = {
    **rules.same(rules.nothing, "TO_BOOL"),
    "LOAD_CONST": _constant_or_call_with_names,
    "LOAD_FAST": local_or_closure,
    "LOAD_FAST_LOAD_FAST": rules.halves("LOAD_FAST", "LOAD_FAST"),
    "STORE_FAST_LOAD_FAST": rules.halves("STORE_FAST", "LOAD_FAST"),
    "STORE_FAST_STORE_FAST": rules.halves("STORE_FAST", "STORE_FAST"),
    "LOAD_GLOBAL": rules.one(
        "LOAD_GLOBAL", lambda scope, arg: (scope.names[arg >> 1], "after" if arg & 1 else None)
    ),
    "COMPARE_OP": rules.one(
        "COMPARE_OP", lambda scope, arg: (rules.COMPARISONS[arg >> 5], bool(arg & 16))
    ),
    "CONVERT_VALUE": rules.one("CONVERT_VALUE", rules.one_of(rules.CONVERSIONS)),
    "FORMAT_SIMPLE": rules.one("FORMAT_VALUE", rules.always(("", False))),
    "FORMAT_WITH_SPEC": rules.one("FORMAT_VALUE", rules.always(("", True))),
    "MAKE_FUNCTION": _function_with_parts,
}
"""The rules that this one brought and 3.14 kept."""

_RULES: Rules = {
    **rules.SHARED,
    **SINCE_312,
    **rules.UNTIL_313,
    **rules.UNTIL_314,
    **SINCE_313,
    "END_FOR": rules.loop_end("POP_TOP"),
}

DIALECT_313 = Dialect(
    version=(3, 13),
    argument_from=45,
    merges_locations=True,
    sent_value_on_entry=False,
    null_first=False,
    iterator_slots=1,
    rules=_RULES,
    parts=frozenset({"CALL_KW", "EXTENDED_ARG", "SET_FUNCTION_ATTRIBUTE"}),
    refused={
        "INTERPRETER_EXIT": "the interpreter's own entry frame",
        "EXIT_INIT_CHECK": "the interpreter's own frame around __init__",
        "ENTER_EXECUTOR": "a run-time form that co_code never shows",
        "RESERVED": "an opcode without a meaning",
    },
)
