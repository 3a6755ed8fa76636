"""The methods of list and tuple (Objects/listobject.c, Objects/tupleobject.c)."""

import collections
import enum
from typing import Any

import torch
from stator_bytecode import Raised, operation, settle
from stator_guards import CallSource, Length

from stator_variables import _kinds as k
from stator_variables._builtin._strings import convert
from stator_variables._objects import _list_ends, _sorting
from stator_variables._objects._iterator import IteratorTracker
from stator_variables._objects._list import ListTracker
from stator_variables._objects._lookup import defines, refuse_asked
from stator_variables._objects._method_table import MethodTable, opened, then
from stator_variables._objects._number_builders import symbolic_number
from stator_variables._objects._raising import complain, throw
from stator_variables._objects._tuple import TupleTracker
from stator_variables._protocols import _calls, _containers, _iteration, _operators
from stator_variables._protocols._containers import (
    change_items,
    index_of,
    is_size,
    needed_index,
    replace_items,
    slice_of,
)
from stator_variables._pure import NUMPY
from stator_variables._space import Space
from stator_variables._tracker import MISSING

methods = MethodTable("sequence method")


def base_name(vt: Any) -> str:
    return (
        "tuple"
        if isinstance(vt, TupleTracker)
        else "deque"
        if issubclass(vt.cls, collections.deque)
        else "list"
    )


# -- items ------------------------------------------------------------------------------------------------------------
@methods.handles(list.__getitem__, tuple.__getitem__, takes=1)
def getitem(t: Space, vt: Any, key: Any) -> Any:
    if (part := slice_of(t, key)) is not None:
        return _sliced(vt, part)
    if (item := _list_ends.at_end(t, vt, key)) is not MISSING:
        return item
    return vt.items[_index(t, vt, key, f"{base_name(vt)} index out of range")]


def _index(
    t: Space, vt: Any, key: Any, complaint: str = "list assignment index out of range"
) -> int:
    if (index := index_of(t, key)) is None:
        complain(t, TypeError, f"{base_name(vt)} indices must be integers or slices, not ", key.cls)
    return checked(vt, index, complaint)


def checked(vt: Any, index: int, complaint: str) -> int:
    if not is_size(index):
        throw(IndexError, "cannot fit 'int' into an index-sized integer")
    if not -len(vt.items) <= index < len(vt.items):
        throw(IndexError, complaint)
    return index


def _sliced(vt: Any, part: slice) -> Any:
    if part.step == 0:
        throw(ValueError, "slice step cannot be zero")
    if isinstance(vt, TupleTracker):
        whole = vt.cls is tuple and part.indices(len(vt.items)) == (0, len(vt.items), 1)
        return (
            vt
            if whole
            else TupleTracker(vt.items[part], torch.Size if vt.cls is torch.Size else tuple)
        )
    return ListTracker(vt.items[part], list)


@methods.handles(list.__setitem__)
def setitem(t: Space, vt: Any, key: Any, value: Any) -> Any:
    if (part := slice_of(t, key)) is not None:
        return _set_slice(t, vt, part, value)
    index = _index(t, vt, key)
    change_items(t, vt, lambda items: items.__setitem__(index, value))
    return k.NONE


@operation
def _set_slice(t: Space, vt: Any, part: slice, value: Any) -> Any:
    plain = part.step in (None, 1)
    text = "can only assign an iterable" if plain else "must assign iterable to extended slice"
    found = yield from settle(t.drain(value, saying=text))
    try:
        change_items(t, vt, lambda items: items.__setitem__(part, found))
    except ValueError as error:
        throw(ValueError, *error.args)
    return k.NONE


@methods.handles(list.__delitem__)
def delitem(t: Space, vt: Any, key: Any) -> None:
    where: Any = slice_of(t, key)
    if where is None:
        where = _index(t, vt, key)
    elif where.step == 0:
        throw(ValueError, "slice step cannot be zero")
    change_items(t, vt, lambda items: items.__delitem__(where))


