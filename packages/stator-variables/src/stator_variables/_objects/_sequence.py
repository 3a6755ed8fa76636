"""Indices and searches that lists, tuples and deques have in common: for `_sequence_methods`.

Objects/listobject.c, Objects/tupleobject.c, Modules/_collectionsmodule.c.
"""

from collections import deque
from typing import Any

import torch
from stator_bytecode import OperationSteps, settle

from stator_variables._objects._indexing import is_size
from stator_variables._objects._lookup import defines, overrides
from stator_variables._objects._program_error import complain, throw
from stator_variables._objects._tuple import SequenceTracker, TupleTracker
from stator_variables._pure import NUMPY
from stator_variables._space import Space
from stator_variables._tracker import VariableTracker, is_a
from stator_variables._trackers import (
    BuiltinTracker,
)


def index_in(
    t: Space,
    vt: SequenceTracker,
    key: VariableTracker,
    complaint: str = "list assignment index out of range",
) -> int:
    """Return an index that an item has, as a Python int."""
    if (index := t.index_of(key)) is None:
        name = vt.base.__name__
        complain(t, TypeError, f"{name} indices must be integers or slices, not ", key.cls)
    return checked(vt, index, complaint)


def checked(vt: SequenceTracker, index: int, complaint: str) -> int:
    if not is_size(index):
        throw(IndexError, "cannot fit 'int' into an index-sized integer")
    if not -len(vt.items) <= index < len(vt.items):
        throw(IndexError, complaint)
    return index


def is_plain_sequence(t: Space, vt: SequenceTracker) -> bool:
    """Return True for a list or tuple that C goes through by its items, whatever is done
    meanwhile."""
    if not is_a(vt, SequenceTracker) or vt.base is deque:
        return False
    return not overrides(t, vt.cls, "__iter__", "__len__")


def find(
    t: Space, vt: SequenceTracker, item: VariableTracker, start: int, stop: int | None
) -> OperationSteps:
    """The first position of an equal item, or None.

    The list may change under the comparisons, as in C.
    """
    index, structure = start, vt.structure
    while index < len(vt.items) and (stop is None or index < stop):
        found = yield from settle(t.equal(vt.items[index], item))
        if vt.base is deque and vt.structure != structure:
            raise t.unsupported(
                "list-changed-during-comparison", "a deque that is changed while it is searched"
            )
        if found:
            return index
        index += 1
    return None


def place_of(
    t: Space,
    vt: SequenceTracker,
    item: VariableTracker,
    start: int,
    stop: int | None,
    complaint: str,
) -> OperationSteps:
    """`find`, which raises ValueError where there is no equal item."""
    if (at := (yield from find(t, vt, item, start, stop))) is None:
        text = (yield from settle(t.convert(item, "r"))).constant() if "{}" in complaint else ""
        throw(ValueError, complaint.format(text))
    return at


_INTEGERS = int if NUMPY is None else int | NUMPY.integer


def size_of(t: Space, items: list[Any]) -> TupleTracker:
    """Return a `torch.Size`: ints as they are, and the `__index__` of other items."""
    return TupleTracker([_dimension(t, index, vt) for index, vt in enumerate(items)], torch.Size)


def _dimension(t: Space, index: int, vt: VariableTracker) -> VariableTracker:
    if issubclass(vt.cls, _INTEGERS):
        return t.call(BuiltinTracker(int), [vt]) if vt.cls is bool else vt
    if not defines(t, vt.cls, "__index__"):
        begun = f"torch.Size() takes an iterable of 'int' (item {index} is '"
        complain(t, TypeError, begun, vt.cls, "')")
    raise t.unsupported("index-object", f"a {vt.cls.__name__} as an item of a torch.Size")


def times(t: Space, vt: SequenceTracker, factor: VariableTracker) -> int:
    if (found := t.index_of(factor)) is None:
        complain(t, TypeError, "can't multiply sequence by non-int of type '", factor.cls, "'")
    if found * len(vt.items) > _LARGEST:
        raise t.unsupported("too-large", f"a {vt.base.__name__} of {found * len(vt.items)} items")
    return found


_LARGEST = 1 << 20
"""More items than this are not made while tracing: each would be followed on its own."""


def sliced(vt: SequenceTracker, part: slice) -> list[Any]:
    if part.step == 0:
        throw(ValueError, "slice step cannot be zero")
    items: list[Any] = vt.items[part]
    return items
