"""Handlers of the builtin functions on values: reductions, lengths, iteration, numbers, text."""

import builtins
import functools
import math
import operator
import sys
import types
from collections.abc import Sequence
from typing import Any

import torch
from stator_bytecode import Result, after
from torch import Tensor

from stator_variables._applevel import _methods, _reductions
from stator_variables._builtin._iterator_functions import has_total_order
from stator_variables._objects import _number
from stator_variables._objects._arity import ANY_COUNT
from stator_variables._objects._hash_results import ALONE
from stator_variables._objects._hashing import is_known
from stator_variables._objects._identity_number import IdTracker
from stator_variables._objects._lookup import defines, guarded_lookup
from stator_variables._objects._method_table import MethodTable, app_level, as_constant
from stator_variables._objects._program_error import complain, throw
from stator_variables._objects._tuple import SequenceTracker, TupleTracker
from stator_variables._protocols import _containers, _folding, _operators
from stator_variables._space import Space
from stator_variables._tensors import _torch_calls
from stator_variables._trace._overrides import Overrides
from stator_variables._tracker import MISSING, Args, Kwargs, VariableTracker, is_a
from stator_variables._trackers import NONE, ClassTracker, ConstantTracker, is_none

methods = MethodTable("builtin")
_FALSE = ConstantTracker(False)


def _replace(real: Any, function: object) -> None:
    takes = _TAKES.get(real)

    @methods.handles(real, takes=takes, named=("key", "default") if takes == (1, ANY_COUNT) else ())
    def run(t: Space, *given: VariableTracker, **kwargs: VariableTracker) -> Result:
        args = [_in_any_order(t, real, given[0], kwargs)] if len(given) == 1 else list(given)
        folded = t.fold(real, args, kwargs)
        if folded is MISSING and real in _IN_GRAPH and not kwargs:
            values = args if len(args) > 1 else _contents(args[0])
            if len(values) > 1 and _are_compared_in_graph(values):
                return functools.reduce(
                    lambda a, b: _torch_calls.record(t, _IN_GRAPH[real], [a, b]), values
                )
        return app_level(t, function, args, kwargs) if folded is MISSING else folded


_TAKES = {min: (1, ANY_COUNT), max: (1, ANY_COUNT), functools.reduce: (2, 3)}
_IN_GRAPH = {min: torch.sym_min, max: torch.sym_max}


def _contents(vt: Any) -> Sequence[Any]:
    """Return the items of a list or tuple; nothing for another iterable."""
    return vt.items if is_a(vt, SequenceTracker) and vt.cls in (list, tuple) else ()


def _are_compared_in_graph(vts: Sequence[Any]) -> bool:
    """Return True for ints, for floats that are finite inputs or constants, and for floats some of
    which no guard can be about.

    With other numbers among them, the class of the result would depend on the values.
    """
    if not all(vt.is_symbolic or vt.is_known for vt in vts):
        return False
    classes = {vt.cls for vt in vts}
    if classes == {float}:
        return any(map(_is_without_hint, vts)) or all(map(_is_finite, vts))
    return classes == {int}


def _is_finite(vt: Any) -> bool:
    """Return True for a float that is no NaN, with which the result depends on the order."""
    if not vt.is_symbolic:
        return math.isfinite(vt.value)
    return vt.source is not None or vt.traced.node.target in _IN_GRAPH.values()


def _is_without_hint(vt: Any) -> bool:
    return vt.is_symbolic and not vt.example.node.has_hint()


def _in_any_order(t: Space, real: object, iterable: Any, kwargs: Kwargs) -> Any:
    """A set of strings or ints as a tuple, for functions that give the same whatever the order
    is."""
    if not kwargs and has_total_order(t, iterable):
        values = list(iterable.entries.values())
        if real is not sum or all(item.cls is int for item in values):
            return TupleTracker(values)
    return iterable


for _reduction in ("all", "any", "sum", "min", "max"):
    _replace(getattr(builtins, _reduction), getattr(_reductions, _reduction))
_replace(functools.reduce, _reductions.reduce)


methods.handles(len)(_containers.length)


@methods.handles(bool, takes=(0, 1))
def handle_bool(t: Space, vt: VariableTracker = _FALSE) -> Result:
    if vt.is_symbolic and vt.cls is bool:
        return vt
    if vt.is_symbolic:
        return _torch_calls.record(t, operator.ne, [vt, ConstantTracker(0)])
    if vt.base is Tensor and t.policy.capture_data:
        return handle_bool(t, _torch_calls.record(t, "item", [vt]))
    return as_constant(t.truth(vt))


@methods.handles(Tensor.tolist, takes=0)
def tensor_to_list(t: Space, vt: VariableTracker) -> Result:
    if not t.policy.capture_data:  # one break, not one for each number
        raise t.unsupported(
            "data-access",
            "the values of a tensor as a list",
            "pass capture_data=True in the options",
        )
    return app_level(t, _methods.tolist, [vt])


@methods.handles(Tensor.type, takes=(0, 2), named=("dtype", "non_blocking"))
def tensor_type(
    t: Space, vt: Any, dtype: Any = NONE, non_blocking: VariableTracker = _FALSE
) -> Result:
    """The name of the old class for this dtype and device; or a conversion, whose node names an old
    class."""
    if is_none(dtype):
        return ConstantTracker(vt.example.type())
    if dtype.base is type and type(dtype.value) is type(torch.FloatTensor):
        dtype = ConstantTracker(f"{dtype.value.__module__}.{dtype.value.__name__}")
    return _torch_calls.record(t, "type", [vt, dtype, non_blocking])