@methods.handles(list.__len__, tuple.__len__, collections.deque.__len__)
def sequence_len(t: Space, vt: Any) -> Any:
    """The length of an unread list is a number that is read: an input of the graph once it has changed."""
    if not _list_ends.is_open(vt) or vt.source is None:
        return k.ConstantTracker(len(vt.items))
    count, source = len(vt.real), CallSource(len, vt.source)
    grown = k.ConstantTracker(len(vt.added) - sum(vt.taken))
    if t.policy.number_is_symbolic(source, count, False):
        return t.binary("+", symbolic_number(t, count, source), grown)
    t.guard(vt.source, Length(count))
    return k.ConstantTracker(count + grown.value)


@methods.handles(list.__contains__, tuple.__contains__, collections.deque.__contains__)
@operation
def contains(t: Space, vt: Any, item: Any) -> Any:
    return k.ConstantTracker((yield from find(t, vt, item, 0, None)) is not None)


def find(t: Space, vt: Any, item: Any, start: int, stop: int | None) -> Any:
    """The first position of an equal item, or None. The list may change under the comparisons, as in C."""
    index, structure = start, getattr(vt, "structure", 0)
    while index < len(vt.items) and (stop is None or index < stop):
        found = yield from settle(t.equal(vt.items[index], item))
        if issubclass(vt.cls, collections.deque) and vt.structure != structure:
            raise t.unsupported(
                "list-changed-during-comparison", "a deque that is changed while it is searched"
            )
        if found:
            return index
        index += 1
    return None


@methods.handles(list.__iter__, tuple.__iter__, collections.deque.__iter__)
def iterate(t: Space, vt: Any) -> Any:
    return _iteration.sequence_iterator(vt)


@methods.handles(list.__reversed__)
def reversed_(t: Space, vt: Any) -> Any:
    return IteratorTracker(type(reversed([])), "reversed", [vt, len(vt.items)])


# -- searching --------------------------------------------------------------------------------------------------------
@methods.handles(list.index, tuple.index)
@methods.handles(collections.deque.index, takes=(1, 3))
@operation
def index(t: Space, vt: Any, item: Any, *bounds: Any) -> Any:
    start, stop = (_bound(t, vt, bound) for bound in (*bounds, None, None)[:2])
    is_tuple = isinstance(vt, TupleTracker)
    complaint = "tuple.index(x): x not in tuple" if is_tuple else f"{{}} is not in {base_name(vt)}"
    return k.ConstantTracker((yield from _found(t, vt, item, start or 0, stop, complaint)))


def _found(t: Space, vt: Any, item: Any, start: int, stop: int | None, complaint: str) -> Any:
    if (at := (yield from find(t, vt, item, start, stop))) is None:
        text = (yield from settle(convert(t, item, "r"))).constant() if "{}" in complaint else ""
        throw(ValueError, complaint.format(text))
    return at


def _bound(t: Space, vt: Any, bound: Any) -> int | None:
    if bound is None:
        return None
    if (found := index_of(t, bound)) is None:
        throw(TypeError, "slice indices must be integers or have an __index__ method")
    return max(found + len(vt.items), 0) if found < 0 else found


@methods.handles(list.count, tuple.count, collections.deque.count, takes=1)
@operation
def count(t: Space, vt: Any, item: Any) -> Any:
    found, start = 0, 0
    while (at := (yield from find(t, vt, item, start, None))) is not None:
        found, start = found + 1, at + 1
    return k.ConstantTracker(found)


# -- operators --------------------------------------------------------------------------------------------------------
@methods.handles(list.__add__, tuple.__add__)
def add(t: Space, left: Any, right: Any) -> Any:
    kind = TupleTracker if isinstance(left, TupleTracker) else ListTracker
    right = opened(right)
    if not isinstance(right, kind) or issubclass(right.cls, collections.deque):
        if left.cls is torch.Size:  # which says it in its own words
            raise t.unsupported("bad-arguments", f"torch.Size + {right.cls.__name__}")
        base = base_name(left)
        complain(t, TypeError, f'can only concatenate {base} (not "', right.cls, f'") to {base}')
    for whole, other in ((right, left), (left, right)):
        if whole.cls is tuple and not other.items:  # nothing to add: the same tuple
            return whole
    items = [*left.items, *right.items]
    return (
        size_of(t, items)
        if left.cls is torch.Size
        else kind(items, tuple if kind is TupleTracker else list)
    )


