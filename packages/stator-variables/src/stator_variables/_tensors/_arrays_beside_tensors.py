"""Functions of NumPy that get tensors, as an operator between a tensor and an array does: NumPy
converts the tensors, and the first of them makes a tensor of the result.

    x * array      array.__rmul__(x)      x.__array_wrap__(numpy.multiply(x.numpy(), array))
"""

import functools
import operator
import warnings
from collections.abc import Callable, Sequence
from typing import Any

import torch
from stator_bytecode import OPERATOR_NAMES

from stator_variables._handler_keys import ARRAY_OPERATOR
from stator_variables._pure import NUMPY
from stator_variables._space import Space
from stator_variables._tensors import _array_tensors, _arrays, _torch_calls
from stator_variables._tracker import Args, FunctionTable, Kwargs, VariableTracker, is_a
from stator_variables._trackers import ArrayTracker, ConstantTracker, TensorTracker

handlers = FunctionTable("operator of arrays")
_OPERATORS = {getattr(operator, f"__{name}__") for name in OPERATOR_NAMES.values()}
_IN_PLACE = {
    getattr(operator, f"__i{name}__"): getattr(operator, f"__{name}__")
    for name in OPERATOR_NAMES.values()
}
"""A tensor declines to take an array in, which makes it the plain operator."""


def is_operator(function: Callable[..., Any], operands: Sequence[Any]) -> bool:
    """Return True for an operator of a tensor with an array behind it. One that stands before the
    tensor declines."""
    if function not in _OPERATORS and function not in _IN_PLACE:
        return False
    left, right = operands
    return is_a(left, TensorTracker) and is_a(right, ArrayTracker) and right.cls is NUMPY.ndarray


@handlers.handles(ARRAY_OPERATOR)
def operate(t: Space, args: Args, kwargs: Kwargs) -> Any:
    """An operator or subscript with an array on one side."""
    function: Any = args[0]
    operands = args[1:]
    if not is_operator(function, operands):
        return _arrays.operate(t, function, *operands)
    plain = _IN_PLACE.get(function, function)
    return wrapped(t, operands, lambda arrays: _arrays.operate(t, plain, *arrays))


def wrapped(t: Space, args: Args, compute: Callable[[list[Any]], Any]) -> Any:
    """Return the tensor that `compute` gives for arrays in the place of tensors."""
    if any(is_a(vt, TensorTracker) and vt.cls is not torch.Tensor for vt in args):
        raise t.unsupported("numpy", "a function of NumPy with a tensor of another class")
    result = compute([_array_tensors.array_of(t, vt) if is_tensor(vt) else vt for vt in args])
    if not is_a(result, ArrayTracker):
        raise t.unsupported("numpy", "a function of NumPy that gives several arrays for tensors")

    for text, category in _warned():
        t.graph.warn(text, category)
    made = result.tensor
    if made.example.dtype is not torch.bool:
        return made
    dtype = {"dtype": ConstantTracker(torch.uint8)}
    return _torch_calls.record_without_modes(t, torch.Tensor.to, [made], dtype)


def is_tensor(vt: VariableTracker) -> bool:
    return is_a(vt, TensorTracker)


@functools.cache
def _warned() -> tuple[tuple[str, type[Warning]], ...]:
    """Return the warnings of NumPy for each result that a tensor wraps."""
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        NUMPY.negative(torch.ones(1))
    return tuple((str(each.message), each.category) for each in found)
