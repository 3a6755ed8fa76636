"""The methods of list and tuple (Objects/listobject.c, Objects/tupleobject.c)."""

from __future__ import annotations

import collections
import types
from typing import Any

import torch
from stator_bytecode import operation, settle

from stator_variables import _kinds as k
from stator_variables._builtin._arity import Args, Kwargs
from stator_variables._builtin._method_table import MethodTable
from stator_variables._builtin._strings import convert
from stator_variables._model import _calls, _containers, _iteration, _operators
from stator_variables._model._containers import index_of, needed_index, replace_items, slice_of
from stator_variables._model._lookup import guarded_lookup, plain_lookup
from stator_variables._model._raising import throw, type_name
from stator_variables._model._sorting import sort_items
from stator_variables._tracing import Tracing

methods = MethodTable("sequence method")
NOT_IMPLEMENTED = k.ConstantTracker(NotImplemented)


def base_name(vt: Any) -> str:
    return "tuple" if isinstance(vt, k.TupleTracker) else "deque" if issubclass(vt.cls, collections.deque) else "list"


# -- items ------------------------------------------------------------------------------------------------------------
@methods.handles(list.__getitem__, tuple.__getitem__, takes=1)
def getitem(t: Tracing, args: Args, kwargs: Kwargs) -> Any:
    vt, key = args
    part = slice_of(t, key)
    if part is not None:
        return _sliced(t, vt, part)
    index = _index(t, vt, key)
    if not -len(vt.items) <= index < len(vt.items):
        throw(IndexError, f"{base_name(vt)} index out of range")
    return vt.items[index]


def _index(t: Tracing, vt: Any, key: Any) -> int:
    index = index_of(t, key)
    if index is None:
        throw(TypeError, f"{base_name(vt)} indices must be integers or slices, not {key.cls.__name__}")
    return index


def _sliced(t: Tracing, vt: Any, part: slice) -> Any:
    if part.step == 0:
        throw(ValueError, "slice step cannot be zero")
    if isinstance(vt, k.TupleTracker):
        whole = vt.cls is tuple and part.indices(len(vt.items)) == (0, len(vt.items), 1)
        return vt if whole else k.TupleTracker(vt.items[part], torch.Size if vt.cls is torch.Size else tuple)
    return k.ListTracker(vt.items[part], list)


@methods.handles(list.__setitem__)
def setitem(t: Tracing, args: Args, kwargs: Kwargs) -> Any:
    vt, key, value = args
    part = slice_of(t, key)
    if part is not None:
        return _set_slice(t, vt, part, value)
    index = _index(t, vt, key)
    if not -len(vt.items) <= index < len(vt.items):
        throw(IndexError, "list assignment index out of range")
    items = list(vt.items)
    items[index] = value
    replace_items(t, vt, items)
    return k.NONE


@operation
def _set_slice(t: Tracing, vt: Any, part: slice, value: Any) -> Any:
    if guarded_lookup(t, value.cls, "__iter__") is guarded_lookup(t, value.cls, "__getitem__"):
        throw(
            TypeError,
            "can only assign an iterable" if part.step in (None, 1) else "must assign iterable to extended slice",
        )
    found = yield from settle(_iteration.drain(t, value))
    items = list(vt.items)
    try:
        items[part] = found
    except ValueError as error:
        throw(ValueError, *error.args)
    replace_items(t, vt, items)
    return k.NONE


@methods.handles(list.__delitem__)
def delitem(t: Tracing, args: Args, kwargs: Kwargs) -> Any:
    vt, key = args
    where: Any = slice_of(t, key)
    if where is None:
        where = _index(t, vt, key)
        if not -len(vt.items) <= where < len(vt.items):
            throw(IndexError, "list assignment index out of range")
    elif where.step == 0:
        throw(ValueError, "slice step cannot be zero")
    items = list(vt.items)
    del items[where]
    replace_items(t, vt, items)
    return k.NONE


@methods.handles(list.__len__, tuple.__len__, collections.deque.__len__)
def sequence_len(t: Tracing, args: Args, kwargs: Kwargs) -> Any:
    return k.ConstantTracker(len(args[0].items))


@methods.handles(list.__contains__, tuple.__contains__)
def contains(t: Tracing, args: Args, kwargs: Kwargs) -> Any:
    return _contains(t, args[0], args[1])


@operation
def _contains(t: Tracing, vt: Any, item: Any) -> Any:
    return k.ConstantTracker((yield from find(t, vt, item, 0, None)) is not None)


def find(t: Tracing, vt: Any, item: Any, start: int, stop: int | None) -> Any:
    """The first position of an equal item, or None. The list may change under the comparisons, as in C."""
    index, structure = start, getattr(vt, "structure", 0)
    while index < len(vt.items) and (stop is None or index < stop):
        found = yield from settle(_operators.equal(t, vt.items[index], item))
        if issubclass(vt.cls, collections.deque) and vt.structure != structure:
            raise t.unsupported("list-changed-during-comparison", "a deque that is changed while it is searched")
        if found:
            return index
        index += 1
    return None


