"""Operators on tensors and symbolic numbers, recorded as nodes."""

import operator
from typing import Any

import torch
from stator_bytecode import OPERATOR_NAMES

from stator_variables import _trackers as k
from stator_variables._space import Space
from stator_variables._tensors._torch_calls import is_in_graph, is_operator_operand, record
from stator_variables._tracker import MISSING, VariableTracker, is_a

_OUT_OF_PLACE = {
    getattr(operator, f"__i{name}__"): getattr(operator, f"__{name}__")
    for name in OPERATOR_NAMES.values()
}


def operate(t: Space, function: object, *operands: VariableTracker) -> Any:
    """Record an operator with tensors or symbolic numbers; MISSING when another operand has its own
    say, or a mode."""
    if not is_in_graph(t, *operands):
        return MISSING
    if len(operands) != 2:
        return record(t, function, list(operands), {})
    in_place = function in _OUT_OF_PLACE and not is_a(operands[0], k.TensorTracker)
    return record_operator(t, _OUT_OF_PLACE[function] if in_place else function, *operands)


def record_operator(
    t: Space, function: object, left: VariableTracker, right: VariableTracker
) -> Any:
    """Record an operator with a tensor or a symbolic number on one side; MISSING if the other side
    may override it."""
    if not (is_operator_operand(left) and is_operator_operand(right)):
        return MISSING
    if function is operator.ne and any(
        is_a(vt, k.NumberTracker) and vt.cls is bool for vt in (left, right)
    ):
        equal = record(t, operator.eq, [left, right], {})  # a SymBool has no `__ne__` of its own
        if is_a(equal, k.ConstantTracker):
            return k.ConstantTracker(not equal.value)
        return record(t, torch.sym_not, [equal], {})
    return record(t, function, [left, right], {})
