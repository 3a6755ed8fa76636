"""Neutral operations that no Machine runs, with the reason. They decode, so that a code object is
refused only where it reaches one."""

from collections.abc import Mapping

from stator_bytecode._codec._tables import OPCODES

_ASYNC = "asynchronous code cannot be captured"
_TYPE_PARAMETERS = "type parameters and type aliases are made once, outside captured code"

REFUSED: Mapping[str, str] = {
    **dict.fromkeys(("GET_AITER", "GET_ANEXT", "GET_AWAITABLE"), _ASYNC),
    **dict.fromkeys(("BEFORE_ASYNC_WITH", "END_ASYNC_FOR", "ASYNC_GEN_WRAP"), _ASYNC),
    **dict.fromkeys(
        ("PRINT_EXPR", "INTRINSIC_PRINT"), "the interactive prompt's echo of an expression"
    ),
    **dict.fromkeys(
        ("INTRINSIC_TYPEVAR", "INTRINSIC_PARAMSPEC", "INTRINSIC_TYPEVARTUPLE"), _TYPE_PARAMETERS
    ),
    **dict.fromkeys(
        ("INTRINSIC_TYPEVAR_WITH_BOUND", "INTRINSIC_TYPEVAR_WITH_CONSTRAINTS"), _TYPE_PARAMETERS
    ),
    **dict.fromkeys(("INTRINSIC_SUBSCRIPT_GENERIC", "INTRINSIC_TYPEALIAS"), _TYPE_PARAMETERS),
    **dict.fromkeys(
        ("INTRINSIC_SET_FUNCTION_TYPE_PARAMS", "INTRINSIC_SET_TYPEPARAM_DEFAULT"), _TYPE_PARAMETERS
    ),
    **dict.fromkeys(
        ("INTRINSIC_1_INVALID", "INTRINSIC_2_INVALID"), "an intrinsic without a meaning"
    ),
    **OPCODES.dialect.refused,
}
"""Neutral and raw names to reasons. Raw ones belong to the running Python."""
