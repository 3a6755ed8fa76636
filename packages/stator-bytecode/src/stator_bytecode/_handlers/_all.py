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
