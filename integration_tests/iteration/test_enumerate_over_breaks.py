"""`enumerate` over other iterators, half consumed at a break: it goes on where it stood, and the
function with it."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import stator
import torch
from torch import Tensor

from integration_tests.support.oracle import assert_same


class Popping:
    """An iterator of the program's."""

    def __init__(self, items: list[Any]) -> None:
        self.items = list(items)

    def __iter__(self) -> Iterator[Any]:
        return self

    def __next__(self) -> Any:
        if not self.items:
            raise StopIteration
        return self.items.pop(0)


class Loader:
    def __init__(self, items: list[Any]) -> None:
        self.items = items

    def __iter__(self) -> Iterator[Any]:
        return Popping(self.items)


Made = Callable[[list[Any]], Any]
IN_STEP: dict[str, Made] = {
    "a list": enumerate,
    "a zip": lambda items: enumerate(zip(items, items[:3], strict=False), 3),
    "a zip whose first is shorter": lambda items: enumerate(zip(items[1:], items, strict=False)),
    "an enumerate": lambda items: enumerate(enumerate(items, 2)),
    "a zip with an enumerate": lambda items: enumerate(
        zip(items, enumerate(items[:2]), strict=False)
    ),
    "a zip of nothing": lambda items: enumerate(zip(strict=False)),
    "a zip in a zip": lambda items: zip(
        range(9), enumerate(zip(items, items, strict=True)), strict=False
    ),
    "a zip of many kinds": lambda items: enumerate(
        zip(reversed(items), {1: 2, 3: 4}.items(), "abcd", strict=False)
    ),
    "a chain": lambda items: enumerate(itertools.chain(items, items)),
}
STEP_BY_STEP: dict[str, Made] = {
    "a map": lambda items: enumerate(map(str, items)),
    "a map that does something": lambda items: enumerate(map(items.append, items[:3])),
    "a filter": lambda items: enumerate(filter(None, items)),
    "a zip with a map": lambda items: enumerate(zip(items, map(str, items), strict=True)),
    "a generator": lambda items: enumerate(item for item in items),
    "calls": lambda items: enumerate(iter(items.pop, 0)),
    "an iterator of the program's": lambda items: enumerate(Popping(items)),
    "a loader of the program's": lambda items: enumerate(Loader(items)),
    "a zip with one": lambda items: enumerate(zip(items, Popping(items), strict=True)),
}
ALL = IN_STEP | STEP_BY_STEP


def broken_once(make: Made) -> Callable[..., Any]:
    def f(x: Tensor, items: list[Any]) -> Any:
        iterator = make(items)
        for i, _ in iterator:
            if i == 1:
                stator.graph_break()
            x = x + i
        items.append(7)
        return x, list(iterator), items

    return f


def broken_each_time(make: Made) -> Callable[..., Any]:
    def f(x: Tensor, items: list[Any]) -> Any:
        found = []
        for i, item in make(items):
            stator.graph_break()
            x = x + i
            found.append(item)
        return x, found

    return f


@pytest.mark.parametrize("name", ALL)
@pytest.mark.parametrize("loop", [broken_once, broken_each_time])
def test_a_loop_goes_on_after_a_break(loop: Callable[[Made], Any], name: str) -> None:
    function = loop(ALL[name])
    compiled = stator.compile(function, backend="eager")
    assert_same(function, compiled, lambda: (torch.ones(3), [0, 1, 2, 3]))
    assert "runs plainly" not in str(compiled.report)


@pytest.mark.parametrize("name", ["a list", "a zip", "an enumerate", "a zip in a zip", "a chain"])
def test_a_loop_that_is_broken_once_costs_one_break(name: str) -> None:
    compiled = stator.compile(broken_once(IN_STEP[name]), backend="eager")
    compiled(torch.ones(3), [0, 1, 2, 3])
    said = [reason for reason in compiled.report.breaks if "graph_break" not in str(reason)]
    assert [reason for reason in said if "over what was changed" not in str(reason)] == []


def shared_below(x: Tensor, items: list[Any]) -> Any:
    first, second = iter(items), iter(items[1:])
    for i, (a, (j, b)) in enumerate(zip(first, enumerate(second), strict=False), 5):
        stator.graph_break()
        x = x + a * i + b * j
    return x, next(first, None), next(second, None)


def moved_below(x: Tensor, items: list[Any]) -> Any:
    first, second = iter(items), iter(items)
    for i, (a, b) in enumerate(zip(first, second, strict=False)):
        stator.graph_break()
        x = x + a * i + b
        next(first, None)
    return x, next(first, None), next(second, None)


def one_iterator_twice(x: Tensor, items: list[Any]) -> Any:
    one = iter(items)
    for i, (a, b) in enumerate(zip(one, one, strict=False)):
        stator.graph_break()
        x = x + a * i + b
    return x, next(one, None)


def read_in_two_loops(x: Tensor, items: list[Any]) -> Any:
    iterator = enumerate(zip(items, items[:4], strict=False), 1)
    for i, (a, b) in iterator:
        stator.graph_break()
        x = x + a * i + b
        for j, (c, d) in iterator:
            x = x + c * j + d
            if j == 2:
                break
    return x, list(iterator)


@pytest.mark.parametrize(
    "function", [shared_below, moved_below, one_iterator_twice, read_in_two_loops]
)
def test_who_else_moves_what_is_below(function: Callable[..., Any]) -> None:
    assert_same(
        function,
        stator.compile(function, backend="eager"),
        lambda: (torch.ones(3), [0, 1, 2, 3, 4]),
    )
