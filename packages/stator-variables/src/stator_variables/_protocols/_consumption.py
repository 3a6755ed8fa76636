"""Consumption of iterables: loops of C functions over all items, unpacking, and searching."""

import sys
from collections.abc import Callable
from typing import Any

from stator_bytecode import (
    NULL,
    OperationSteps,
    Raised,
    operation,
    settle,
)

from stator_variables._objects._list import ListTracker
from stator_variables._objects._lookup import (
    defines,
    overrides,
)
from stator_variables._objects._program_error import attempt, complain, throw
from stator_variables._objects._sequence import is_plain_sequence
from stator_variables._protocols._iteration import ROOM, get_iterator, next_value
from stator_variables._space import Space
from stator_variables._tracker import MISSING, VariableTracker
from stator_variables._trackers import NONE, ConstantTracker


@operation
def drain(
    t: Space, vt: Any, calls_len: bool = False, most: int = sys.maxsize, error_text: str = ""
) -> OperationSteps:
    """Return all items of an iterable, as a Python list of trackers, but no more than `most`."""
    if is_plain_sequence(t, vt):
        return list(vt.items)
    if error_text:  # `PySequence_Fast` makes a list of the iterator
        vt, calls_len = (yield from iterator_or_error(t, vt, error_text)), True
    iterator = yield from settle(get_iterator(t, vt))
    if calls_len:
        yield from _call_len(t, vt)
    found: list[Any] = []
    while len(found) < most and (value := (yield from settle(next_value(t, iterator)))) is not NULL:
        found.append(value)
    return found


@operation
def for_each(
    t: Space, iterable: VariableTracker, do: Callable[[Any], Any], calls_len: bool = False
) -> OperationSteps:
    """`do(item)`, a Result or None, for each item in turn; gives None."""
    iterator = yield from settle(get_iterator(t, iterable))
    if calls_len:
        yield from _call_len(t, iterable)
    while (item := (yield from settle(next_value(t, iterator)))) is not NULL:
        yield from settle(do(item))
    return NONE


def _call_len(t: Space, vt: VariableTracker) -> OperationSteps:
    """Call `PyObject_LengthHint`: a class of the program's may define the length, and observes the
    call."""
    vt = vt.counted()
    if not overrides(t, vt.cls, "__iter__", "__len__"):
        return

    for name in ("__len__", "__length_hint__"):
        if (method := t.special(vt, name)) is MISSING:
            continue

        try:
            found = (yield from settle(t.call((yield from settle(method)), []))).constant()
        except Raised as raised:
            if not issubclass(raised.value.cls, TypeError):
                raise
            continue
        if not (found is NotImplemented or (isinstance(found, int) and 0 <= found <= ROOM)):
            raise t.unsupported(
                "length-hint", f"{name} of a {vt.cls.__name__}, which gives no length"
            )
        return


def iterator_or_error(t: Space, vt: VariableTracker, *text: str | type) -> OperationSteps:
    """Return `iter(vt)`, with a TypeError of C's own text (`PySequence_Fast`,
    `_PySequence_IterSearch`)."""
    if (found := (yield from attempt(t, TypeError, None, get_iterator, t, vt))) is None:
        complain(t, TypeError, *text)
    return found


def iterator_to_search(t: Space, vt: VariableTracker) -> OperationSteps:
    return iterator_or_error(t, vt, "argument of type '", vt.cls, "' is not iterable")


@operation
def any_equal(t: Space, iterable: VariableTracker, item: VariableTracker) -> OperationSteps:
    iterator = yield from iterator_to_search(t, iterable)
    while (value := (yield from settle(next_value(t, iterator)))) is not NULL:
        if (yield from settle(t.equal(value, item))):
            return ConstantTracker(True)
    return ConstantTracker(False)


def _rely_on_items(t: Space, vt: VariableTracker) -> None:
    if not defines(t, vt.cls, "__iter__", "__getitem__"):
        complain(t, TypeError, "cannot unpack non-iterable ", vt.cls, " object")


@operation
def unpack(t: Space, vt: VariableTracker, count: int) -> OperationSteps:
    """Exactly `count` items."""
    _rely_on_items(t, vt)
    found = yield from settle(drain(t, vt, most=count + 1))
    if len(found) > count:
        throw(ValueError, f"too many values to unpack (expected {count})")
    if len(found) < count:
        throw(ValueError, f"not enough values to unpack (expected {count}, got {len(found)})")
    return found


@operation
def unpack_ex(t: Space, vt: VariableTracker, before: int, after: int) -> OperationSteps:
    _rely_on_items(t, vt)
    found = yield from settle(drain(t, vt))
    if len(found) < before + after:
        throw(
            ValueError,
            f"not enough values to unpack (expected at least {before + after}, got {len(found)})",
        )
    end = len(found) - after
    return [*found[:before], ListTracker(found[before:end]), *found[end:]]
