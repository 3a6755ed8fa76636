"""Operands of NumPy's element-wise functions: numbers beside arrays become numbers of NumPy, which
the graph computes."""

import operator
from collections.abc import Callable
from typing import Any

import torch

from stator_variables._objects import _number_of_numpy
from stator_variables._pure import DTYPES, NUMPY
from stator_variables._space import Space
from stator_variables._tensors import _torch_calls
from stator_variables._tensors._array_sample import NAMES
from stator_variables._tracker import Args, VariableTracker, is_a
from stator_variables._trackers import ArrayTracker, ConstantTracker, NumberTracker

_OPERATORS: dict[Any, Any] = {}
if NUMPY is not None:
    _UFUNCS = dict(
        pair.split(":")
        for pair in (
            "mul:multiply sub:subtract truediv:divide floordiv:floor_divide mod:remainder "
            "pow:power lshift:left_shift rshift:right_shift and:bitwise_and or:bitwise_or "
            "xor:bitwise_xor lt:less le:less_equal eq:equal ne:not_equal "
            "gt:greater ge:greater_equal"
        ).split()
    )
    _OPERATORS = {
        getattr(operator, f"__{name}__"): getattr(NUMPY, _UFUNCS.get(name, name))
        for name in ("add", "matmul", *_UFUNCS)
    }


def operands(t: Space, function: Callable[..., Any], args: Args) -> Args:
    """Return the arguments of a function, with numbers as those of NumPy where the graph can take
    them."""
    if function in (operator.pow, operator.ipow, NUMPY.power):
        return args  # which of numbers depends on what they are
    if (ufunc := ufunc_of(function)) is None:
        return args
    return [_as_array(t, vt) for vt in _with_dtypes(t, ufunc, args)]


def ufunc_of(function: Callable[..., Any]) -> Any:
    """Return the `ufunc` that a function or an operator is, or None."""
    return function if isinstance(function, NUMPY.ufunc) else _OPERATORS.get(function)


def _with_dtypes(t: Space, ufunc: Any, args: Args) -> Args:
    """Return the operands, numbers of Python as those of NumPy that they are beside an array.

    An int is out of the range of some dtypes, which NumPy refuses: there it stays what it is.
    """
    numbers = [is_a(vt, NumberTracker) and vt.cls in _SAFE for vt in args]
    known = [is_a(vt, ArrayTracker) or number for vt, number in zip(args, numbers, strict=True)]
    if len(args) != ufunc.nin or not (any(numbers) and all(known)):
        return args
    try:
        dtypes = ufunc.resolve_dtypes((*map(dtype_of, args), *[None] * ufunc.nout))
    except TypeError:
        return args
    return [
        _number_of_dtype(t, vt, dtype) if number and dtype in _SAFE[vt.cls] else vt
        for vt, number, dtype in zip(args, numbers, dtypes, strict=False)
    ]


_SAFE: dict[type, frozenset[Any]] = {}
if NUMPY is not None:
    _FLOATS = frozenset(map(NUMPY.dtype, ("float32", "float64")))
    _SAFE = {float: _FLOATS, int: _FLOATS | {NUMPY.dtype("int64")}}


def _number_of_dtype(t: Space, number: VariableTracker, dtype: Any) -> ArrayTracker:
    named = {"dtype": ConstantTracker(DTYPES[dtype])}
    return ArrayTracker(_torch_calls.record(t, torch.scalar_tensor, [number], named), dtype.type)


def _as_array(t: Space, vt: VariableTracker) -> VariableTracker:
    """A number of NumPy as one that the graph computes, where the graph can take it."""
    number = _number_of_numpy.number_of(t, vt)
    if number is vt or not is_a(number, NumberTracker) or vt.real.dtype not in DTYPES:
        return vt
    return _number_of_dtype(t, number, vt.real.dtype)


def dtype_of(vt: Any) -> object:
    """A dtype, or the class of a number of Python, which has none of its own."""
    if is_a(vt, ArrayTracker):
        return NAMES[vt.tensor.example.dtype]
    cls = vt.cls
    return cls if cls in (int, float, complex) else NUMPY.dtype(cls)
