"""Methods that tuples, lists, ranges and deques have in common."""

import enum
import sys
from collections import deque
from typing import Any

import torch
from stator_bytecode import OperationSteps, Result, operation, settle

from stator_variables._objects._indexing import slice_of
from stator_variables._objects._iterators._sequence import (
    DequeIteratorTracker,
    SequenceIteratorTracker,
)
from stator_variables._objects._lookup import refuse_overridden
from stator_variables._objects._method_table import MethodTable, comparisons, opened
from stator_variables._objects._program_error import complain, throw
from stator_variables._objects._representation import joined, shown
from stator_variables._objects._sequence import find, index_in, place_of, size_of, sliced, times
from stator_variables._objects._tuple import SequenceTracker, TupleTracker
from stator_variables._space import Space
from stator_variables._tracker import MISSING, VariableTracker, is_a
from stator_variables._trackers import (
    NOT_IMPLEMENTED,
    BuiltinTracker,
    ConstantTracker,
    NumberTracker,
)

methods = MethodTable("sequence method")


# -- iteration -------------------------------------------------------------------------------------
@methods.handles(list.__iter__, tuple.__iter__)
def iterate(t: Space, vt: SequenceTracker) -> SequenceIteratorTracker:
    return SequenceIteratorTracker(type(iter(vt.base())), 0, vt)


@methods.handles(deque.__iter__)
def iterate_deque(t: Space, vt: SequenceTracker) -> DequeIteratorTracker:
    return DequeIteratorTracker(vt)


# -- searching -------------------------------------------------------------------------------------
@methods.handles(list.__contains__, tuple.__contains__, deque.__contains__)
@operation
def contains(t: Space, vt: SequenceTracker, item: VariableTracker) -> OperationSteps:
    return ConstantTracker((yield from find(t, vt, item, 0, None)) is not None)


@methods.handles(list.index, tuple.index)
@methods.handles(deque.index, takes=(1, 3))
@operation
def index(
    t: Space, vt: SequenceTracker, item: VariableTracker, *bounds: VariableTracker
) -> OperationSteps:
    start, stop = (_bound(t, vt, bound) for bound in (*bounds, None, None)[:2])
    complaint = _absent_from(vt.base)
    return ConstantTracker((yield from place_of(t, vt, item, start or 0, stop, complaint)))


def _absent_from(cls: type) -> str:
    name = cls.__name__
    shows_item = cls is not tuple and sys.version_info < (3, 14)
    return f"{{}} is not in {name}" if shows_item else f"{name}.index(x): x not in {name}"


def _bound(t: Space, vt: SequenceTracker, bound: VariableTracker | None) -> int | None:
    if bound is None:
        return None
    if (found := t.index_of(bound)) is None:
        throw(TypeError, "slice indices must be integers or have an __index__ method")
    return max(found + len(vt.items), 0) if found < 0 else found


@methods.handles(list.count, tuple.count, deque.count, takes=1)
@operation
def count(t: Space, vt: SequenceTracker, item: VariableTracker) -> OperationSteps:
    found, start = 0, 0
    while (at := (yield from find(t, vt, item, start, None))) is not None:
        found, start = found + 1, at + 1
    return ConstantTracker(found)


# -- operators -------------------------------------------------------------------------------------
@methods.handles(list.__add__, tuple.__add__)
def add(t: Space, left: SequenceTracker, right: SequenceTracker) -> VariableTracker:
    right = opened(right)
    if not is_a(right, SequenceTracker) or right.base is not left.base:
        if left.cls is torch.Size:  # which raises an error of its own
            raise t.unsupported("bad-arguments", f"torch.Size + {right.cls.__name__}")
        name = left.base.__name__
        complain(t, TypeError, f'can only concatenate {name} (not "', right.cls, f'") to {name}')
    for whole, other in ((right, left), (left, right)):
        if whole.cls is tuple and not other.items:  # nothing to add: the same tuple
            return whole
    items = [*left.items, *right.items]
    return size_of(t, items) if left.cls is torch.Size else type(left)(items, left.base)