@methods.handles(list.__iter__, tuple.__iter__)
def iterate(t: Tracing, args: Args, kwargs: Kwargs) -> Any:
    return _iteration.sequence_iterator(args[0])


@methods.handles(list.__reversed__)
def reversed_(t: Tracing, args: Args, kwargs: Kwargs) -> Any:
    return k.IteratorTracker(type(reversed([])), "reversed", [args[0], len(args[0].items)])


# -- searching --------------------------------------------------------------------------------------------------------
@methods.handles(list.index, tuple.index)
def index(t: Tracing, args: Args, kwargs: Kwargs) -> Any:
    complaint = "tuple.index(x): x not in tuple" if isinstance(args[0], k.TupleTracker) else ""
    return index_in(t, args, complaint or "{} is not in list")


@operation
def index_in(t: Tracing, args: Args, complaint: str) -> Any:
    vt, item = args[:2]
    start, stop = (_bound(t, vt, bound) for bound in (*args[2:], None, None)[:2])
    found = yield from find(t, vt, item, start or 0, stop)
    if found is None:
        text = (yield from settle(convert(t, item, "r"))).constant() if "{}" in complaint else ""
        throw(ValueError, complaint.format(text))
    return k.ConstantTracker(found)


def _bound(t: Tracing, vt: Any, bound: Any) -> int | None:
    if bound is None:
        return None
    found = index_of(t, bound)
    if found is None:
        throw(TypeError, "slice indices must be integers or have an __index__ method")
    return max(found + len(vt.items), 0) if found < 0 else found


@methods.handles(list.count, tuple.count, collections.deque.count, takes=1)
def count(t: Tracing, args: Args, kwargs: Kwargs) -> Any:
    return _count(t, args[0], args[1])


@operation
def _count(t: Tracing, vt: Any, item: Any) -> Any:
    found, start = 0, 0
    while (at := (yield from find(t, vt, item, start, None))) is not None:
        found, start = found + 1, at + 1
    return k.ConstantTracker(found)


# -- operators --------------------------------------------------------------------------------------------------------
@methods.handles(list.__add__, tuple.__add__)
def add(t: Tracing, args: Args, kwargs: Kwargs) -> Any:
    left, right = args
    kind = k.TupleTracker if isinstance(left, k.TupleTracker) else k.ListTracker
    right = _opened(right)
    if not isinstance(right, kind) or issubclass(right.cls, collections.deque):
        if reflects(right, "__radd__"):
            return NOT_IMPLEMENTED
        base = base_name(left)
        throw(TypeError, f'can only concatenate {base} (not "{right.cls.__name__}") to {base}')
    cls = torch.Size if left.cls is torch.Size else tuple if kind is k.TupleTracker else list
    return kind([*left.items, *right.items], cls)


def _opened(vt: Any) -> Any:
    if isinstance(vt, k.ConstantTracker) and isinstance(vt.value, tuple):
        return k.TupleTracker([k.ConstantTracker(item) for item in vt.value], vt.cls)
    return vt


def reflects(vt: Any, name: str) -> bool:
    """Whether a class in Python defines the reflected operator: it is asked before the sequence's own slot."""
    return isinstance(plain_lookup(vt.cls, name), types.FunctionType)


@methods.handles(list.__mul__, tuple.__mul__, list.__rmul__, tuple.__rmul__)
def mul(t: Tracing, args: Args, kwargs: Kwargs) -> Any:
    vt, factor = args
    if reflects(factor, "__rmul__") or reflects(factor, "__mul__"):
        return NOT_IMPLEMENTED
    times = _times(t, vt, factor)
    cls = torch.Size if vt.cls is torch.Size else tuple if isinstance(vt, k.TupleTracker) else list
    if times == 1 and vt.cls is tuple:
        return vt
    return type(vt)(vt.items * times, cls)


def _times(t: Tracing, vt: Any, factor: Any) -> int:
    times = index_of(t, factor)
    if times is None:
        throw(TypeError, f"can't multiply sequence by non-int of type '{type_name(factor.cls)}'")
    if times * len(vt.items) > _LARGEST:
        raise t.unsupported("too-large", f"a {base_name(vt)} of {times * len(vt.items)} items")
    return times


_LARGEST = 1 << 20
"""More items than this are not made while tracing: each would be followed on its own."""


def _comparison(symbol: str, *targets: Any) -> None:
    methods.handles(*targets)(lambda t, args, kwargs: compare(t, args, symbol))


for _symbol, (_name, *_) in _operators.COMPARISONS.items():
    _comparison(_symbol, *(getattr(cls, _name) for cls in (list, tuple, collections.deque)))


def compare(t: Tracing, args: Args, symbol: str) -> Any:
    left, right = args[0], _opened(args[1])
    kind = k.TupleTracker if isinstance(left, k.TupleTracker) else k.ListTracker
    if not isinstance(right, kind) or (base_name(left) == "deque") != (base_name(right) == "deque"):
        return NOT_IMPLEMENTED
    if symbol in ("==", "!=") and len(left.items) != len(right.items):
        return k.ConstantTracker(symbol == "!=")
    return _compare(t, left, right, symbol)


