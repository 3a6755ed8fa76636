"""Methods of deques."""

import sys
from collections import deque
from typing import Any

from stator_bytecode import Result

from stator_variables._objects import _list, _list_methods, _sequence
from stator_variables._objects._deque import DequeTracker, new_deque
from stator_variables._objects._indexing import needed_index
from stator_variables._objects._iterators._sequence import DequeIteratorTracker
from stator_variables._objects._list import ListTracker, change_items, replace_items
from stator_variables._objects._lookup import refuse_overridden
from stator_variables._objects._method_table import MethodTable, then
from stator_variables._objects._program_error import complain, name_of, throw
from stator_variables._objects._representation import shown
from stator_variables._space import Space
from stator_variables._tracker import MISSING, VariableTracker, is_a
from stator_variables._trackers import NONE, ConstantTracker, is_none

methods = MethodTable("deque method")
_ONE = ConstantTracker(1)


@methods.handles(deque.__new__, takes=(1, 3), named=("iterable", "maxlen"))
def new(t: Space, cls: Any, *args: VariableTracker, **kwargs: VariableTracker) -> Result:
    return new_deque(cls.value, [], None)


@methods.handles(deque.__init__, takes=(0, 2), named=("iterable", "maxlen"))
def init(
    t: Space,
    vt: DequeTracker,
    iterable: VariableTracker | None = None,
    maxlen: VariableTracker = NONE,
) -> Result:
    limit = None if is_none(maxlen) else _limit(t, maxlen)
    if vt.source is not None:
        raise t.unsupported("bad-arguments", "__init__ of a deque that exists already")
    vt.maxlen = limit
    replace_items(t, vt, [])
    return NONE if iterable is None else extend(t, vt, iterable)


def _limit(t: Space, maxlen: VariableTracker) -> int:
    if (found := t.index_of(maxlen)) is None:
        throw(TypeError, "an integer is required")
    if found < 0:
        throw(ValueError, "maxlen must be non-negative")
    return found


@methods.handles(deque.appendleft, takes=1)
def appendleft(t: Space, vt: DequeTracker, item: VariableTracker) -> None:
    replace_items(t, vt, [item, *vt.items][: vt.maxlen])


methods.handles(deque.append, takes=1)(_list_methods.append)
methods.handles(deque.__len__)(_list_methods.length)
methods.handles(deque.clear, takes=0)(_list_methods.clear)
methods.handles(deque.reverse, takes=0)(_list_methods.reverse)


_ABSENT = "deque.remove(x): x not in deque" if sys.version_info >= (3, 14) else "{} is not in deque"


@methods.handles(deque.remove, takes=1)
def remove(t: Space, vt: DequeTracker, item: VariableTracker) -> Result:
    return _list_methods.remove(t, vt, item, _ABSENT)


@methods.handles(deque.extend, takes=1)
def extend(t: Space, vt: DequeTracker, iterable: VariableTracker) -> Result:
    iterable = ListTracker(vt.items) if iterable is vt else iterable
    return t.for_each(iterable, lambda item: _list.append(t, vt, item))


@methods.handles(deque.extendleft, takes=1)
def extendleft(t: Space, vt: DequeTracker, iterable: VariableTracker) -> Result:
    iterable = ListTracker(vt.items) if iterable is vt else iterable
    return t.for_each(iterable, lambda item: appendleft(t, vt, item))


@methods.handles(deque.pop, takes=0)
def pop(t: Space, vt: DequeTracker, index: int = -1) -> Result:
    if (item := _list.take(t, vt, index)) is not MISSING:
        return item
    if not vt.items:
        throw(IndexError, "pop from an empty deque")
    return change_items(t, vt, lambda items: items.pop(index))


@methods.handles(deque.popleft, takes=0)
def popleft(t: Space, vt: DequeTracker) -> Result:
    return pop(t, vt, 0)


