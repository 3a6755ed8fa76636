"""`sum`, `any`, `all`, `min`, `max`, `reduce` as plain Python, each tested against the real one."""

from __future__ import annotations

import builtins
import math
import sys
from typing import Any

__app_level__ = True

_NOTHING: Any = object()
_of_ints = {"min": builtins.min, "max": builtins.max}
_COMPENSATES = sys.version_info >= (3, 12)
_EMPTY = "arg is an empty sequence" if sys.version_info < (3, 12) else "iterable argument is empty"


def all(iterable: Any) -> bool:
    for item in iterable:
        if not item:
            return False
    return True


def any(iterable: Any) -> bool:
    for item in iterable:
        if item:
            return True
    return False


def sum(iterable: Any, /, start: object = 0) -> object:
    if isinstance(start, str | bytes | bytearray):
        iter(iterable)  # which C takes first
        if isinstance(start, str):
            raise TypeError("sum() can't sum strings [use ''.join(seq) instead]")
        name = "bytes" if isinstance(start, bytes) else "bytearray"
        raise TypeError(f"sum() can't sum {name} [use b''.join(seq) instead]")

    total, lost, adds_floats = start, 0.0, _COMPENSATES
    for item in iterable:
        if adds_floats and type(total) is float:
            if type(item) is float:
                lost += _lost(total, item)
            elif not isinstance(item, int):
                total, lost, adds_floats = _with(total, lost), 0.0, False
        elif type(total) is not int:
            adds_floats = False
        total = total + item
    return _with(total, lost)


def _lost(total: float, item: float) -> float:
    """Return the rounding error of the sum of two floats (Neumaier)."""
    larger, smaller = (total, item) if abs(total) >= abs(item) else (item, total)
    return (larger - (total + item)) + smaller


def _with(total: Any, lost: float) -> object:
    return total + lost if lost and -math.inf < lost < math.inf else total


def min(*args: object, key: object = None, default: object = _NOTHING) -> object:
    return _extreme("min", args, key, default)


def max(*args: object, key: object = None, default: object = _NOTHING) -> object:
    return _extreme("max", args, key, default)


def _extreme(name: str, args: object, key: Any, default: object) -> object:
    best = _NOTHING
    best_key = None
    for item in _candidates(name, args, default):
        if key is None and type(best) is int and type(item) is int:
            # the result of symbolic ints is one, without a guard on which of them is larger
            best = best_key = _of_ints[name](best, item)
            continue
        item_key = item if key is None else key(item)
        if best is _NOTHING or (item_key < best_key if name == "min" else item_key > best_key):
            best = item
            best_key = item_key
    if best is not _NOTHING:
        return best
    if default is _NOTHING:
        raise ValueError(f"{name}() {_EMPTY}")
    return default


def _candidates(name: str, args: Any, default: object) -> Any:
    if len(args) == 1:
        return args[0]
    if not args:
        raise TypeError(f"{name} expected at least 1 argument, got 0")
    if default is not _NOTHING:
        raise TypeError(f"Cannot specify a default for {name}() with multiple positional arguments")
    return args


def _iterator(iterable: Any) -> Any:
    try:
        return iter(iterable)
    except TypeError:
        return _NOTHING


def reduce(function: Any, iterable: object, initial: object = _NOTHING, /) -> object:
    # raised here: in the handler it would have a context
    if (it := _iterator(iterable)) is _NOTHING:
        raise TypeError("reduce() arg 2 must support iteration")
    value = next(it, _NOTHING) if initial is _NOTHING else initial
    if value is _NOTHING:
        raise TypeError("reduce() of empty iterable with no initial value")
    while (item := next(it, _NOTHING)) is not _NOTHING:
        value = function(value, item)
    return value
