"""Indices and slices of sequences, as C reads them."""

import sys
from typing import Any

from stator_variables import _trackers as k
from stator_variables._objects._program_error import complain, throw
from stator_variables._space import Space
from stator_variables._tracker import VariableTracker, is_a


def is_size(index: int) -> bool:
    """Return True if the number fits into a C `Py_ssize_t`."""
    return -sys.maxsize - 1 <= index <= sys.maxsize


def needed_index(t: Space, key: VariableTracker) -> int:
    if (index := t.index_of(key)) is None:
        complain(t, TypeError, "'", key.cls, "' object cannot be interpreted as an integer")
    if not is_size(index):
        throw(OverflowError, "Python int too large to convert to C ssize_t")
    return index


def slice_of(t: Space, key: Any) -> slice | None:
    """A slice as a Python one, None when `key` is no slice."""
    value = key.constant()
    known = isinstance(value, slice)
    if not known and not is_a(key, k.SliceTracker):
        return None
    parts = map(k.ConstantTracker, (value.start, value.stop, value.step)) if known else key.parts
    return slice(*(_slice_part(t, part) for part in parts))


def _slice_part(t: Space, part: VariableTracker) -> int | None:
    if k.is_none(part):
        return None
    if (index := t.index_of(part)) is None:
        throw(TypeError, "slice indices must be integers or None or have an __index__ method")
    return index
