"""Methods of lists, and of deques that are the same."""

from typing import Any

from stator_bytecode import OperationSteps, Raised, Result, operation, settle
from stator_guards import CallSource, Length

from stator_variables._objects import _list, _sequence, _sorting
from stator_variables._objects._indexing import needed_index, slice_of
from stator_variables._objects._iterators._sequence import SequenceIteratorTracker
from stator_variables._objects._list import (
    ListTracker,
    at_end,
    change_items,
    is_open,
    replace_items,
    take,
)
from stator_variables._objects._method_table import MethodTable, then
from stator_variables._objects._number import symbolic_number
from stator_variables._objects._program_error import throw
from stator_variables._objects._representation import shown
from stator_variables._space import Space
from stator_variables._tracker import MISSING, VariableTracker
from stator_variables._trackers import NONE, ConstantTracker

methods = MethodTable("list method")


@methods.handles(list.append)
def append(t: Space, vt: ListTracker, item: VariableTracker) -> None:
    _list.append(t, vt, item)


@methods.handles(list.extend)
def extend(t: Space, vt: ListTracker, iterable: VariableTracker) -> Result:
    return _list.extend(t, vt, iterable)


@methods.handles(list.__len__)
def length(t: Space, vt: ListTracker) -> Result:
    """Return a constant, or for an unread list a number that is an input once it has changed."""
    if not is_open(vt) or vt.source is None:
        return ConstantTracker(len(vt.items))
    count, source = len(vt.real), CallSource(len, vt.source)
    grown = ConstantTracker(len(vt.added) - sum(vt.taken))
    if t.policy.number_is_symbolic(source, count, False):
        return t.binary("+", symbolic_number(t, count, source), grown)
    t.guard(vt.source, Length(count))
    return ConstantTracker(count + grown.value)


@methods.handles(list.__getitem__, takes=1)
def getitem(t: Space, vt: ListTracker, key: VariableTracker) -> Result:
    if (part := slice_of(t, key)) is not None:
        return ListTracker(_sequence.sliced(vt, part))
    if (item := at_end(t, vt, key)) is not MISSING:
        return item
    return vt.items[_sequence.index_in(t, vt, key, "list index out of range")]


@methods.handles(list.__setitem__)
def setitem(t: Space, vt: ListTracker, key: VariableTracker, value: VariableTracker) -> Result:
    if (part := slice_of(t, key)) is not None:
        return _set_slice(t, vt, part, value)
    index = _sequence.index_in(t, vt, key)
    change_items(t, vt, lambda items: items.__setitem__(index, value))
    return NONE


@operation
def _set_slice(t: Space, vt: ListTracker, part: slice, value: VariableTracker) -> OperationSteps:
    plain = part.step in (None, 1)
    text = "can only assign an iterable" if plain else "must assign iterable to extended slice"
    found = yield from settle(t.drain(value, error_text=text))
    try:
        change_items(t, vt, lambda items: items.__setitem__(part, found))
    except ValueError as error:
        throw(ValueError, *error.args)
    return NONE


@methods.handles(list.__delitem__)
def delitem(t: Space, vt: ListTracker, key: VariableTracker) -> None:
    where: Any = slice_of(t, key)
    if where is None:
        where = _sequence.index_in(t, vt, key)
    elif where.step == 0:
        throw(ValueError, "slice step cannot be zero")
    change_items(t, vt, lambda items: items.__delitem__(where))


@methods.handles(list.__reversed__)
def reversed_(t: Space, vt: ListTracker) -> SequenceIteratorTracker:
    return SequenceIteratorTracker(type(reversed([])), 0, vt, backwards=True)


@methods.handles(list.__init__, takes=(0, 1))
def init(t: Space, vt: ListTracker, *iterable: VariableTracker) -> VariableTracker:
    if vt.items:
        replace_items(t, vt, [])
    return extend(t, vt, *iterable) if iterable else NONE


@methods.handles(list.__iadd__)
def iadd(t: Space, vt: ListTracker, iterable: VariableTracker) -> Result:
    return then(extend(t, vt, iterable), vt)


@methods.handles(list.__imul__)
def imul(t: Space, vt: ListTracker, factor: VariableTracker) -> ListTracker:
    replace_items(t, vt, vt.items * _sequence.times(t, vt, factor))
    return vt


@methods.handles(list.insert)
def insert(t: Space, vt: ListTracker, where: VariableTracker, item: VariableTracker) -> None:
    at = needed_index(t, where)
    change_items(t, vt, lambda items: items.insert(at, item))


@methods.handles(list.pop)
def pop(t: Space, vt: ListTracker, where: VariableTracker | None = None) -> Result:
    index = -1 if where is None else needed_index(t, where)
    if (item := take(t, vt, index)) is not MISSING:
        return item
    if not vt.items:
        throw(IndexError, "pop from empty list")
    _sequence.checked(vt, index, "pop index out of range")
    return change_items(t, vt, lambda items: items.pop(index))


@methods.handles(list.remove)
@operation
def remove(
    t: Space,
    vt: ListTracker,
    item: VariableTracker,
    complaint: str = "list.remove(x): x not in list",
) -> OperationSteps:
    at = yield from _sequence.place_of(t, vt, item, 0, None, complaint)
    # The comparison may have emptied the list.
    change_items(t, vt, lambda items: items.__delitem__(slice(at, at + 1)))
    return NONE


@methods.handles(list.clear)
def clear(t: Space, vt: ListTracker) -> None:
    replace_items(t, vt, [])


@methods.handles(list.copy)
def copy(t: Space, vt: ListTracker) -> ListTracker:
    return ListTracker(vt.items)


@methods.handles(list.reverse)
def reverse(t: Space, vt: ListTracker) -> None:
    replace_items(t, vt, vt.items[::-1], structural=False)


@methods.handles(list.sort)
@operation
def sort(
    t: Space,
    vt: ListTracker,
    key: VariableTracker | None = None,
    reverse: VariableTracker | None = None,
) -> OperationSteps:
    """The list is empty while it is sorted; code that changes it then is left to CPython."""
    before, order = vt.items, [*range(len(vt.items))]
    failure = None
    replace_items(t, vt, [])
    structure = vt.structure
    try:
        yield from _sorting.sort(t, list(before), key, reverse, order)
    except Raised as error:
        failure = error
    if vt.structure != structure:
        raise t.unsupported("list-changed-during-sort", "a list that is changed while it is sorted")
    replace_items(t, vt, [before[i] for i in order])
    if failure is not None:
        raise failure
    return NONE


@methods.handles(list.__repr__)
def repr_(t: Space, vt: ListTracker) -> Result:
    return shown(t, vt, "[...]", vt.items, "[", "]")
