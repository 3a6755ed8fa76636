"""The operator `is`."""

import weakref
from typing import Any

from stator_guards import (
    AttrSource,
    CallSource,
    DistinctObject,
    IsNone,
    IsNotNone,
    SameObject,
)

from stator_variables._objects import _number
from stator_variables._objects._weakrefs import WeakrefTracker
from stator_variables._pure import NUMBERS, PATHS
from stator_variables._space import Space
from stator_variables._tracker import MISSING, VariableTracker, is_a
from stator_variables._trackers import is_none


def same_object(t: Space, left: Any, right: Any) -> bool:
    """Return `left is right`, guarded if two paths from outside are compared."""
    if left is right:
        t.heap.escaped.add(id(left))  # that two paths lead to it is now relied on
        return True
    if _are_given_numbers(left, right):
        held = left.real is right.real
        t.guard(left.source, (SameObject if held else DistinctObject)(right.source))
        return held
    # of these there is one
    if left.cls is tuple and right.cls is tuple and not (left.items or right.items):
        return True
    if left.is_symbolic or right.is_symbolic:
        if left.cls is not right.cls or left.cls is float:
            return False
        left, right = (
            _number.as_constant(t, left),
            _number.as_constant(t, right),
        )

    if left.is_known and right.is_known:
        return left.cls is right.cls and (left.value is right.value or _same_atom(left, right))
    if issubclass(left.cls, weakref.ref) and all(_is_only_reference(t, vt) for vt in (left, right)):
        return same_object(t, left.target, right.target)
    if left.real is not MISSING and right.real is not MISSING:
        if left.real is right.real:
            return True
        if left.source is not None and right.source is not None and left.cls is right.cls:
            t.guard(left.source, DistinctObject(right.source))
    return False


def _are_given_numbers(left: VariableTracker, right: VariableTracker) -> bool:
    """Two numbers, or texts, of one class that were there before: equal ones may be one object, or
    two."""
    given = all(
        vt.source is not None and type(vt.source) is not CallSource and type(vt.real) in _NUMBERS
        for vt in (left, right)
    )
    return given and left.cls is right.cls


_NUMBERS = (int, float, complex, str, bytes, *NUMBERS, *PATHS)


def _is_only_reference(t: Space, vt: VariableTracker) -> bool:
    """Return True for the weak reference without a callback, of which a live object has one."""
    if not is_a(vt, WeakrefTracker) or vt.source is None:
        return is_a(vt, WeakrefTracker)
    alone = vt.real.__callback__ is None
    t.guard(AttrSource(vt.source, "__callback__"), IsNone() if alone else IsNotNone())
    return alone and not is_none(vt.target)


def _same_atom(left: Any, right: Any) -> bool:
    """Identity of equal immutable values is up to the interpreter; small ints and interned strings
    are shared."""
    return type(left.value) in (int, str) and left.value == right.value
