"""Tuples and sets of classes made in the region: structs of C, and subclasses with a `__new__` or
`__init__`."""

from __future__ import annotations

import collections
import os
import time
import typing
from collections.abc import Callable
from typing import Any

import pytest
import stator
import torch
from torch import Tensor

from integration_tests.support.oracle import assert_same

PROGRAMS: dict[str, Callable[..., Any]] = {}


def program(fn: Callable[..., Any]) -> Callable[..., Any]:
    PROGRAMS[fn.__name__.replace("_", " ")] = fn
    return fn


class Plain(tuple[Any, ...]):
    pass


class Joined(tuple[Any, ...]):
    def __new__(cls, *items: Any) -> Any:
        return super().__new__(cls, items)

    @property
    def first(self) -> Any:
        return self[0]


class Tagged(tuple[Any, ...]):
    tag: Any

    def __new__(cls, first: Any, tag: Any) -> Any:
        made = tuple.__new__(cls, (first, tag))
        made.tag = tag
        return made

    def __init__(self, first: Any, tag: Any) -> None:
        self.size = len(self)


class Span(collections.namedtuple("Span", "start stop")):
    __slots__ = ()

    def __new__(cls, start: Any, stop: Any = 9) -> Any:
        return super().__new__(cls, start, stop)

    def width(self) -> Any:
        return self.stop - self.start


class Typed(typing.NamedTuple):
    x: Any
    n: int = 2


class Names(frozenset[Any]):
    count: int

    def __new__(cls, *names: str) -> Any:
        made = super().__new__(cls, names)
        made.count = len(names)
        return made


class Numbers(set[Any]):
    def __init__(self, *numbers: int) -> None:
        super().__init__(numbers)
        self.count = len(numbers)


@program
def results_of_operators(x: Tensor) -> Any:
    found = torch.return_types.max((x + 1, x))
    again = type(found)((found.indices, found[0]))
    return found, again.values, isinstance(found, tuple), len(again), found[1:]


@program
def a_result_of_an_operator_is_made_again(x: Tensor) -> Any:
    found = torch.topk(x, 2)
    made: Any = type(found)
    return made([part + 1 for part in found])


@program
def times(x: Tensor) -> Any:
    made = time.struct_time((2020, 1, 2, 3, 4, 5, 6, 7, 0))
    return x * made.tm_mon, made, made[:2], made.tm_yday, made == tuple(made)


@program
def results_of_stat(x: Tensor) -> Any:
    made = os.stat_result(range(10))
    size = os.terminal_size((80, x.shape[0]))
    return x * made.st_mode, made.st_size, size.lines, size


@program
def plain_subclasses(x: Tensor) -> Any:
    return (
        Plain([x, 1]),
        Plain(),
        Plain(n for n in range(2)),
        Plain((1, 2)).__add__((3,)),
        type(Plain("a")),
    )


@program
def subclasses_with_new(x: Tensor) -> Any:
    made = Joined(x, 2)
    return x * Joined(3).first, made, made[1:], made == (x, 2), Joined(*made).first is x


@program
def subclasses_with_attributes(x: Tensor) -> Any:
    made = Tagged(x, "tag")
    return made, made.tag, made.size, Tagged(1, made)


@program
def named_tuples_with_defaults_of_their_own(x: Tensor) -> Any:
    span = Span(2)
    return x * span.width(), span, span._replace(start=x), Span._make([1, 2]), Span(3)._asdict()


@program
def typed_named_tuples(x: Tensor) -> Any:
    made = Typed(x)
    return made, made._replace(n=5).n, [*Typed._fields], Typed(*made).x is x


@program
def frozen_sets_of_a_class(x: Tensor) -> Any:
    names = Names("a", "b", "a")
    return (
        x * len(names),
        names,
        names.count,
        "a" in names,
        hash(Names("q")) == hash(frozenset("q")),
    )


@program
def sets_of_a_class(x: Tensor) -> Any:
    numbers = Numbers(1, 2, 2)
    numbers.add(5)
    return x * numbers.count, numbers, numbers | {7}, type(numbers & {1})


@pytest.mark.parametrize("name", PROGRAMS)
def test_what_is_made_is_that_of_plain_python(name: str) -> None:
    fn = PROGRAMS[name]
    compiled = stator.compile(fn, backend="eager", fullgraph=True)
    assert_same(fn, compiled, lambda: (torch.arange(3.0),), 3)


@pytest.mark.parametrize("name", PROGRAMS)
def test_what_is_made_outlives_a_break(name: str) -> None:
    fn = PROGRAMS[name]
    compiled = stator.compile(fn, backend="eager", options={"break_everywhere": True})
    assert_same(fn, compiled, lambda: (torch.arange(3.0),), 2)


@pytest.mark.parametrize("items", [(), (1,), range(12), 5])
def test_items_that_a_struct_does_not_take_are_refused_as_by_c(items: Any) -> None:
    def make(x: Tensor, items: Any) -> Any:
        return x, torch.return_types.max(items)

    assert_same(make, stator.compile(make, backend="eager"), lambda: (torch.ones(2), items), 2)


@pytest.mark.parametrize("cls", [Plain, Names, Joined, frozenset])
def test_more_than_an_iterable_is_refused_as_by_c(cls: Any) -> None:
    def make(x: Tensor, named: bool) -> Any:
        try:
            made = cls([1], sequence=()) if named else cls([1], 2)
        except TypeError as error:
            return x, str(error)
        return x, made

    for named in (False, True):
        compiled = stator.compile(make, backend="eager")
        assert_same(make, compiled, lambda named=named: (torch.ones(2), named), 2)  # type: ignore[misc]


def test_a_frozen_set_of_a_class_is_an_operand() -> None:
    class Frozen(frozenset[int]):
        pass

    def meet(x: Tensor) -> Any:
        made = Frozen([1, 2, 17])
        return x, made.intersection([2, 17]), made & {1}, made | {3}, made - Frozen([1]), made

    assert_same(meet, stator.compile(meet, backend="eager"), lambda: (torch.ones(2),), 2)


@pytest.mark.parametrize("count", [9, 11])
def test_fields_that_are_no_items_are_read(count: int) -> None:
    def read(x: Tensor, items: Any) -> Any:
        made = time.struct_time(items)
        return x, made.tm_year, made.tm_zone, made.tm_gmtoff

    compiled = stator.compile(read, backend="eager")
    assert_same(read, compiled, lambda: (torch.ones(2), (*range(count - 1), None)), 2)