_INTEGERS = int if NUMPY is None else int | NUMPY.integer


def size_of(t: Space, items: list[Any]) -> Any:
    """What `torch.Size` makes: ints as they are, the int of what has an `__index__`."""
    return TupleTracker([_dimension(t, index, vt) for index, vt in enumerate(items)], torch.Size)


def _dimension(t: Space, index: int, vt: Any) -> Any:
    if issubclass(vt.cls, _INTEGERS):
        return t.call(k.BuiltinTracker(int), [vt], {}) if vt.cls is bool else vt
    if not defines(t, vt.cls, "__index__"):
        complain(
            t,
            TypeError,
            f"torch.Size() takes an iterable of 'int' (item {index} is '",
            vt.cls,
            "')",
        )
    raise t.unsupported("index-object", f"a {vt.cls.__name__} as an item of a torch.Size")


@methods.handles(list.__mul__, tuple.__mul__, list.__rmul__, tuple.__rmul__)
def mul(t: Space, vt: Any, factor: Any) -> Any:
    count = times(t, vt, factor)
    cls = torch.Size if vt.cls is torch.Size else tuple if isinstance(vt, TupleTracker) else list
    return vt if count == 1 and vt.cls is tuple else type(vt)(vt.items * count, cls)


def times(t: Space, vt: Any, factor: Any) -> int:
    if (found := index_of(t, factor)) is None:
        complain(t, TypeError, "can't multiply sequence by non-int of type '", factor.cls, "'")
    if found * len(vt.items) > _LARGEST:
        raise t.unsupported("too-large", f"a {base_name(vt)} of {found * len(vt.items)} items")
    return found


_LARGEST = 1 << 20
"""More items than this are not made while tracing: each would be followed on its own."""


def _comparison(symbol: str, *targets: Any) -> None:
    methods.handles(*targets)(lambda t, left, right: compare(t, left, opened(right), symbol))


for _symbol, (_name, *_) in _operators.COMPARISONS.items():
    _comparison(_symbol, *(getattr(cls, _name) for cls in (list, tuple, collections.deque)))


def compare(t: Space, left: Any, right: Any, symbol: str) -> Any:
    kind = TupleTracker if isinstance(left, TupleTracker) else ListTracker
    if not isinstance(right, kind) or (base_name(left) == "deque") != (base_name(right) == "deque"):
        return k.NOT_IMPLEMENTED
    for side in (left, right):
        if base_name(side) == "deque":
            refuse_asked(t, side, "__iter__")
    differ = symbol in ("==", "!=") and len(left.items) != len(right.items)
    if differ and (kind is ListTracker or _are_silent([*left.items, *right.items])):
        return k.ConstantTracker(symbol == "!=")
    return _compare(t, left, right, symbol)


def _are_silent(items: list[Any]) -> bool:
    """Whether nobody notices that these are compared: C compares tuples of different lengths item by item as well."""
    return all(
        isinstance(vt, k.NumberTracker | k.ConstantTracker) and not issubclass(vt.cls, enum.Enum)
        for vt in items
    )


