"""Iteration: iterators over trackers, unpacking, and draining an iterable into a list."""

import collections
import types
from collections.abc import Callable
from typing import Any

from stator_bytecode import (
    NULL,
    VALUE,
    Invoke,
    OperationSteps,
    Result,
    Then,
    operation,
    settle,
)
from stator_guards import Source

from stator_variables._objects._iterators._item import ItemIteratorTracker
from stator_variables._objects._iterators._sequence import SequenceIteratorTracker
from stator_variables._objects._lookup import (
    defines,
    guarded_lookup,
    is_app_level,
    type_lookup,
)
from stator_variables._objects._program_error import attempt, complain, throw
from stator_variables._protocols import _attributes
from stator_variables._runtime._contents import plain_lookup
from stator_variables._space import Space
from stator_variables._tensors import _torch_calls
from stator_variables._tracker import MISSING, VariableTracker
from stator_variables._trackers import ConstantTracker


def get_iterator(t: Space, vt: VariableTracker) -> Result:
    """`iter(vt)`: a Result."""
    if (native := vt.iter(t)) is not MISSING:
        return native
    raw, source = type_lookup(t, vt.cls, "__iter__")
    if source is not None and raw is not None:
        if _attributes.may_refuse(t, raw):
            return _iterator_if_bound(t, raw, source, vt)
        if type(raw) is types.WrapperDescriptorType and raw in t.handlers:
            return t.handlers[raw](t, [vt], {})
        given = t.call(t.bind(raw, source, vt, "__iter__"), [])
        return t.completed(given, Then("iter"))
    return _iterator_by_items(t, vt, raw)


@operation
def _iterator_if_bound(t: Space, raw: Any, source: Source, vt: Any) -> OperationSteps:
    if (bound := (yield from _attributes.bound_or_none(t, raw, source, vt, "__iter__"))) is None:
        return _iterator_by_items(t, vt, raw)
    return (yield from settle(t.completed(t.call(bound, []), Then("iter"))))


def _iterator_by_items(t: Space, vt: VariableTracker, raw: Any) -> ItemIteratorTracker:
    if raw is not None and is_sequence(t, vt):
        return ItemIteratorTracker(vt)
    complain(t, TypeError, "'", vt.cls, "' object is not iterable")


def is_sequence(t: Space, vt: VariableTracker) -> bool:
    """Implement `PySequence_Check`: `__getitem__` of a class of C may be that of a mapping, which
    is unknown."""
    if vt.base in (list, tuple, collections.deque):
        return True
    if isinstance(guarded_lookup(t, vt.cls, "__getitem__"), types.WrapperDescriptorType):
        raise t.unsupported(
            "foreign-object", f"iteration over a {vt.cls.__qualname__} by its items"
        )
    return defines(t, vt.cls, "__getitem__")


def iterator_of_call(t: Space, found: VariableTracker) -> VariableTracker:
    """The result of `__iter__`, which has to be an iterator."""
    if not defines(t, found.cls, "__next__"):
        complain(t, TypeError, "iter() returned non-iterator of type '", found.cls, "'")
    return found


def iterate_tensor(t: Space, vt: Any) -> Any:
    """`iter(vt)`: of its parts, which the graph computes at once."""
    if vt.example.dim() == 0:
        throw(TypeError, "iteration over a 0-d tensor")
    parts = _torch_calls.record(t, "unbind", [vt, ConstantTracker(0)])
    return SequenceIteratorTracker(type(iter(())), 0, parts)


def iterate_array(t: Space, vt: Any) -> VariableTracker:
    """`iter(vt)`, or MISSING for an array without dimensions."""
    return ItemIteratorTracker(vt) if vt.tensor.example.dim() > 0 else MISSING


def next_value(t: Space, it: VariableTracker) -> Result:
    """The next item; NULL when exhausted; a Resume for a generator; a Pending where items need
    calls."""
    return it.next(t) if it.steps_to_null else _user_next(t, it)


def _user_next(t: Space, it: VariableTracker) -> Result:
    """A `__next__` of Python's is a frame that waits with its caller where it breaks."""
    if isinstance(plain_lookup(it.cls, "__next__"), types.FunctionType) and not is_app_level(
        it.cls
    ):
        outcome = it.next(t)
        if type(outcome) is Invoke and outcome.then is VALUE:
            return Invoke(outcome.frame, Then("next"))
        return _null_at_end(t, lambda _: outcome)
    return _null_at_end(t, it.next)


@operation
def _null_at_end(t: Space, step: Callable[[Space], Result]) -> OperationSteps:
    return (yield from attempt(t, StopIteration, NULL, step, t))


ROOM = 1 << 20
"""C makes room for as many items, and may find that there is none."""
