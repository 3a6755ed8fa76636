"""Numbers of NumPy that are inputs: the graph takes them as Python's, the entry computes with
NumPy.

`n * 2 + 1`, `np.sqrt(n)`, `n > 3` and `int(n)` are pure functions of what the entry can read, so
NumPy itself computes them when the entry starts, by its own rules for classes, overflow and errors.
The result is read like any other value.

    v0 = sqrt_1(n)            # np.float32
    v1 = item_2(v0)           # the number that the graph takes
"""

import functools
import operator
import sys
from collections.abc import Callable, Container
from typing import Any

import torch
from stator_guards import CallSource, CapturedSource, Custom, LiteralSource, Source

from stator_variables._objects._number import (
    build_atom,
    build_number,
    build_scalar,
    symbolic_number,
)
from stator_variables._pure import NUMBERS, NUMPY, TRUTHS, is_number_of_numpy
from stator_variables._space import Space
from stator_variables._tracker import MISSING, Args, VariableTracker, is_a
from stator_variables._trackers import (
    ArrayTracker,
    ClassTracker,
    ConstantTracker,
    NumberTracker,
    ScalarTracker,
)

LONGEST = 30
"""The most operations that the entry computes one after the other: after them it is a constant."""


def number_of(t: Space, vt: VariableTracker) -> VariableTracker:
    """Return the number of Python that torch takes a number of NumPy for; anything else as it
    is."""
    if not is_a(vt, ScalarTracker):
        return vt
    source, real = CallSource(NUMPY.generic.item, vt.source), vt.real.item()
    if not t.policy.number_is_symbolic(source, real, True):
        return build_number(t, real, source)
    if vt.real.dtype.kind == "u" and vt.real.dtype.itemsize == 8:
        t.guard(source, _IS_WORD)
    return symbolic_number(t, real, source)


def number_of_array(t: Space, vt: Any, dtypes: Container[torch.dtype]) -> Any:
    """Return the number of Python that torch takes a number of NumPy for which the graph computes.

    Anything else, and one of another dtype, is returned as it is.
    """
    if not is_a(vt, ArrayTracker) or vt.cls is NUMPY.ndarray or not t.policy.unbacked_numbers:
        return vt
    traced, dtype = vt.tensor.traced, vt.tensor.example.dtype
    if dtype not in dtypes:
        return vt
    if dtype is torch.bool:  # torch takes a truth of NumPy for a float
        traced, dtype = t.graph.call("to", [traced, torch.float64], {}), torch.float64
    return NumberTracker(t.graph.read_number(traced), float if dtype.is_floating_point else int)


FLOATS = (torch.float32, torch.float64)
"""Dtypes of numbers that are no size and no position for any function."""


def _is_word(number: int) -> bool:
    return number <= sys.maxsize


_IS_WORD = Custom("{fn}({value})", _is_word, "no larger than torch takes numbers")


def computed(
    t: Space, function: Callable[..., Any], args: Args, *, is_of_numpy: bool = False
) -> Any:
    """Return what a pure function gives for such a number, beside values that are known or read.

    A function `is_of_numpy` gives one for a number of Python as well. MISSING, where that is no
    number, or raises or warns: for others the number is a constant, and the guards depend on its
    value.
    """
    scalars = [vt for vt in args if is_a(vt, ScalarTracker)]
    if not scalars and not (is_of_numpy and any(vt.is_symbolic for vt in args)):
        return MISSING
    steps = 1 + max((vt.steps for vt in scalars), default=0)
    exact = function if function in SILENT else _refusing(function)
    return MISSING if steps > LONGEST else computed_early(t, exact, args, steps)


def computed_early(t: Space, exact: Callable[..., Any], args: Args, steps: int = 0) -> Any:
    """Return what the entry computes, in guards as well; MISSING if it cannot read an argument."""
    operands = [_operand(t, vt) for vt in args]
    if MISSING in [source for source, _ in operands]:
        return MISSING
    try:
        result = exact(*(value for _, value in operands))
    except Exception:  # of these numbers: the program's operation raises it again, traced
        return MISSING
    source = CallSource(exact, *(source for source, _ in operands))
    return _read(t, result, source, steps)


def _read(t: Space, result: object, source: Source, steps: int) -> Any:
    """The tracker of a computed number; MISSING for anything else.

    Truths are constants, guarded.
    """
    if type(result) is bool or type(result) in TRUTHS:
        build = build_atom if type(result) is bool else build_scalar
        build(t, result, source)
        return ConstantTracker(result)
    if type(result) in (int, float):
        return build_number(t, result, source, at_once=True)
    if type(result) not in NUMBERS:
        return MISSING
    found: Any = build_scalar(t, result, source)
    found.source, found.real, found.steps = source, result, steps
    return found


SILENT = frozenset({bool, int, float, *(getattr(operator, n) for n in "eq ne lt le gt ge".split())})
"""Functions in which NumPy warns of nothing."""


@functools.cache
def _refusing(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return the function, made to raise where NumPy warns: no guard holds, and the program
    warns."""

    def compute(*values: object) -> object:
        with NUMPY.errstate(all="raise"):
            return function(*values)

    compute.__name__ = getattr(function, "__name__", "compute")
    return compute


def field_of(t: Space, vt: VariableTracker, name: str) -> Any:
    """Return an attribute of a number of NumPy; MISSING where it depends on the whole number."""
    if name in PARTS and is_a(vt, ScalarTracker):
        return computed(t, PARTS[name], [vt])
    if name in OF_CLASS and is_number_of_numpy(vt.cls):
        return ConstantTracker(getattr(vt.cls(), name))
    return MISSING


PARTS = {name: operator.attrgetter(name) for name in ("real", "imag")}
OF_CLASS = frozenset({"dtype", "itemsize", "nbytes", "ndim", "size"})
"""Attributes that all numbers of one class share."""


def _operand(t: Space, vt: VariableTracker) -> tuple[Source | Any, Any]:
    """Return the source of an operand, and its value now."""
    if is_a(vt, ScalarTracker):
        return vt.source, vt.real
    if is_a(vt, NumberTracker):
        source = vt.source or t.graph.source_of(vt.traced, computed=True)
        hint = vt.example.node.hint
        return (MISSING, MISSING) if source is None or hint is None else (source, vt.cls(hint))
    if is_a(vt, ClassTracker):
        return CapturedSource(vt.value.__name__, vt.value), vt.value
    value = vt.constant()
    if type(value) in (bool, int, float, str, type(None)):
        return LiteralSource(value), value
    if is_number_of_numpy(type(value)):
        return CapturedSource(type(value).__name__, value), value
    return MISSING, MISSING
