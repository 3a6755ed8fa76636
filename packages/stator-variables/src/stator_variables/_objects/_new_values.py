"""Trackers of values that are made while tracing."""

from typing import Any

from stator_variables import _pure
from stator_variables._objects._dict import DictTracker
from stator_variables._objects._list import ListTracker
from stator_variables._objects._program_error import as_program_error
from stator_variables._objects._set import SetTracker
from stator_variables._objects._tuple import TupleTracker
from stator_variables._runtime._message_filter import filtered
from stator_variables._space import Space
from stator_variables._tracker import VariableTracker
from stator_variables._trackers import ClassTracker, ConstantTracker


def fresh(t: Space, value: Any) -> VariableTracker:
    """A tracker for a value made while tracing out of constants."""
    if type(value) is tuple:
        return TupleTracker([fresh(t, item) for item in value])
    if type(value) is list:
        return ListTracker([fresh(t, item) for item in value])
    if type(value) is dict:
        entries = {key: (fresh(t, key), fresh(t, item)) for key, item in value.items()}
        return DictTracker(dict, entries, complete=True)
    if type(value) in (set, frozenset):
        items = {item: fresh(t, item) for item in value}
        return SetTracker(type(value), items, [("update", ConstantTracker(value))])
    if isinstance(value, type):
        return ClassTracker(value)
    # each call has to make one of its own
    if _pure.NUMPY is not None and isinstance(value, _pure.NUMPY.ndarray):
        raise t.unsupported("numpy", "an operation on a number of NumPy that gives an array")
    return ConstantTracker(value)


def new_dict(items: dict[str, Any]) -> DictTracker:
    """A new dict with string keys."""
    return DictTracker(
        dict,
        {name: (ConstantTracker(name), value) for name, value in items.items()},
        complete=True,
    )


def computed(t: Space, function: Any, /, *values: object, **named: object) -> VariableTracker:
    """The tracker of what a pure function gives for constants; what it raises is the program's."""
    try:
        # `~True`, a division by zero of NumPy: to be issued on each call
        with filtered("error", ""):
            found = function(*values, **named)
    except Warning as warning:
        raise t.unsupported("warning", f"a computation of which Python warns: {warning}") from None
    except Exception as error:
        raise as_program_error(t, error) from None
    return fresh(t, found)
