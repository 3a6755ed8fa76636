"""C functions of symbolic numbers: some stay symbolic, for the others the number becomes a
constant, and is guarded."""

import math
import operator
from typing import Any

import torch
from stator_bytecode import Result

from stator_variables._objects import _number, _number_of_numpy
from stator_variables._space import Space
from stator_variables._tensors import _torch_calls
from stator_variables._tracker import MISSING, Args, Kwargs, VariableTracker, is_a
from stator_variables._trackers import ConstantTracker, NumberTracker

_NAMES = ("sqrt", "cos", "cosh", "sin", "sinh", "tan", "tanh", "asin", "acos", "atan", "log2")
IN_GRAPH: dict[Any, Any] = {getattr(math, name): getattr(torch, f"_sym_{name}") for name in _NAMES}
IN_GRAPH |= {
    math.floor: math.floor,
    math.ceil: math.ceil,
    math.trunc: torch.sym_int,
    float.__round__: round,
}
IN_GRAPH |= {float.__trunc__: torch.sym_int, int.__float__: torch.sym_float}
IN_GRAPH |= {float.__int__: torch.sym_int, float.__floor__: math.floor, float.__ceil__: math.ceil}
IN_GRAPH |= {
    getattr(cls, f"__{name}__"): getattr(operator, name)
    for cls in (int, float)
    for name in ("neg", "abs")
}
"""The functions that the graph calls in their place; all give at run time what they themselves
give."""

_NAMES_OF_FLOATS = "exp expm1 log log1p log10 erf erfc atan2 degrees radians asinh acosh atanh"
OF_FLOATS = frozenset(getattr(math, name) for name in _NAMES_OF_FLOATS.split())
"""Functions that torch has no form of for numbers in a graph: the entry computes them."""

OF_INT = frozenset({operator.index, math.floor, math.ceil, math.trunc, int.conjugate})
OF_INT |= {
    getattr(int, f"__{name}__")
    for name in ("index", "int", "trunc", "floor", "ceil", "round", "pos")
}
"""Functions that return their argument, if it is an int alone."""

KNOWN_OF_FINITE = {math.isfinite: True, math.isnan: False, math.isinf: False}
FIELDS = {"real": None, "numerator": None, "imag": 0, "denominator": 1}
"""Attributes of an int that are itself (None) or constants."""


def apply(t: Space, target: Any, args: Args, kwargs: Kwargs) -> Result:
    """The result, when it is known or can be computed in the graph; else MISSING."""
    if target in OF_FLOATS and not kwargs:
        return _number_of_numpy.computed_early(t, target, args)
    if not args or kwargs or not is_a(args[0], NumberTracker):
        return MISSING
    if len(args) == 1 and args[0].cls is int and target in OF_INT:
        return args[0]
    if target in KNOWN_OF_FINITE and (args[0].cls is int or args[0].source is not None):
        return ConstantTracker(KNOWN_OF_FINITE[target])  # a float that is an input is guarded

    if target is float.is_integer:  # fx cannot write down the function that torch has for it
        return _torch_calls.record(
            t, operator.eq, [args[0], _torch_calls.record(t, math.floor, args)]
        )
    if target is math.pow and args[0].cls is not bool:
        return _power(t, *args)
    recorded = None if args[0].cls is bool else IN_GRAPH.get(target)
    constants = all(is_a(arg, ConstantTracker) for arg in args[1:])
    return MISSING if recorded is None or not constants else _torch_calls.record(t, recorded, args)


def _power(t: Space, base: VariableTracker, by: VariableTracker) -> Result:
    """The power of a positive number by a constant, which `**` computes in the same way."""
    if not is_a(by, ConstantTracker) or by.cls not in (int, float):
        return MISSING
    exponent = float(by.value)
    if not math.isfinite(exponent):
        return MISSING
    is_positive = _torch_calls.record(t, operator.gt, [base, ConstantTracker(0)])
    if not t.truth(is_positive):
        return MISSING
    number = _torch_calls.record(t, torch.sym_float, [base]) if base.cls is int else base
    return _torch_calls.record(t, operator.pow, [number, ConstantTracker(exponent)])


def is_by_constant(left: VariableTracker, right: VariableTracker) -> bool:
    """Return True if a shift is by a constant: a product with 1 << constant, or a quotient, which
    torch computes exactly."""
    by = None if is_a(right, NumberTracker) else _known(right)
    return is_a(left, NumberTracker) and left.cls is int and by in range(_LONGEST)


def as_words(t: Space, name: str, left: VariableTracker, right: VariableTracker) -> tuple[Any, Any]:
    """The operands of a power or a shift: constants where the result fits no machine word, which
    torch takes for infinity. A power of a symbol, by a constant, has no end."""
    known, by = _known(left), _known(right)
    if name == "pow" and is_a(left, NumberTracker) and not is_a(right, NumberTracker):
        return (_number.as_constant(t, left) if left.example.node.expr.is_number else left), right
    if isinstance(known, int) and isinstance(by, int):
        bits = (abs(known) - 1).bit_length() if name == "pow" else 1
        if bits * by >= _WORD or (by < 0 and name != "pow"):
            return _number.as_constant(t, left), _number.as_constant(t, right)
    return left, right


def is_masked(left: VariableTracker, right: VariableTracker) -> bool:
    """Return True if `&`, `|` or `^` works on the bits of a symbolic int.

    torch has no bounds of the result, and evaluates `&` of two negative numbers as non-negative.
    """
    if not all(vt.cls is int and is_a(vt, NumberTracker | ConstantTracker) for vt in (left, right)):
        return False
    return _number.has_numbers((left, right))


def low_bits(left: Any, right: Any) -> tuple[Any, int | None, bool]:
    """The number, and the power of two below which the other operand has all bits and no others, or
    (the flag) no bits and all others; None if it is no such mask."""
    number, mask = (right, left) if is_a(right, NumberTracker) else (left, right)
    if is_a(mask, NumberTracker):
        return number, None, False
    size = mask.value + 1 if mask.value >= 0 else -mask.value
    return number, size if size & (size - 1) == 0 else None, mask.value < 0


_WORD, _LONGEST = 63, 128


def is_taken_for_zero(left: VariableTracker, right: VariableTracker) -> bool:
    """Return True if torch simplifies `left % right` of floats to 0, as it does for ints if `right`
    is 1."""
    classes = left.cls, right.cls
    if not (
        any(cls is float for cls in classes)
        and all(cls is float or cls is int or cls is bool for cls in classes)
    ):
        return False  # what `%` does is up to another class, as that of a text
    return bool((right.value if type(right) is ConstantTracker else _known(right)) == 1)


def _known(vt: VariableTracker) -> object:
    if is_a(vt, NumberTracker):
        return vt.example.node.hint
    return vt.value if type(vt) is ConstantTracker and vt.cls in (int, bool) else None
