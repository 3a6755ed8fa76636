"""Errors of keys without a hash: each use of a key has its own words since CPython 3.14."""

from __future__ import annotations

import collections
from collections.abc import Callable
from typing import Any

import pytest

USES: dict[str, Callable[[Any, Any, Any, Any], Any]] = {
    "look-up": lambda key, d, s, o: d[key],
    "store": lambda key, d, s, o: d.update([(key, 1)]),
    "display": lambda key, d, s, o: {key: 1},
    "in": lambda key, d, s, o: key in d,
    "get": lambda key, d, s, o: d.get(key),
    "pop": lambda key, d, s, o: d.pop(key),
    "del": lambda key, d, s, o: d.__delitem__(key),
    "in keys": lambda key, d, s, o: key in d.keys(),
    "union of keys": lambda key, d, s, o: d.keys() | [key],
    "add": lambda key, d, s, o: s.add(key),
    "in set": lambda key, d, s, o: key in s,
    "set display": lambda key, d, s, o: {key},
    "new frozenset": lambda key, d, s, o: frozenset([key]),
    "union": lambda key, d, s, o: s.union([key]),
    "intersection": lambda key, d, s, o: s.intersection([key]),
    "subset": lambda key, d, s, o: s.issubset([key]),
    "superset": lambda key, d, s, o: s.issuperset([key]),
    "disjoint": lambda key, d, s, o: s.isdisjoint([key]),
    "ordered store": lambda key, d, s, o: o.__setitem__(key, 1),
    "ordered look-up": lambda key, d, s, o: o[key],
    "ordered pop": lambda key, d, s, o: o.pop(key),
    "ordered move": lambda key, d, s, o: o.move_to_end(key),
    "count": lambda key, d, s, o: collections.Counter([key]),
    "hash": lambda key, d, s, o: hash(key),
}


class Unhashable:
    __hash__ = None  # type: ignore[assignment]


class Raising:
    def __hash__(self) -> int:
        raise TypeError("no hash of mine")


KEYS: dict[str, Callable[[], Any]] = {
    "list": list,
    "tuple": lambda: (1, []),
    "object": Unhashable,
}


@pytest.mark.parametrize("use", USES)
@pytest.mark.parametrize("key", KEYS)
def test_error_of_a_key_without_a_hash(check: Any, use: str, key: str) -> None:
    act, make = USES[use], KEYS[key]

    def fn(d: Any, s: Any, o: Any) -> Any:
        try:
            return act(make(), d, s, o)
        except TypeError as error:
            return error.args, error.__cause__, error.__context__

    check(fn, lambda: ({1: 2}, {1, 2}, collections.OrderedDict({1: 2})))


@pytest.mark.parametrize("use", ["look-up", "add", "in set", "hash"])
def test_error_of_a_key_whose_hash_raises(check: Any, use: str) -> None:
    act = USES[use]

    def fn(d: Any, s: Any, o: Any) -> Any:
        try:
            return act(Raising(), d, s, o)
        except TypeError as error:
            return str(error)

    check(fn, lambda: ({1: 2}, {1, 2}, None), breaks=None)
