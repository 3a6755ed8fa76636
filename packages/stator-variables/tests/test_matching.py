"""match statements."""

# ruff: noqa
from __future__ import annotations

import dataclasses
from collections import OrderedDict, UserDict, deque
from typing import Any, NamedTuple

import pytest


@dataclasses.dataclass
class Point:
    x: Any
    y: Any = 0


class Pair(NamedTuple):
    a: int
    b: int


class Plain:
    __match_args__ = ("n",)

    def __init__(self, n: int) -> None:
        self.n = n

    def __repr__(self) -> str:
        return f"Plain({self.n})"


def match(value: Any) -> Any:
    match value:
        case None | True | False:
            return "constant"
        case int(n) if n > 100:
            return "big", n
        case 1 | 2:
            return "small"
        case float() as f:
            return "float", f
        case "a":
            return "letter"
        case str(text):
            return "text", text
        case []:
            return "empty"
        case [one]:
            return "one", one
        case [1, *rest]:
            return "starts with 1", rest
        case [Point(x=0), _]:
            return "origin first"
        case (a, b, *_, last):
            return "many", a, b, last
        case {"kind": kind, **more}:
            return "kind", kind, more
        case {}:
            return "mapping"
        case Point(0, y):
            return "axis", y
        case Point(x, y=[_, inner]):
            return "point", x, inner
        case Plain(n):
            return "plain", n
        case _:
            return "other"


VALUES: list[Any] = [
    None, True, 500, 2, 7, 1.5, "a", "b", [], [3], (1, 2, 3), [Point(0), 1], [5, 6, 7, 8], {"kind": 1, "z": 2}, {"q": 1}, {},
    Point(0, 4), Point(1, [2, 3]), Point(1), Plain(3), b"bytes", Pair(1, 2), deque([1, 5]), OrderedDict(kind=1), {1}, range(2),
]  # fmt: skip


@pytest.mark.parametrize("value", VALUES, ids=repr)
def test_match(check: Any, value: Any) -> None:
    check(match, (value,))


def test_match_user_mapping(check: Any) -> None:
    check(match, lambda: (UserDict(kind=1),), breaks=None)


def bad(value: Any) -> Any:
    match value:
        case Plain(1, 2):  # type: ignore[misc]
            return "never"
    return "fell through"


def test_too_many_positional_patterns(check: Any) -> None:
    check(bad, lambda: (Plain(1),), ([],))
