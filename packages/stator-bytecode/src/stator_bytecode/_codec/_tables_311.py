"""The bytecode of CPython 3.11."""

from stator_bytecode._codec import _rules as rules
from stator_bytecode._codec._dialect import Dialect, Rules

_RULES: Rules = {
    **rules.SHARED,
    **rules.UNTIL_312,
    **rules.UNTIL_313,
    **rules.UNTIL_314,
    **rules.same(rules.number, "LOAD_CLASSDEREF"),
    **rules.same(rules.name, "LOAD_ATTR LOAD_METHOD"),
    **rules.same(rules.nothing, "JUMP_IF_TRUE_OR_POP JUMP_IF_FALSE_OR_POP"),
    **rules.same(
        rules.nothing, "LIST_TO_TUPLE IMPORT_STAR PREP_RERAISE_STAR PRINT_EXPR ASYNC_GEN_WRAP"
    ),
    **{
        f"POP_JUMP_{direction}_IF_{condition}": rules.one(f"POP_JUMP_IF_{condition}")
        for direction in ("FORWARD", "BACKWARD")
        for condition in ("TRUE", "FALSE", "NONE", "NOT_NONE")
    },
    "UNARY_POSITIVE": rules.one("UNARY_OP", rules.always("+")),
    "COMPARE_OP": rules.one("COMPARE_OP", lambda scope, arg: (rules.COMPARISONS[arg], False)),
    "SEND": rules.one("SEND", rules.always(0)),
    "PRECALL": rules.call("CALL"),
    "KW_NAMES": rules.call("PRECALL", "CALL", named=True),
}

DIALECT_311 = Dialect(
    version=(3, 11),
    argument_from=90,
    merges_locations=False,
    sent_value_on_entry=True,
    null_first=True,
    iterator_slots=1,
    rules=_RULES,
    parts=frozenset({"CALL", "EXTENDED_ARG"}),
    refused={},
)
