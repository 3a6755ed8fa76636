"""Operators on tensors and symbolic numbers, recorded as nodes."""

import operator

import torch
from stator_bytecode import OPERATOR_NAMES, Result

from stator_variables._objects import _number_of_numpy
from stator_variables._pure import DTYPES
from stator_variables._space import Space
from stator_variables._tensors._torch_calls import is_in_graph, is_operator_operand, record
from stator_variables._tracker import MISSING, VariableTracker, is_a
from stator_variables._trackers import ConstantTracker, NumberTracker, TensorTracker

_OUT_OF_PLACE = {
    getattr(operator, f"__i{name}__"): getattr(operator, f"__{name}__")
    for name in OPERATOR_NAMES.values()
}
_NUMBERS = frozenset(dtype for dtype in DTYPES.values() if not dtype.is_complex)
"""Dtypes of the numbers of NumPy that an operator of tensors takes without a warning."""
_SUBSCRIPTS = (operator.getitem, operator.setitem, operator.delitem)


def operate(t: Space, function: object, *operands: VariableTracker) -> Result:
    """Record an operator with tensors or symbolic numbers; MISSING when another operand has its own
    say, or a mode."""
    if not is_in_graph(t, *operands):
        return MISSING
    if function not in _SUBSCRIPTS and any(is_a(vt, TensorTracker) for vt in operands):
        operands = tuple(_number_of_numpy.number_of_array(t, vt, _NUMBERS) for vt in operands)
    if len(operands) != 2:
        return record(t, function, list(operands))
    in_place = function in _OUT_OF_PLACE and not is_a(operands[0], TensorTracker)
    return record_operator(t, _OUT_OF_PLACE[function] if in_place else function, *operands)


def record_operator(
    t: Space, function: object, left: VariableTracker, right: VariableTracker
) -> Result:
    """Record an operator with a tensor or a symbolic number on one side; MISSING if the other side
    may override it."""
    if not (is_operator_operand(left) and is_operator_operand(right)):
        return MISSING
    if function is operator.ne and any(
        is_a(vt, NumberTracker) and vt.cls is bool for vt in (left, right)
    ):
        equal = record(t, operator.eq, [left, right])  # a SymBool has no `__ne__` of its own
        if is_a(equal, ConstantTracker):
            return ConstantTracker(not equal.value)
        return record(t, torch.sym_not, [equal])
    return record(t, function, [left, right])
