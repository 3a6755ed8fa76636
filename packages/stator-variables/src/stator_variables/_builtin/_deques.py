"""The methods of collections.deque (Modules/_collectionsmodule.c)."""

from __future__ import annotations

from collections import deque
from typing import Any

from stator_bytecode import NULL, operation, settle

from stator_variables import _kinds as k
from stator_variables._build import new_namespace
from stator_variables._builtin import _sequences
from stator_variables._builtin._arity import Args, Kwargs
from stator_variables._builtin._method_table import MethodTable
from stator_variables._model import _containers, _iteration
from stator_variables._model._containers import index_of, needed_index, replace_items
from stator_variables._model._raising import throw, type_name
from stator_variables._tracing import Tracing

methods = MethodTable("deque method")


def new_deque(cls: type, items: list[Any], maxlen: int | None) -> k.ListTracker:
    made = k.ListTracker(items, cls)
    made.maxlen = maxlen
    if cls is not deque:
        new_namespace(made)
    return made


@methods.handles(deque.__new__, takes=(1, 3), named=("iterable", "maxlen"))
def new(t: Tracing, args: Args, kwargs: Kwargs) -> Any:
    return new_deque(args[0].value, [], None)


@methods.handles(deque.__init__, takes=(0, 2), named=("iterable", "maxlen"))
def init(t: Tracing, args: Args, kwargs: Kwargs) -> Any:
    vt = args[0]
    iterable, limit = (*args[1:], *(None, None))[:2]
    limit = kwargs.get("maxlen", limit)
    iterable = kwargs.get("iterable", iterable)
    maxlen = None if limit is None or k.is_none(limit) else _maxlen(t, limit)
    if vt.source is not None:
        raise t.unsupported("bad-arguments", "__init__ of a deque that exists already")
    vt.maxlen = maxlen
    replace_items(t, vt, [])
    return k.NONE if iterable is None else extend_deque(t, vt, iterable)


def _maxlen(t: Tracing, limit: Any) -> int:
    found = index_of(t, limit)
    if found is None:
        throw(TypeError, "an integer is required")
    if found < 0:
        throw(ValueError, "maxlen must be non-negative")
    return found


@methods.handles(deque.append, takes=1)
def append(t: Tracing, args: Args, kwargs: Kwargs) -> Any:
    _containers.append(t, *args)
    return k.NONE


@methods.handles(deque.appendleft, takes=1)
def appendleft(t: Tracing, args: Args, kwargs: Kwargs) -> Any:
    append_left(t, *args)
    return k.NONE


def append_left(t: Tracing, vt: Any, item: Any) -> None:
    replace_items(t, vt, [item, *vt.items][: vt.maxlen])


@methods.handles(deque.extend, takes=1)
def extend(t: Tracing, args: Args, kwargs: Kwargs) -> Any:
    return extend_deque(t, args[0], args[1])


@operation
def extend_deque(t: Tracing, vt: Any, iterable: Any) -> Any:
    if iterable is vt:
        iterable = k.ListTracker(vt.items, list)
    yield from settle(_containers.extend(t, vt, iterable))
    return k.NONE


@methods.handles(deque.extendleft, takes=1)
def extendleft(t: Tracing, args: Args, kwargs: Kwargs) -> Any:
    return _extendleft(t, args[0], args[1])


@operation
def _extendleft(t: Tracing, vt: Any, iterable: Any) -> Any:
    iterable = k.ListTracker(vt.items, list) if iterable is vt else iterable
    iterator = yield from settle(_iteration.get_iterator(t, iterable))
    while (item := (yield from settle(_iteration.next_value(t, iterator)))) is not NULL:
        append_left(t, vt, item)
    return k.NONE


@methods.handles(deque.pop, takes=0)
def pop(t: Tracing, args: Args, kwargs: Kwargs) -> Any:
    return take(t, args[0], -1)


@methods.handles(deque.popleft, takes=0)
def popleft(t: Tracing, args: Args, kwargs: Kwargs) -> Any:
    return take(t, args[0], 0)


def take(t: Tracing, vt: Any, index: int) -> Any:
    if not vt.items:
        throw(IndexError, "pop from an empty deque")
    items = list(vt.items)
    value = items.pop(index)
    replace_items(t, vt, items)
    return value


@methods.handles(deque.insert, takes=2)
def insert(t: Tracing, args: Args, kwargs: Kwargs) -> Any:
    vt = args[0]
    if vt.maxlen is not None and len(vt.items) >= vt.maxlen:
        throw(IndexError, "deque already at its maximum size")
    items = list(vt.items)
    items.insert(needed_index(t, args[1]), args[2])
    replace_items(t, vt, items)
    return k.NONE


