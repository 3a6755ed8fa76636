"""Neutral operations that no Machine runs, with the reason. They decode, so that a code object is
refused only where it reaches one."""

from collections.abc import Mapping

from stator_bytecode._codec._tables import OPCODES

REFUSED: Mapping[str, str] = {
    **dict.fromkeys(
        """
        GET_AITER GET_ANEXT GET_AWAITABLE BEFORE_ASYNC_WITH END_ASYNC_FOR ASYNC_GEN_WRAP
        """.split(),
        "asynchronous code cannot be captured",
    ),
    **dict.fromkeys(
        ("PRINT_EXPR", "INTRINSIC_PRINT"), "the interactive prompt's echo of an expression"
    ),
    **dict.fromkeys(
        """
        INTRINSIC_TYPEVAR INTRINSIC_PARAMSPEC INTRINSIC_TYPEVARTUPLE
        INTRINSIC_TYPEVAR_WITH_BOUND INTRINSIC_TYPEVAR_WITH_CONSTRAINTS
        INTRINSIC_SUBSCRIPT_GENERIC INTRINSIC_TYPEALIAS
        INTRINSIC_SET_FUNCTION_TYPE_PARAMS INTRINSIC_SET_TYPEPARAM_DEFAULT
        """.split(),
        "type parameters and type aliases are made once, outside captured code",
    ),
    "IMPORT_LAZILY": "lazy imports are statements of modules",
    **dict.fromkeys(
        ("INTRINSIC_1_INVALID", "INTRINSIC_2_INVALID"), "an intrinsic without a meaning"
    ),
    **OPCODES.dialect.refused,
}
"""Neutral and raw names to reasons. Raw ones belong to the running Python."""
