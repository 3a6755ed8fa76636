"""Pure functions on constants, called while tracing."""

import enum
from typing import Any

from stator_variables import _pure
from stator_variables._objects import _number, _number_of_numpy
from stator_variables._objects._lookup import rely_on_method
from stator_variables._objects._new_values import computed
from stator_variables._pure import is_number_of_numpy
from stator_variables._space import Space
from stator_variables._tensors import _symbolic
from stator_variables._tracker import MISSING, Args, Kwargs, VariableTracker


def fold(t: Space, target: Any, args: Args, kwargs: Kwargs) -> Any:
    """A pure function's result on constants, as a tracker; MISSING when it is not pure or they are
    not constants."""
    if not _pure.is_pure(target):
        return MISSING
    if not kwargs and (found := _number_of_numpy.computed(t, target, args)) is not MISSING:
        return found
    values = [arg.constant() for arg in args]
    named = {name: arg.constant() for name, arg in kwargs.items()}
    given = [*values, *named.values()]
    if any(v is MISSING for v in given) or _pure.runs_user_code(target, given):
        return MISSING
    for cls, name in _pure.methods_of_texts(target, given):
        rely_on_method(t, cls, name)
    return as_given(computed(t, target, *values, **named), *args, *kwargs.values())


def as_given(result: Any, *operands: Any) -> Any:
    """A result that is one of the operands, such as that of `max`: then it stays the object that it
    is."""
    if result.is_known:
        for vt in operands:
            if vt.is_known and vt.source is not None and vt.value is result.value:
                return vt
    return result


def operate(t: Space, function: object, *operands: Any) -> Any:
    """Compute an operator of constants; MISSING where one is none, or of a class whose operators
    may be Python code."""
    if not are_plain(*operands):
        return MISSING
    return as_given(computed(t, function, *(vt.value for vt in operands)), *operands)


def are_plain(*vts: VariableTracker) -> bool:
    """Return True for constants, except those of user classes (enum members)."""
    return all(vt.is_known and not issubclass(vt.cls, enum.Enum) for vt in vts)


def fold_numbers(t: Space, target: Any, args: Args, kwargs: Kwargs) -> Any:
    """`fold`, with symbolic numbers among the arguments: computed in the graph where possible, else
    made constants."""
    if not _number.has_numbers([*args, *kwargs.values()]):
        return fold(t, target, args, kwargs)
    found = _symbolic.apply(t, target, args, kwargs)
    if is_number_of_numpy(target) and not kwargs:
        found = _number_of_numpy.computed(t, target, args, is_of_numpy=True)
    if found is not MISSING or not _pure.is_pure(target):
        return found
    named = {name: _number.as_constant(t, arg) for name, arg in kwargs.items()}
    return fold(t, target, [_number.as_constant(t, arg) for arg in args], named)
