"""Iterators of itertools that the region started: given away, each goes on where it stood and is of
its class."""

from __future__ import annotations

import collections
import functools
import itertools
import operator
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import stator
import torch
from torch import Tensor

from integration_tests.support.oracle import assert_same

Made = Callable[[list[Any]], Any]
KINDS: dict[str, Made] = {
    "chain": lambda xs: itertools.chain(xs, (9,), xs),
    "chain.from_iterable": lambda xs: itertools.chain.from_iterable(zip(xs, xs, strict=True)),
    "chain of generators": lambda xs: itertools.chain((v + 1 for v in xs), (v + 2 for v in xs)),
    "chain of iterators": lambda xs: itertools.chain(iter(xs), map(str, xs)),
    "count": lambda xs: itertools.count(3),
    "count by": lambda xs: itertools.count(0.5, len(xs)),
    "cycle": itertools.cycle,
    "cycle of one": lambda xs: itertools.cycle(xs[:1]),
    "cycle of a generator": lambda xs: itertools.cycle(v * 2 for v in xs),
    "repeat": lambda xs: itertools.repeat(xs, 6),
    "repeat for ever": lambda xs: itertools.repeat(3),
    "islice": lambda xs: itertools.islice(xs * 3, 1, None, 2),
    "islice up to": lambda xs: itertools.islice(iter(xs), 2),
    "islice of steps": lambda xs: itertools.islice(itertools.count(), 2, 11, 4),
    "takewhile": lambda xs: itertools.takewhile(lambda v: v != 2, [*xs, 0]),
    "takewhile of nothing": lambda xs: itertools.takewhile(lambda v: v > 2, xs),
    "dropwhile": lambda xs: itertools.dropwhile(lambda v: v < 1, [*xs, 0]),
    "filterfalse": lambda xs: itertools.filterfalse(lambda v: v == 1, xs),
    "filterfalse of None": lambda xs: itertools.filterfalse(None, [0, *xs, 0]),
    "starmap": lambda xs: itertools.starmap(operator.add, zip(xs, xs, strict=True)),
    "compress": lambda xs: itertools.compress(xs, [1, 0, 1, 1]),
    "pairwise": itertools.pairwise,
    "pairwise of None": lambda xs: itertools.pairwise([None, *xs, None]),
    "accumulate": itertools.accumulate,
    "accumulate from": lambda xs: itertools.accumulate(xs, operator.mul, initial=5),
    "accumulate None": lambda xs: itertools.accumulate(
        [None, *xs], lambda a, b: None if b == 1 else b
    ),
    "zip_longest": lambda xs: itertools.zip_longest(xs, [1], "ab", fillvalue=7),
    "nested": lambda xs: itertools.islice(itertools.chain(itertools.cycle(xs)), 9),
}
if batched := getattr(itertools, "batched", None):  # since 3.12
    KINDS["batched"] = functools.partial(batched, n=2)


def started(make: Made, steps: int) -> Callable[[Tensor, list[Any]], Any]:
    def f(x: Tensor, items: list[Any]) -> Any:
        iterator = make(items)
        given = [next(iterator, "end") for _ in range(steps)]
        return x + 1, iterator, given

    return f


def gone_on(fn: Callable[..., Any]) -> Callable[..., Any]:
    """What the iterator that `fn` gives is, and what comes of it; the caller's list has grown
    meanwhile."""

    def run(x: Tensor, items: list[Any]) -> Any:
        x, iterator, given = fn(x, items)
        items.append(8)
        return x, type(iterator), given, list(itertools.islice(iterator, 7)), next(iterator, "end")

    return run


@pytest.mark.parametrize("steps", range(6))
@pytest.mark.parametrize("name", KINDS)
def test_one_that_is_given_away_goes_on_where_it_stood(name: str, steps: int) -> None:
    function = started(KINDS[name], steps)
    compiled = stator.compile(function, backend="eager", fullgraph=True)
    assert_same(gone_on(function), gone_on(compiled), lambda: (torch.ones(3), [0, 1, 2, 3]))


class Counter:
    """Keeps an iterator, as objects that number things do."""

    def __init__(self, start: int) -> None:
        self.numbers = itertools.count(start)
        self.first = next(self.numbers)