@operation
def _compare(t: Tracing, left: Any, right: Any, symbol: str) -> Any:
    """The first pair that differs decides (`list_richcompare`)."""
    at = 0
    while at < len(left.items) and at < len(right.items):
        equal = yield from settle(_operators.equal(t, left.items[at], right.items[at]))
        if not equal and at < min(len(left.items), len(right.items)):  # the comparison may have emptied them
            if symbol in ("==", "!="):
                return k.ConstantTracker(symbol == "!=")
            return (yield from settle(_operators.compare(t, symbol, left.items[at], right.items[at])))
        at += 1
    lengths = k.ConstantTracker(len(left.items)), k.ConstantTracker(len(right.items))
    return (yield from settle(_operators.compare(t, symbol, *lengths)))


# -- changing lists ---------------------------------------------------------------------------------------------------
@methods.handles(list.__init__, takes=(0, 1))
def init(t: Tracing, args: Args, kwargs: Kwargs) -> Any:
    if args[0].items:
        replace_items(t, args[0], [])
    return k.NONE if len(args) == 1 else _containers.extend(t, args[0], args[1])


@methods.handles(list.__iadd__)
def iadd(t: Tracing, args: Args, kwargs: Kwargs) -> Any:
    return _extended(t, args[0], args[1])


@operation
def _extended(t: Tracing, vt: Any, iterable: Any) -> Any:
    yield from settle(_containers.extend(t, vt, iterable))
    return vt


@methods.handles(list.__imul__)
def imul(t: Tracing, args: Args, kwargs: Kwargs) -> Any:
    replace_items(t, args[0], args[0].items * _times(t, *args))
    return args[0]


@methods.handles(list.append)
def append(t: Tracing, args: Args, kwargs: Kwargs) -> Any:
    _containers.append(t, args[0], args[1])
    return k.NONE


@methods.handles(list.extend)
def extend(t: Tracing, args: Args, kwargs: Kwargs) -> Any:
    return _containers.extend(t, args[0], args[1])


@methods.handles(list.insert)
def insert(t: Tracing, args: Args, kwargs: Kwargs) -> Any:
    items = list(args[0].items)
    items.insert(needed_index(t, args[1]), args[2])
    replace_items(t, args[0], items)
    return k.NONE


@methods.handles(list.pop)
def pop(t: Tracing, args: Args, kwargs: Kwargs) -> Any:
    vt = args[0]
    index = needed_index(t, args[1]) if len(args) > 1 else -1
    if not vt.items:
        throw(IndexError, "pop from empty list")
    if not -len(vt.items) <= index < len(vt.items):
        throw(IndexError, "pop index out of range")
    items = list(vt.items)
    value = items.pop(index)
    replace_items(t, vt, items)
    return value


@methods.handles(list.remove)
def remove(t: Tracing, args: Args, kwargs: Kwargs) -> Any:
    return remove_from(t, args[0], args[1], "list.remove(x): x not in list")


@operation
def remove_from(t: Tracing, vt: Any, item: Any, complaint: str) -> Any:
    at = yield from find(t, vt, item, 0, None)
    if at is None:
        text = (yield from settle(convert(t, item, "r"))).constant() if "{}" in complaint else ""
        throw(ValueError, complaint.format(text))
    items = list(vt.items)
    del items[at : at + 1]  # the comparison may have emptied the list
    replace_items(t, vt, items)
    return k.NONE


@methods.handles(list.clear, collections.deque.clear, takes=0)
def clear(t: Tracing, args: Args, kwargs: Kwargs) -> Any:
    replace_items(t, args[0], [])
    return k.NONE


@methods.handles(list.copy)
def copy(t: Tracing, args: Args, kwargs: Kwargs) -> Any:
    return k.ListTracker(args[0].items, list)


@methods.handles(list.reverse, collections.deque.reverse, takes=0)
def reverse(t: Tracing, args: Args, kwargs: Kwargs) -> Any:
    replace_items(t, args[0], args[0].items[::-1], structural=False)
    return k.NONE


@methods.handles(list.sort)
def sort(t: Tracing, args: Args, kwargs: Kwargs) -> Any:
    return _sort(t, args[0], kwargs)


@operation
def _sort(t: Tracing, vt: Any, kwargs: Kwargs) -> Any:
    """The list is empty while it is sorted; code that looks at it then, or fails, is left to CPython."""
    before = vt.items
    found = yield from sort_items(t, list(before), kwargs.get("key"), kwargs.get("reverse"))
    if vt.items is not before:
        raise t.unsupported("list-changed-during-sort", "a list that is changed while it is sorted")
    replace_items(t, vt, found)
    return k.NONE


@methods.handles(tuple.__hash__)
def hash_(t: Tracing, args: Args, kwargs: Kwargs) -> Any:
    return _calls.call_builtin(t, k.BuiltinTracker(hash), args, {})


@methods.handles(vars(tuple)["__getnewargs__"])
def getnewargs(t: Tracing, args: Args, kwargs: Kwargs) -> Any:
    return k.TupleTracker([k.TupleTracker(args[0].items, tuple)], tuple)
