"""The bytecode of CPython 3.11."""

from collections.abc import Sequence

from stator_bytecode._codec import _rules as rules
from stator_bytecode._codec._dialect import Dialect, Fused, Rule, Scope
from stator_bytecode._codec._raw_instruction import Raw


def _call(raws: Sequence[Raw], index: int, scope: Scope) -> Fused:
    rules.followed_by(raws, index, "CALL")
    return index + 2, index + 1, "CALL", (raws[index + 1].arg, ())


def _call_with_names(raws: Sequence[Raw], index: int, scope: Scope) -> Fused:
    rules.followed_by(raws, index, "PRECALL", "CALL")
    return index + 3, index + 2, "CALL", (raws[index + 2].arg, scope.consts[raws[index].arg])


_RULES: dict[str, Rule] = {
    **rules.SHARED,
    **rules.same(rules.constant, "LOAD_CONST"),
    **rules.same(rules.number, "LOAD_FAST", "LOAD_CLOSURE", "LOAD_CLASSDEREF", "MAKE_FUNCTION"),
    **rules.same(rules.name, "LOAD_ATTR", "LOAD_METHOD"),
    **rules.same(rules.nothing, "JUMP_IF_TRUE_OR_POP", "JUMP_IF_FALSE_OR_POP"),
    **rules.same(rules.nothing, "LIST_TO_TUPLE", "IMPORT_STAR", "PREP_RERAISE_STAR", "PRINT_EXPR", "ASYNC_GEN_WRAP"),
    **{
        f"POP_JUMP_{direction}_IF_{condition}": rules.one(f"POP_JUMP_IF_{condition}")
        for direction in ("FORWARD", "BACKWARD")
        for condition in ("TRUE", "FALSE", "NONE", "NOT_NONE")
    },
    "LOAD_GLOBAL": rules.one("LOAD_GLOBAL", lambda scope, arg: (scope.names[arg >> 1], "before" if arg & 1 else None)),
    "UNARY_POSITIVE": rules.one("UNARY_OP", rules.always("+")),
    "COMPARE_OP": rules.one("COMPARE_OP", lambda scope, arg: (rules.COMPARISONS[arg], False)),
    "FORMAT_VALUE": rules.one("FORMAT_VALUE", lambda scope, arg: (rules.CONVERSIONS[arg & 3], bool(arg & 4))),
    "SEND": rules.one("SEND", rules.always(False)),
    "PRECALL": _call,
    "KW_NAMES": _call_with_names,
}

DIALECT_311 = Dialect(
    version=(3, 11),
    argument_from=90,
    merges_locations=False,
    sent_value_on_entry=True,
    null_first=True,
    rules=_RULES,
    parts=frozenset({"CALL", "EXTENDED_ARG"}),
    refused={},
)