@pytest.mark.parametrize("start", [4, 7])
def test_an_object_may_hold_it(start: int) -> None:
    def f(x: Tensor, start: int) -> Any:
        counter = Counter(start)
        return x + next(counter.numbers), counter

    def run(fn: Callable[..., Any]) -> Callable[..., Any]:
        def go_on(x: Tensor, start: int) -> Any:
            x, counter = fn(x, start)
            return x, counter.first, next(counter.numbers), repr(counter.numbers)

        return go_on

    compiled = stator.compile(f, backend="eager", fullgraph=True)
    calls = iter([start, start + 1, start + 2, start] * 2)
    assert_same(run(f), run(compiled), lambda: (torch.ones(2), next(calls)), 4)


def test_what_it_goes_through_is_shared() -> None:
    def f(x: Tensor, items: list[int]) -> Any:
        below = iter(items)
        above = itertools.chain(below, [7])
        next(above)
        return x + 1, below, above

    def run(fn: Callable[..., Any]) -> Callable[..., Any]:
        def go_on(x: Tensor, items: list[int]) -> Any:
            x, below, above = fn(x, items)
            return x, next(below), next(above), next(below), list(above)

        return go_on

    compiled = stator.compile(f, backend="eager", fullgraph=True)
    assert_same(run(f), run(compiled), lambda: (torch.ones(2), [1, 2, 3, 4, 5]))


class Noticing:
    """Is its own iterator, and counts how often it is asked for it."""

    def __init__(self) -> None:
        self.asked = self.at = 0

    def __iter__(self) -> Iterator[int]:
        self.asked += 1
        return self

    def __next__(self) -> int:
        self.at += 1
        return self.at


@pytest.mark.parametrize(
    "make", [itertools.chain, itertools.cycle, lambda it: itertools.islice(it, 9)]
)
def test_an_iterator_of_the_program_is_asked_once(make: Callable[[Any], Any]) -> None:
    def f(x: Tensor) -> Any:
        below = Noticing()
        above = make(below)
        next(above)
        return x + 1, below.asked, below, above

    def run(fn: Callable[..., Any]) -> Callable[..., Any]:
        def go_on(x: Tensor) -> Any:
            x, asked, below, above = fn(x)
            return x, asked, next(above), below.asked, below.at

        return go_on

    assert_same(run(f), run(stator.compile(f, backend="eager")), lambda: (torch.ones(2),))


FOREIGN: dict[str, Made] = {
    "deque": lambda xs: iter(collections.deque(xs)),
    "callable": lambda xs: iter(xs[:].pop, 0),
}
OVER: dict[str, Made] = {
    "chain": lambda it: itertools.chain([0], it, [9]),
    "cycle": lambda it: itertools.islice(itertools.cycle(itertools.islice(it, 3)), 7),
    "islice": lambda it: itertools.islice(it, 1, 5),
    "takewhile": lambda it: itertools.takewhile(lambda v: v < 3, it),
    "dropwhile": lambda it: itertools.dropwhile(lambda v: v == 1, it),
    "filterfalse": lambda it: itertools.filterfalse(lambda v: v == 1, it),
    "starmap": lambda it: itertools.starmap(operator.add, zip(it, itertools.count(), strict=False)),
    "compress": lambda it: itertools.compress(it, [1, 0, 1]),
    "pairwise": itertools.pairwise,
    "accumulate": itertools.accumulate,
    "zip_longest": lambda it: itertools.zip_longest(it, [1, 2]),
    "zip": lambda it: zip(range(9), itertools.chain([5], it), strict=False),
}


@pytest.mark.parametrize("breaks_before", [False, True])
@pytest.mark.parametrize("outer", OVER)
@pytest.mark.parametrize("inner", FOREIGN)
def test_a_break_while_it_steps_leaves_the_rest_captured(
    outer: str, inner: str, breaks_before: bool
) -> None:
    """What it goes through was made before the break: it is a real iterator, which no graph can
    step."""

    def f(x: Tensor, items: list[Any]) -> Any:
        below = FOREIGN[inner](items)
        if breaks_before:
            stator.graph_break()
        found = []
        for item in OVER[outer](below):
            x = x + 1
            found.append(str(item))
            if len(found) == 1:
                stator.graph_break()
        return x, found

    compiled = stator.compile(f, backend="eager", recompile_limit=16)
    assert_same(f, compiled, lambda: (torch.ones(3), [0, 1, 2, 3]))
    assert "reconstruction" not in {reason.reason for reason in compiled.report.breaks}