@methods.handles(list.__mul__, tuple.__mul__, list.__rmul__, tuple.__rmul__)
def mul(t: Space, vt: SequenceTracker, factor: VariableTracker) -> VariableTracker:
    count = times(t, vt, factor)
    cls = torch.Size if vt.cls is torch.Size else vt.base
    return vt if count == 1 and vt.cls is tuple else type(vt)(vt.items * count, cls)


@methods.handles_each(comparisons(list, tuple, deque))
def compare(t: Space, left: SequenceTracker, right: VariableTracker, of: str) -> Result:
    right = opened(right)
    if not is_a(right, SequenceTracker) or right.base is not left.base:
        return NOT_IMPLEMENTED
    if left.base is deque:
        refuse_overridden(t, left, "__iter__")
        refuse_overridden(t, right, "__iter__")
    differ = of in ("==", "!=") and len(left.items) != len(right.items)
    if differ and (left.base is not tuple or _are_silent([*left.items, *right.items])):
        return ConstantTracker(of == "!=")
    return _compare(t, left, right, of)


def _are_silent(items: list[Any]) -> bool:
    """Return True if comparisons of these are unobservable: C also compares tuples of different
    lengths item by item."""
    return all(
        is_a(vt, NumberTracker | ConstantTracker) and not issubclass(vt.cls, enum.Enum)
        for vt in items
    )


@operation
def _compare(
    t: Space, left: SequenceTracker, right: SequenceTracker, symbol: str
) -> OperationSteps:
    """The first pair that differs decides (`list_richcompare`); of deques, compared again
    (`deque_richcompare`)."""
    at, is_deque = 0, left.base is deque
    while at < len(left.items) and at < len(right.items):
        equal = yield from settle(t.equal(left.items[at], right.items[at]))
        # the comparison may have emptied them
        if not equal and at < min(len(left.items), len(right.items)):
            if symbol in ("==", "!=") and not is_deque:
                return ConstantTracker(symbol == "!=")
            found = yield from settle(t.compare(symbol, left.items[at], right.items[at]))
            return ConstantTracker((yield from settle(t.truth(found)))) if is_deque else found
        at += 1
    first, second = ConstantTracker(len(left.items)), ConstantTracker(len(right.items))
    return (yield from settle(t.compare(symbol, first, second)))


# -- tuples ----------------------------------------------------------------------------------------
@methods.handles(tuple.__getitem__, takes=1)
def getitem(t: Space, vt: SequenceTracker, key: VariableTracker) -> VariableTracker:
    if (part := slice_of(t, key)) is None:
        return vt.items[index_in(t, vt, key, "tuple index out of range")]
    items = sliced(vt, part)
    if vt.cls is tuple and part.indices(len(vt.items)) == (0, len(vt.items), 1):
        return vt
    return TupleTracker(items, torch.Size if vt.cls is torch.Size else tuple)


@methods.handles(tuple.__len__)
def length(t: Space, vt: SequenceTracker) -> ConstantTracker:
    return ConstantTracker(len(vt.items))


@methods.handles(tuple.__hash__)
def hash_(t: Space, vt: SequenceTracker) -> Result:
    """Return the hash of the builtin class, without that of a subclass."""
    return t.call(BuiltinTracker(hash), [TupleTracker(vt.items)])


@methods.handles(vars(tuple)["__getnewargs__"])
def getnewargs(t: Space, vt: SequenceTracker) -> Result:
    return TupleTracker([TupleTracker(vt.items)])


@methods.handles(tuple.__repr__)
def repr_(t: Space, vt: SequenceTracker) -> Result:
    return shown(t, vt, "(...)", vt.items, "(", ",)" if len(vt.items) == 1 else ")")


@methods.handles(torch.Size.__repr__)
def size_repr(t: Space, vt: SequenceTracker) -> Result:
    known = t.fold(torch.Size.__repr__, [vt], {})  # C writes no number of more than 64 bits
    return joined(t, vt.items, "torch.Size([", "])") if known is MISSING else known
