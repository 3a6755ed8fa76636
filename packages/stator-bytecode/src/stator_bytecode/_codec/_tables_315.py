"""The bytecode of CPython 3.15."""

from collections.abc import Sequence

from stator_bytecode._codec import _rules as rules
from stator_bytecode._codec import _tables_314
from stator_bytecode._codec._dialect import Dialect, Emit, Fused, Rules, Scope
from stator_bytecode._codec._raw_instruction import Raw
from stator_bytecode._codec._tables_314 import (
    PARTS_SINCE_314,
    REFUSED_SINCE_314,
    SINCE_314,
)

COMMON_CONSTANTS = (*_tables_314.COMMON_CONSTANTS, list, set, None, "", True, False, -1)
_SLOTS = 2
"""An iterator, and an empty slot. The interpreter itself has a list or a tuple, and a position,
there."""
_LAZY = 1


def _iterator(raws: Sequence[Raw], index: int, scope: Scope) -> Fused:
    """The argument is not 0 where the iterator is that of `yield from` or `await`."""
    op = "GET_YIELD_FROM_ITER" if raws[index].arg else "GET_ITER"
    return index + 1, index, op, _SLOTS


def _import(raws: Sequence[Raw], index: int, scope: Scope) -> Fused:
    """The two lowest bits: `lazy import`, and one that is never lazy."""
    arg = raws[index].arg
    op = "IMPORT_LAZILY" if arg & _LAZY else "IMPORT_NAME"
    return index + 1, index, op, scope.names[arg >> 2]


_RULES: Rules = {
    **SINCE_314,
    **rules.same(rules.always(_SLOTS), "FOR_ITER SEND END_SEND CLEANUP_THROW"),
    "GET_ITER": _iterator,
    "IMPORT_NAME": _import,
    "LOAD_COMMON_CONSTANT": rules.one("LOAD_CONST", rules.one_of(COMMON_CONSTANTS)),
    # out of a loop that is left early
    "POP_ITER": (Emit("POP_TOP", rules.nothing), Emit("POP_TOP", rules.nothing)),
}

DIALECT_315 = Dialect(
    version=(3, 15),
    argument_from=42,
    merges_locations=True,
    sent_value_on_entry=False,
    null_first=False,
    iterator_slots=_SLOTS,
    rules=_RULES,
    parts=PARTS_SINCE_314,
    refused={**REFUSED_SINCE_314, "TRACE_RECORD": "a run-time form that co_code never shows"},
)