@methods.handles(deque.rotate, takes=(0, 1))
def rotate(t: Tracing, args: Args, kwargs: Kwargs) -> Any:
    steps = needed_index(t, args[1]) if len(args) > 1 else 1
    rotated = deque(args[0].items)
    rotated.rotate(steps)
    replace_items(t, args[0], list(rotated))
    return k.NONE


@methods.handles(deque.remove, takes=1)
def remove(t: Tracing, args: Args, kwargs: Kwargs) -> Any:
    return _sequences.remove_from(t, args[0], args[1], "{} is not in deque")


@methods.handles(deque.index, takes=(1, 3))
def index(t: Tracing, args: Args, kwargs: Kwargs) -> Any:
    return _sequences.index_in(t, args, "{} is not in deque")


@methods.handles(deque.__contains__)
def contains(t: Tracing, args: Args, kwargs: Kwargs) -> Any:
    return _sequences.contains(t, args, kwargs)


@methods.handles(deque.copy, deque.__copy__, takes=0)
def copy(t: Tracing, args: Args, kwargs: Kwargs) -> Any:
    if args[0].cls is not deque:
        raise t.unsupported("container-subclass", "a copy of a subclass of deque")
    return new_deque(deque, list(args[0].items), args[0].maxlen)


@methods.handles(deque.maxlen, takes=0)
def maxlen(t: Tracing, args: Args, kwargs: Kwargs) -> Any:
    return k.ConstantTracker(args[0].maxlen)


@methods.handles(deque.__getitem__)
def getitem(t: Tracing, args: Args, kwargs: Kwargs) -> Any:
    return args[0].items[_at(t, args[0], args[1])]


def _at(t: Tracing, vt: Any, key: Any) -> int:
    found = index_of(t, key)
    if found is None:
        throw(TypeError, f"sequence index must be integer, not '{type_name(key.cls)}'")
    if not -len(vt.items) <= found < len(vt.items):
        throw(IndexError, "deque index out of range")
    return found


@methods.handles(deque.__setitem__)
def setitem(t: Tracing, args: Args, kwargs: Kwargs) -> Any:
    at = _at(t, args[0], args[1])
    items = list(args[0].items)
    items[at] = args[2]
    replace_items(t, args[0], items, structural=False)
    return k.NONE


@methods.handles(deque.__delitem__)
def delitem(t: Tracing, args: Args, kwargs: Kwargs) -> Any:
    at = _at(t, args[0], args[1])
    items = list(args[0].items)
    del items[at]
    replace_items(t, args[0], items)
    return k.NONE


@methods.handles(deque.__iter__)
def iterate(t: Tracing, args: Args, kwargs: Kwargs) -> Any:
    return _iteration.sequence_iterator(args[0])


@methods.handles(deque.__reversed__, takes=0)
def reversed_(t: Tracing, args: Args, kwargs: Kwargs) -> Any:
    return k.IteratorTracker(
        type(reversed(deque())), "deque reversed", [args[0], len(args[0].items), args[0].structure]
    )


@methods.handles(deque.__add__)
def add(t: Tracing, args: Args, kwargs: Kwargs) -> Any:
    left, right = args
    if not isinstance(right, k.ListTracker) or not issubclass(right.cls, deque):
        if _sequences.reflects(right, "__radd__"):
            return _sequences.NOT_IMPLEMENTED
        throw(TypeError, f'can only concatenate deque (not "{right.cls.__name__}") to deque')
    made = copy(t, [left], {})
    for item in right.items:
        _containers.append(t, made, item)
    return made


@methods.handles(deque.__iadd__)
def iadd(t: Tracing, args: Args, kwargs: Kwargs) -> Any:
    return _extended(t, args[0], args[1])


@operation
def _extended(t: Tracing, vt: Any, iterable: Any) -> Any:
    yield from settle(extend_deque(t, vt, iterable))
    return vt


@methods.handles(deque.__mul__, deque.__rmul__)
def mul(t: Tracing, args: Args, kwargs: Kwargs) -> Any:
    made = copy(t, [args[0]], {})
    made.items = _repeated(t, made, args[1])
    return made


@methods.handles(deque.__imul__)
def imul(t: Tracing, args: Args, kwargs: Kwargs) -> Any:
    replace_items(t, args[0], _repeated(t, args[0], args[1]))
    return args[0]


def _repeated(t: Tracing, vt: Any, factor: Any) -> list[Any]:
    times = index_of(t, factor)
    if times is None:
        throw(TypeError, f"can't multiply sequence by non-int of type '{type_name(factor.cls)}'")
    items = list(vt.items) * times
    return items if vt.maxlen is None else items[max(len(items) - vt.maxlen, 0) :]