@methods.handles(int, takes=(0, 2), named=("base",))
def handle_int(t: Space, *args: VariableTracker, **base: VariableTracker) -> Result:
    return _converted(t, int, "__int__", args, base)


@methods.handles(float)
def handle_float(t: Space, *args: VariableTracker) -> Result:
    return _converted(t, float, "__float__", args, {})


def _converted(t: Space, cls: type, method: str, args: Args, kwargs: Kwargs) -> Result:
    if (folded := t.fold(cls, list(args), kwargs)) is not MISSING:
        return folded
    if len(args) != 1 or kwargs:
        raise t.unsupported(
            "bad-arguments", f"{cls.__name__}() with a base that is not known while tracing"
        )

    if (vt := args[0]).is_symbolic:
        return (
            vt
            if vt.cls is cls
            else _torch_calls.record(t, getattr(torch, f"sym_{cls.__name__}"), [vt])
        )
    if vt.base is Tensor and not t.state(Overrides).modes:
        return _converted(t, cls, method, [_torch_calls.record(t, "item", [vt])], {})

    bound = t.special(vt, method)
    if bound is MISSING and cls is int and defines(t, vt.cls, "__index__"):
        return _containers.as_index(t, vt)
    if bound is MISSING and defines(t, vt.cls, "__index__", "__trunc__"):
        raise t.unsupported(
            "number-object", f"{cls.__name__}() of a {vt.cls.__name__}, which has no {method}"
        )
    if bound is MISSING and vt.cls in (bytearray, memoryview):
        raise t.unsupported("string-of-unknown", f"{cls.__name__}() of a {vt.cls.__name__}")

    if bound is MISSING:
        what = (
            "a string or a real number"
            if cls is float
            else "a string, a bytes-like object or a real number"
        )
        complain(t, TypeError, f"{cls.__name__}() argument must be {what}, not '", vt.cls, "'")
    return after(t.call(bound, []), lambda found: _exactly(t, cls, found))


def _exactly(t: Space, cls: type, found: VariableTracker) -> VariableTracker:
    """Return the result of `__int__` or `__float__`; C warns or raises for one that is no int or
    float."""
    if found.cls is not cls:
        raise t.unsupported(
            "bad-arguments", f"{cls.__name__}() of an object that gives a {found.cls.__name__}"
        )
    return found


@methods.handles(abs)
def handle_abs(t: Space, vt: VariableTracker) -> Result:
    if _torch_calls.is_in_graph(t, vt) and vt.cls is not bool:
        return _torch_calls.record(t, operator.abs, [vt])
    if (folded := _folding.fold_numbers(t, abs, [vt], {})) is not MISSING:
        return folded
    return t.call_slot(vt, "__abs__", [], "bad operand type for abs(): '{}'")


@methods.handles(divmod)
def handle_divmod(t: Space, left: VariableTracker, right: VariableTracker) -> Result:
    if (folded := t.fold(divmod, [left, right], {})) is not MISSING:
        return folded
    numbers = all(vt.cls in (bool, int, float) for vt in (left, right))
    if numbers and all(vt.is_symbolic or vt.is_known for vt in (left, right)):
        return TupleTracker([t.binary(symbol, left, right) for symbol in ("//", "%")])
    return _operators.slots(t, "divmod", "divmod()", left, right)


@methods.handles(round)
def handle_round(t: Space, number: VariableTracker, ndigits: VariableTracker = NONE) -> Result:
    given = [] if is_none(ndigits) else [ndigits]
    if (folded := t.fold(round, [number, *given], {})) is not MISSING:
        return folded
    return t.call_slot(number, "__round__", given, "type {} doesn't define __round__ method")


@methods.handles(pow)
def handle_pow(
    t: Space, base: VariableTracker, exp: VariableTracker, mod: VariableTracker = NONE
) -> Result:
    if is_none(mod):
        return t.binary("**", base, exp)
    if (folded := _folding.fold_numbers(t, pow, [base, exp, mod], {})) is not MISSING:
        return folded
    raise t.unsupported("number-object", "pow() with three arguments that are not constants")


# -- hash ------------------------------------------------------------------------------------------
@methods.handles(hash)
def handle_hash(t: Space, obj: VariableTracker) -> Result:
    """Known for constants; a number that depends on where an object lies is for nobody to see."""
    vt = _number.as_constant(t, obj)
    if isinstance(guarded_lookup(t, vt.cls, "__hash__"), types.FunctionType):
        number = t.call(t.special(vt, "__hash__"), [])
        return after(number, lambda found: _checked_hash(t, vt, found.constant()))
    if not is_a(vt, ClassTracker | IdTracker):
        hashed = t.key_of(vt, ALONE)  # raises TypeError for what has no hash
        if (folded := t.fold(hash, [vt], {})) is not MISSING:
            return folded
        if vt.base in (tuple, set) and is_known(hashed):
            return ConstantTracker(hash(hashed))
    raise t.unsupported("identity-number", f"hash() of a {vt.cls.__name__}")


def _checked_hash(t: Space, vt: VariableTracker, value: object) -> ConstantTracker:
    """Return the result of a `__hash__` of the program, checked."""
    # one that is too large is hashed itself, and -1 is C's sign of an error
    if isinstance(value, int):
        fits = -sys.maxsize - 1 <= value <= sys.maxsize and value != -1
        return ConstantTracker(int(value) if fits else hash(value))
    if value is MISSING:
        raise t.unsupported("identity-number", f"hash() of a {vt.cls.__name__}")
    throw(TypeError, "__hash__ method should return an integer")