@operation
def _compare(t: Space, left: Any, right: Any, symbol: str) -> Any:
    """The first pair that differs decides (`list_richcompare`); of deques, compared again (`deque_richcompare`)."""
    at, is_deque = 0, base_name(left) == "deque"
    while at < len(left.items) and at < len(right.items):
        equal = yield from settle(t.equal(left.items[at], right.items[at]))
        if not equal and at < min(
            len(left.items), len(right.items)
        ):  # the comparison may have emptied them
            if symbol in ("==", "!=") and not is_deque:
                return k.ConstantTracker(symbol == "!=")
            found = yield from settle(t.compare(symbol, left.items[at], right.items[at]))
            return k.ConstantTracker((yield from settle(t.truth(found)))) if is_deque else found
        at += 1
    lengths = k.ConstantTracker(len(left.items)), k.ConstantTracker(len(right.items))
    return (yield from settle(t.compare(symbol, *lengths)))


# -- changing lists ---------------------------------------------------------------------------------------------------
@methods.handles(list.__init__, takes=(0, 1))
def init(t: Space, vt: Any, *iterable: Any) -> Any:
    if vt.items:
        replace_items(t, vt, [])
    return _containers.extend(t, vt, *iterable) if iterable else k.NONE


@methods.handles(list.__iadd__)
def iadd(t: Space, vt: Any, iterable: Any) -> Any:
    return then(_containers.extend(t, vt, iterable), vt)


@methods.handles(list.__imul__)
def imul(t: Space, vt: Any, factor: Any) -> Any:
    replace_items(t, vt, vt.items * times(t, vt, factor))
    return vt


methods.handles(list.append, collections.deque.append, takes=1)(_containers.append)
methods.handles(list.extend)(_containers.extend)


@methods.handles(list.insert)
def insert(t: Space, vt: Any, where: Any, item: Any) -> None:
    at = needed_index(t, where)
    change_items(t, vt, lambda items: items.insert(at, item))


@methods.handles(list.pop)
def pop(t: Space, vt: Any, where: Any = None) -> Any:
    index = -1 if where is None else needed_index(t, where)
    if (item := _list_ends.take(t, vt, index)) is not MISSING:
        return item
    if not vt.items:
        throw(IndexError, "pop from empty list")
    checked(vt, index, "pop index out of range")
    return change_items(t, vt, lambda items: items.pop(index))


@methods.handles(list.remove, collections.deque.remove, takes=1)
@operation
def remove(t: Space, vt: Any, item: Any) -> Any:
    complaint = "list.remove(x): x not in list" if base_name(vt) == "list" else "{} is not in deque"
    at = yield from _found(t, vt, item, 0, None, complaint)
    change_items(
        t, vt, lambda items: items.__delitem__(slice(at, at + 1))
    )  # the comparison may have emptied the list
    return k.NONE


@methods.handles(list.clear, collections.deque.clear, takes=0)
def clear(t: Space, vt: Any) -> None:
    replace_items(t, vt, [])


@methods.handles(list.copy)
def copy(t: Space, vt: Any) -> Any:
    return ListTracker(vt.items, list)


@methods.handles(list.reverse, collections.deque.reverse, takes=0)
def reverse(t: Space, vt: Any) -> None:
    replace_items(t, vt, vt.items[::-1], structural=False)


@methods.handles(list.sort)
@operation
def sort(t: Space, vt: Any, key: Any = None, reverse: Any = None) -> Any:
    """The list is empty while it is sorted; code that changes it then is left to CPython."""
    before, order = vt.items, [*range(len(vt.items))]
    failure = None
    try:
        yield from _sorting.sort(t, list(before), key, reverse, order)
    except Raised as error:
        failure = error
    if vt.items is not before:
        raise t.unsupported("list-changed-during-sort", "a list that is changed while it is sorted")
    replace_items(t, vt, [before[i] for i in order])
    if failure is not None:
        raise failure
    return k.NONE


@methods.handles(tuple.__hash__)
def hash_(t: Space, vt: Any) -> Any:
    """That of C, whatever the class of the tuple says."""
    return _calls.call_builtin(t, k.BuiltinTracker(hash), [TupleTracker(vt.items, tuple)], {})


@methods.handles(vars(tuple)["__getnewargs__"])
def getnewargs(t: Space, vt: Any) -> Any:
    return TupleTracker([TupleTracker(vt.items, tuple)], tuple)
