"""The bytecode of CPython 3.12."""

from collections.abc import Sequence

from stator_bytecode._codec import _rules as rules
from stator_bytecode._codec._dialect import Dialect, Fused, Rule, Scope
from stator_bytecode._codec._raw_instruction import Raw
from stator_bytecode._codec._rules_since_312 import SINCE_312


def _call_with_names(raws: Sequence[Raw], index: int, scope: Scope) -> Fused:
    rules.followed_by(raws, index, "CALL")
    return index + 2, index + 1, "CALL", (raws[index + 1].arg, scope.consts[raws[index].arg])


_RULES: dict[str, Rule] = {
    **rules.SHARED,
    **SINCE_312,
    **rules.same(rules.constant, "LOAD_CONST"),
    **rules.same(rules.number, "LOAD_FAST", "LOAD_CLOSURE", "MAKE_FUNCTION"),
    "LOAD_GLOBAL": rules.one("LOAD_GLOBAL", lambda scope, arg: (scope.names[arg >> 1], "before" if arg & 1 else None)),
    "COMPARE_OP": rules.one("COMPARE_OP", lambda scope, arg: (rules.COMPARISONS[arg >> 4], False)),
    "FORMAT_VALUE": rules.one("FORMAT_VALUE", lambda scope, arg: (rules.CONVERSIONS[arg & 3], bool(arg & 4))),
    "END_FOR": rules.loop_end(),
    "CALL": rules.one("CALL", lambda scope, arg: (arg, ())),
    "KW_NAMES": _call_with_names,
}

DIALECT_312 = Dialect(
    version=(3, 12),
    argument_from=90,
    merges_locations=True,
    sent_value_on_entry=True,
    null_first=True,
    rules=_RULES,
    parts=frozenset({"EXTENDED_ARG"}),
    refused={"INTERPRETER_EXIT": "the interpreter's own entry frame", "RESERVED": "an opcode without a meaning"},
)