@methods.handles(deque.insert, takes=2)
def insert(t: Space, vt: DequeTracker, where: VariableTracker, item: VariableTracker) -> object:
    if vt.maxlen is not None and len(vt.items) >= vt.maxlen:
        throw(IndexError, "deque already at its maximum size")
    return _list_methods.insert(t, vt, where, item)


@methods.handles(deque.rotate, takes=(0, 1))
def rotate(t: Space, vt: DequeTracker, steps: VariableTracker = _ONE) -> None:
    rotated = deque(vt.items)
    rotated.rotate(needed_index(t, steps))
    replace_items(t, vt, list(rotated))


@methods.handles(deque.copy, deque.__copy__, takes=0)
def copy(t: Space, vt: DequeTracker) -> DequeTracker:
    if vt.cls is not deque:
        raise t.unsupported("container-subclass", "a copy of a subclass of deque")
    return new_deque(deque, list(vt.items), vt.maxlen)


@methods.handles(deque.maxlen, takes=0)
def maxlen(t: Space, vt: DequeTracker) -> ConstantTracker:
    return ConstantTracker(vt.maxlen)


@methods.handles(deque.__getitem__)
def getitem(t: Space, vt: DequeTracker, key: VariableTracker) -> Result:
    if (item := _list.at_end(t, vt, key)) is not MISSING:
        return item
    return vt.items[_at(t, vt, key)]


def _at(t: Space, vt: DequeTracker, key: VariableTracker) -> int:
    refuse_overridden(t, vt, "__len__")  # where the index is negative
    if (found := t.index_of(key)) is None:
        complain(t, TypeError, "sequence index must be integer, not '", key.cls, "'")
    return _sequence.checked(vt, found, "deque index out of range")


@methods.handles(deque.__setitem__)
def setitem(t: Space, vt: DequeTracker, key: VariableTracker, value: VariableTracker) -> None:
    at = _at(t, vt, key)
    change_items(t, vt, lambda items: items.__setitem__(at, value), structural=False)


@methods.handles(deque.__delitem__)
def delitem(t: Space, vt: DequeTracker, key: VariableTracker) -> None:
    at = _at(t, vt, key)
    change_items(t, vt, lambda items: items.pop(at))


@methods.handles(deque.__reversed__, takes=0)
def reversed_(t: Space, vt: DequeTracker) -> VariableTracker:
    return DequeIteratorTracker(vt, backwards=True)


@methods.handles(deque.__add__)
def add(t: Space, left: DequeTracker, right: VariableTracker) -> Result:
    if not is_a(right, DequeTracker):
        complain(t, TypeError, 'can only concatenate deque (not "', right.cls, '") to deque')
    refuse_overridden(t, right, "__iter__")
    made = copy(t, left)
    for item in right.items:
        _list.append(t, made, item)
    return made


@methods.handles(deque.__iadd__)
def iadd(t: Space, vt: DequeTracker, iterable: VariableTracker) -> Result:
    return then(extend(t, vt, iterable), vt)


@methods.handles(deque.__mul__, deque.__rmul__)
def mul(t: Space, vt: DequeTracker, factor: VariableTracker) -> Result:
    made = copy(t, vt)
    made.items = _repeated(t, made, factor)
    return made


@methods.handles(deque.__imul__)
def imul(t: Space, vt: DequeTracker, factor: VariableTracker) -> Result:
    replace_items(t, vt, _repeated(t, vt, factor))
    return vt


def _repeated(t: Space, vt: DequeTracker, factor: VariableTracker) -> list[Any]:
    items = list(vt.items) * _sequence.times(t, vt, factor)
    return items if vt.maxlen is None else items[max(len(items) - vt.maxlen, 0) :]


@methods.handles(deque.__repr__)
def repr_(t: Space, vt: DequeTracker) -> Result:
    refuse_overridden(t, vt, "__iter__", "__len__")
    end = "])" if vt.maxlen is None else f"], maxlen={vt.maxlen})"
    return shown(t, vt, "[...]", vt.items, f"{name_of(t, vt.cls)}([", end)
