"""What C checks of the results of special methods, and of arguments of builtin functions."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import pytest
import stator
import torch
from torch import Tensor

from integration_tests.support.oracle import assert_same


def answering(**methods: Callable[..., Any]) -> Any:
    """An object of a class with these special methods."""
    return type("Answering", (), {f"__{name}__": method for name, method in methods.items()})()


def broken(value: Any) -> Any:
    stator.graph_break()
    return value


LENGTHS: dict[str, Callable[[Any], Any]] = {
    "an int": lambda self: 3,
    "a bool": lambda self: True,
    "nothing": lambda self: None,
    "a float": lambda self: 2.0,
    "below zero": lambda self: -1,
    "as long as can be": lambda self: sys.maxsize,
    "too long": lambda self: sys.maxsize + 1,
    "far below zero": lambda self: -sys.maxsize - 10,
    "an index": lambda self: answering(index=lambda self: 5),
    "an index that is a bool": lambda self: answering(index=lambda self: True),
    "an index below zero": lambda self: answering(index=lambda self: -5),
    "an index behind a break": lambda self: answering(index=lambda self: broken(0)),
    "an index of nothing": lambda self: answering(index=lambda self: None),
    "an error": lambda self: int("none"),
}
LOOKS: dict[str, Callable[[Any], Any]] = {
    "len": len,
    "bool": bool,
    "a branch": lambda value: 1 if value else 2,
    "not": lambda value: not value,
    "the type": lambda value: type(len(value)).__name__,
}


def outcome(look: Callable[..., Any], *args: Any) -> Any:
    try:
        return look(*args)
    except Exception as error:
        return type(error).__name__, str(error)


@pytest.mark.filterwarnings("ignore:__index__ returned non-int:DeprecationWarning")
@pytest.mark.parametrize("look", LOOKS)
@pytest.mark.parametrize("title", LENGTHS)
def test_length_is_checked_as_c_does(title: str, look: str) -> None:
    def fn(x: Tensor) -> Any:
        return outcome(LOOKS[look], answering(len=LENGTHS[title])), x + 1

    assert_same(fn, stator.compile(fn, backend="eager"), lambda: (torch.ones(2),))


@pytest.mark.parametrize("title", LENGTHS)
def test_length_that_a_list_asks_for_is_checked(title: str) -> None:
    def fn(x: Tensor) -> Any:
        return outcome(list, answering(len=LENGTHS[title], iter=lambda self: iter([1, 2]))), x + 1

    assert_same(fn, stator.compile(fn, backend="eager"), lambda: (torch.ones(2),))


FORMATS: dict[str, Callable[[Any], Any]] = {
    "f-string": lambda value: f"{value:>4}",
    "format": lambda value: format(value, "b"),
    "format method": "{:z}".format,
    "the method itself": lambda value: value.__format__("q"),
}


class Text(str):
    __slots__ = ()


@pytest.mark.parametrize("given", ["text", Text("text"), 3, None, 1.5], ids=repr)
@pytest.mark.parametrize("way", FORMATS)
def test_format_gives_a_string(way: str, given: Any) -> None:
    def fn(x: Tensor) -> Any:
        found = outcome(FORMATS[way], answering(format=lambda self, spec: given))
        return found, type(found).__name__, x + 1

    assert_same(fn, stator.compile(fn, backend="eager"), lambda: (torch.ones(2),))


SUMS: tuple[tuple[Any, ...], ...] = (
    *(
        ([1, 2],),
        ([1, 2], 3),
        ([[1], [2]], []),
        ([(1,), (2,)], ()),
        (["a"], ""),
        (["a", "b"],),
        ([], ""),
    ),
    *(
        ([b"a"], b""),
        ([], b""),
        ([bytearray(b"a")], bytearray()),
        ([], bytearray()),
        ([b"a"], bytearray()),
    ),
    *(([{1: 2}], {}), ([], {}), ([True, False],), ([1, 2.5, True],), ((1, 2), 0.5), (3,)),
)


@pytest.mark.parametrize("args", SUMS, ids=lambda args: repr(args)[:30])
def test_sum_refuses_what_c_refuses(args: tuple[Any, ...]) -> None:
    def fn(x: Tensor) -> Any:
        return outcome(sum, *args), x + 1

    assert_same(fn, stator.compile(fn, backend="eager"), lambda: (torch.ones(2),), calls=1)


class Property:
    def __init__(self) -> None:
        self.own = 1

    @property
    def __dict__(self) -> Any:  # type: ignore[override]  # which is what this is about
        return {"a": broken(2)}


class Hooked:
    def __getattribute__(self, name: str) -> Any:
        return {"b": 3} if name == "__dict__" else object.__getattribute__(self, name)


class Plain:
    def __init__(self) -> None:
        self.own = 1


@pytest.mark.parametrize("cls", [Property, Hooked, Plain])
def test_vars_is_the_attribute(cls: type) -> None:
    def fn(x: Tensor) -> Any:
        return sorted(vars(cls())), {**vars(cls())}, len(cls().__dict__), x + 1

    assert_same(fn, stator.compile(fn, backend="eager"), lambda: (torch.ones(2),))
