"""The table of all opcode handlers: the one place where the families meet."""

from stator_bytecode._handlers._calls import call_ops
from stator_bytecode._handlers._exceptions import exception_ops
from stator_bytecode._handlers._generators import generator_ops
from stator_bytecode._handlers._names import name_ops
from stator_bytecode._handlers._operators import building_ops, operator_ops
from stator_bytecode._handlers._stack import stack_ops

DEFAULT = stack_ops.merged_with(
    name_ops, operator_ops, building_ops, call_ops, exception_ops, generator_ops
)

SAFE = frozenset(
    {
        *("NOP", "POP_TOP", "PUSH_NULL", "COPY", "SWAP", "LOAD_CONST", "JUMP"),
        *("LOAD_FAST", "LOAD_FAST_AND_CLEAR", "STORE_FAST", "DELETE_FAST"),
        *("MAKE_CELL", "COPY_FREE_VARS", "LOAD_CLOSURE", "LOAD_DEREF"),
        *(
            "PUSH_EXC_INFO",
            "POP_EXCEPT",
            "RETURN_VALUE",
            "RETURN_GENERATOR",
            "YIELD_VALUE",
            "END_SEND",
        ),
        *("BUILD_TUPLE", "LIST_TO_TUPLE", "RERAISE"),
    }
)
"""Instructions that leave the stack as it was when they fail, and call nothing: no checkpoint before them."""
