"""The bytecode of CPython 3.14."""

from collections.abc import Sequence

from stator_bytecode._codec import _rules as rules
from stator_bytecode._codec._dialect import Dialect, Fused, Rules, Scope
from stator_bytecode._codec._raw_instruction import Raw
from stator_bytecode._codec._tables_312 import SINCE_312
from stator_bytecode._codec._tables_313 import SINCE_313, local_or_closure

COMMON_CONSTANTS = (AssertionError, NotImplementedError, tuple, all, any)
_ENTERING = ("COPY", "LOAD_SPECIAL", "SWAP", "SWAP", "LOAD_SPECIAL", "CALL")
_ARGUMENTS: dict[tuple[int, ...], str] = {
    (1, 1, 2, 3, 0, 0): "BEFORE_WITH",
    (1, 3, 2, 3, 2, 0): "BEFORE_ASYNC_WITH",
}
"""The arguments of `_ENTERING`, with the methods `__exit__` and `__enter__`, or the asynchronous
ones."""


def _copy_or_entering(raws: Sequence[Raw], index: int, scope: Scope) -> Fused:
    """The six instructions at the start of `with` are one operation, as they were until 3.13.

    `__exit__` is a function and its first argument then, or a callable and a NULL.
    """
    stop = index + len(_ENTERING)
    following = raws[index:stop] if stop <= len(raws) else ()
    if tuple(raw.name for raw in following) == _ENTERING:
        op = _ARGUMENTS.get(tuple(raw.arg for raw in following))
        if op is not None:
            return stop, stop - 1, op, True
    return index + 1, index, "COPY", raws[index].arg


def _operator_or_subscript(raws: Sequence[Raw], index: int, scope: Scope) -> Fused:
    arg = raws[index].arg
    if arg == rules.SUBSCRIPT:
        return index + 1, index, "BINARY_SUBSCR", None
    return index + 1, index, "BINARY_OP", rules.BINARY[arg]


def _interpolation(scope: Scope, arg: int) -> tuple[str, bool]:
    """The conversion, and whether there is a format: bits 2 and up, and bit 0."""
    return rules.CONVERSIONS[arg >> 2], bool(arg & 1)


_GONE = ("RETURN_CONST",)

SINCE_314: Rules = {
    **rules.SHARED,
    **{name: rule for name, rule in SINCE_312.items() if name not in _GONE},
    **SINCE_313,
    "COPY": _copy_or_entering,
    "LOAD_FAST_BORROW": local_or_closure,
    "LOAD_FAST_BORROW_LOAD_FAST_BORROW": rules.halves("LOAD_FAST", "LOAD_FAST"),
    "LOAD_SMALL_INT": rules.one("LOAD_CONST", rules.number),
    "BINARY_OP": _operator_or_subscript,
    "CALL_FUNCTION_EX": rules.one("CALL_FUNCTION_EX", rules.always(True)),
    "WITH_EXCEPT_START": rules.one("WITH_EXCEPT_START", rules.always(True)),
    "BUILD_INTERPOLATION": rules.one("BUILD_INTERPOLATION", _interpolation),
    "BUILD_TEMPLATE": rules.one("BUILD_TEMPLATE"),
    "NOT_TAKEN": rules.VANISHES,
    "END_FOR": rules.loop_end("POP_ITER"),
}
"""The rules that 3.15 kept."""

PARTS_SINCE_314 = frozenset({"CALL_KW", "EXTENDED_ARG", "LOAD_SPECIAL", "SET_FUNCTION_ATTRIBUTE"})
REFUSED_SINCE_314 = {
    "INTERPRETER_EXIT": "the interpreter's own entry frame",
    "EXIT_INIT_CHECK": "the interpreter's own frame around __init__",
    "ENTER_EXECUTOR": "a run-time form that co_code never shows",
    "RESERVED": "an opcode without a meaning",
}

_RULES: Rules = {
    **SINCE_314,
    **rules.UNTIL_314,
    "LOAD_COMMON_CONSTANT": rules.one("LOAD_CONST", rules.one_of(COMMON_CONSTANTS)),
    # out of a loop that is left early
    "POP_ITER": rules.one("POP_TOP"),
}

DIALECT_314 = Dialect(
    version=(3, 14),
    argument_from=44,
    merges_locations=True,
    sent_value_on_entry=False,
    null_first=False,
    iterator_slots=1,
    rules=_RULES,
    parts=PARTS_SINCE_314,
    refused=REFUSED_SINCE_314,
)
