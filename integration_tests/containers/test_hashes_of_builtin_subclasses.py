"""Subclasses of builtin values that hash in their own way, by asking their base; strings of a class
as names."""

from __future__ import annotations

import collections
from collections.abc import Callable
from typing import Any

import pytest
import stator
import torch
from torch import Tensor

from integration_tests.support.oracle import assert_same


class OfTuple(tuple[int, ...]):
    def __hash__(self) -> int:
        return super().__hash__() ^ 1


class Named(collections.namedtuple("Named", "a b")):
    __slots__ = ()

    def __hash__(self) -> int:
        return super().__hash__() + 2

    def __eq__(self, other: object) -> bool:
        return super().__eq__(other)


class OfFrozenset(frozenset[int]):
    def __hash__(self) -> int:
        return frozenset.__hash__(self) ^ 1


class OfStr(str):
    def __hash__(self) -> int:
        return super().__hash__() ^ 1


class OfInt(int):
    def __hash__(self) -> int:
        return super().__hash__() ^ 1


class OfFloat(float):
    def __hash__(self) -> int:
        return super().__hash__() ^ 1


def base_of(a: Any) -> Any:
    return type(a).__mro__[1]


MADE: dict[str, Callable[[], Any]] = {
    "tuple": lambda: OfTuple((1, 2)),
    "namedtuple": lambda: Named(1, 2),
    "frozenset": lambda: OfFrozenset((1, 2)),
    "str": lambda: OfStr("ab"),
    "int": lambda: OfInt(3),
    "float": lambda: OfFloat(2.5),
}
EQUAL = {(1, 2): 5, "ab": 6, 3: 7, 2.5: 8, frozenset((1, 2)): 9}
USES: dict[str, Callable[[Any], Any]] = {
    "hash": hash,
    "a key": lambda a: {a: 1}[a],
    "a key that is equal": lambda a: {a: 1}.get((1, 2)),
    "in a set": lambda a: a in {a},
    "in a set that is equal": lambda a: (1, 2) in {a},
    "looked for": lambda a: dict(EQUAL).get(a, 0),
    "in a tuple": lambda a: hash((a, 1)),
    "in a frozen set": lambda a: hash(frozenset([a])),
    "given away": lambda a: ({a: 1}, a),
    "joined": lambda a: len({a} | {(1, 2)}),
    "of the base": lambda a: base_of(a).__hash__(a),
}


@pytest.mark.parametrize("is_given", [False, True])
@pytest.mark.parametrize("use", USES)
@pytest.mark.parametrize("kind", MADE)
def test_a_hash_that_asks_its_base(kind: str, use: str, is_given: bool) -> None:
    def f(x: Tensor, given: Any) -> Any:
        return x + 1, USES[use](given if is_given else MADE[kind]())

    assert_same(f, stator.compile(f, backend="eager"), lambda: (torch.ones(2), MADE[kind]()), 2)


class Name(str):
    """Says something else of itself, and counts it."""

    times = 0

    def __repr__(self) -> str:
        Name.times += 1
        return "another"


class Holder:
    relu = 5

    def __init__(self) -> None:
        self.tanh = 6

    def set(self, name: str) -> None:
        setattr(self, name, 7)


NAMED: dict[str, Callable[[Any, Any], Any]] = {
    "getattr": getattr,
    "getattr with a default": lambda of, name: getattr(of, name + "d", 3),
    "hasattr": hasattr,
    "setattr": lambda of, name: (of.set(name), vars(of)),
    "__getattribute__": object.__getattribute__,
    "keywords": lambda of, name: dict(**{name: 1}),
    "arguments": lambda of, name: of.__init__(**{name[:0] + "x": 1}),
    "a module dict": lambda of, name: torch.nn.ModuleDict({name: torch.nn.ReLU()})[name](
        torch.ones(1)
    ),
    "enumerate": lambda of, name: list(enumerate(name, OfInt(3))),
}


@pytest.mark.parametrize("is_given", [False, True])
@pytest.mark.parametrize("use", NAMED)
def test_strings_of_a_class_are_names(use: str, is_given: bool) -> None:
    def f(x: Tensor, given: Any) -> Any:
        try:
            return x + 1, NAMED[use](Holder(), given if is_given else Name("relu")), Name.times
        except TypeError as error:
            return x + 1, str(error)

    assert_same(f, stator.compile(f, backend="eager"), lambda: (torch.ones(2), Name("relu")), 3)
