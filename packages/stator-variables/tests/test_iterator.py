"""Iterators: lazy, shared, half consumed, exhausted, from outside, growing containers under
them."""

# ruff: noqa
from __future__ import annotations

from collections import OrderedDict, deque
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from stator_variables._objects._iterators._iterator import IteratorTracker


class Countdown:
    def __init__(self, n: int) -> None:
        self.n = n

    def __iter__(self) -> Countdown:
        return self

    def __next__(self) -> int:
        if self.n == 0:
            raise StopIteration
        self.n -= 1
        return self.n


class Old:
    def __getitem__(self, i: int) -> int:
        if i > 2:
            raise IndexError
        return i * i

    def __len__(self) -> int:
        return 3


def take_two(it: Iterator[Any]) -> Any:
    return next(it), next(it), it


def two_loops(it: Iterator[Any]) -> Any:
    first = []
    for item in it:
        first.append(item)
        if len(first) == 2:
            break
    return first, [item for item in it], next(it, "end")


def grow(x: list[int]) -> list[int]:
    seen = []
    for v in x:
        seen.append(v)
        if len(x) < 8:
            x.append(v + 1)
    return seen


def noisy(log: list[Any]) -> Iterator[int]:
    for i in range(4):
        log.append(i)
        yield i


def lazy() -> Any:
    log: list[Any] = []
    m = map(lambda v: log.append(("map", v)) or v, noisy(log))
    f = filter(lambda v: v % 2, m)
    before = list(log)
    return before, next(f), list(log), any(v > 0 for v in noisy(log)), log, all(noisy(log)), log


def pairs() -> Any:
    it = iter([1, 2, 3, 4, 5])
    return list(zip(it, it)), list(it)


def strict_zip() -> Any:
    found = []
    for args in (([1], [1, 2]), ([1, 2], [1]), ([1], [1], [1, 2]), ([], [], [1])):
        try:
            found.append(list(zip(*args, strict=True)))
        except ValueError as error:
            found.append(str(error))
    return found


def callables() -> Any:
    x = [3, 2, 1, 0, 5]
    return list(iter(x.pop, 0)), x


def many() -> Any:
    r = range(10, 0, -3)
    return (
        [*reversed([1, 2])],
        [*reversed((1, 2))],
        [*reversed(range(3))],
        [*reversed("abc")],
        [*reversed(Old())],
        list(Old()),
        2 in Old(),
        list(enumerate("ab", 5)),
        list(enumerate(["x"], start=-1)),
        list(zip()),
        list(map(lambda a, b: a + b, [1, 2], (3, 4, 5))),
        list(filter(None, [0, 1, "", "a"])),
        len(r), 7 in r, r.index(7), r[1], r[::2], r.start, list(r), r == range(10, 0, -3), r.count(4),
        next(iter([]), None),
        list(Countdown(3)),
        [*Countdown(2), *"ab"],
        sum(Countdown(4)), max(Countdown(3)), min([2, 1], key=lambda v: -v), max([], default=7),
        sorted(Countdown(3)), sum([[1], [2]], []), sum([1.5, 2]), tuple(Countdown(2)),
        dict(zip("ab", Countdown(2))),
    )  # fmt: skip


def unpacking(it: Any) -> Any:
    a, *b, c = it
    return a, b, c


def failures() -> Any:
    found: list[Any] = []
    for attempt in (
        lambda: iter(5),
        lambda: next([1]),
        lambda: [*5],
        lambda: max([]),
        lambda: sum(["a"]),
        lambda: sum([], ""),
        lambda: unpacking([1]),
        lambda: dict([1]),
        lambda: list(zip([1], 5)),
        lambda: next(iter([])),
        lambda: reversed({1}),
        lambda: enumerate(5),
        lambda: range("a"),
        lambda: range(1, 2, 0),
        lambda: min(1, "a"),
        lambda: sorted([1, "a"]),
    ):
        try:
            found.append(attempt())
        except Exception as error:
            found.append((type(error), error.args))
    return found


def escaping() -> Any:
    a, b = iter([1, 2, 3]), iter({"x": 1, "y": 2}.items())
    c = enumerate("abc", 3)
    next(a), next(b), next(c)
    d = iter([1])
    list(d)
    return (
        a,
        b,
        c,
        zip([1], "a"),
        map(len, ["a"]),
        iter((1, 2)),
        reversed([1, 2]),
        d,
        iter(range(3)),
        iter("ab"),
    )


@pytest.mark.parametrize("fn", [lazy, pairs, strict_zip, callables, many, failures, escaping])
def test_iterators(check: Any, fn: Any) -> None:
    check(fn)


@pytest.mark.parametrize("fn", [take_two, two_loops, list, unpacking])
@pytest.mark.parametrize(
    "make",
    [
        lambda: iter([1, 2, 3, 4]),
        lambda: iter((1, 2, 3, 4)),
        lambda: iter("abcd"),
        lambda: iter(b"abcd"),
        lambda: iter(range(3, 9)),
        lambda: reversed([1, 2, 3, 4]),
        lambda: reversed((1, 2, 3, 4)),
        lambda: iter({"a": 1, "b": 2, "c": 3, "d": 4}),
        lambda: iter({"a": 1, "b": 2, "c": 3, "d": 4}.items()),
        lambda: reversed({"a": 1, "b": 2, "c": 3, "d": 4}.values()),
        lambda: zip([1, 2, 3], "abc"),
        lambda: zip(*[[1, 2, 3]] * 9),
        lambda: map(str, [1, 2, 3]),
        lambda: filter(None, [1, 0, 3, 4]),
        lambda: enumerate("abcd", 5),
        lambda: Countdown(4),
    ],
)
def test_iterator_from_outside(check: Any, fn: Any, make: Callable[[], Any]) -> None:
    def advanced() -> Any:
        it = make()
        next(it)
        return it

    def exhausted() -> Any:
        it = make()
        list(it)
        return it

    target = fn if hasattr(fn, "__code__") else lambda it: list(it)
    check(target, lambda: (make(),), lambda: (advanced(),), lambda: (exhausted(),))


@pytest.mark.parametrize(
    "make",
    [lambda: deque([1, 2, 3]), lambda: {1: 2}, lambda: OrderedDict(a=1, b=2), lambda: [1, 2]],
)
def test_other_iterators_from_outside_break(check: Any, make: Callable[[], Any]) -> None:
    check(lambda it: [v for v in it], lambda: (iter(make()),), breaks=None)


def test_growing_list(check: Any) -> None:
    check(grow, ([1, 2],))
    check(lambda: grow([1]))


def test_list_growing_under_iterator_from_outside(check: Any) -> None:
    def run(it: Any, x: list[int]) -> Any:
        x.append(next(it))
        return next(it), x

    def make() -> Any:
        x = [1, 2]
        return iter(x), x

    check(run, make, breaks=None)


def test_views_from_outside(check: Any) -> None:
    def run(keys: Any, items: Any, d: dict[str, int]) -> Any:
        d["new"] = 1
        return list(keys), len(items), "new" in keys, keys

    def make() -> Any:
        d = {"a": 1}
        return d.keys(), d.items(), d

    check(run, make)


def test_an_iterator_that_is_carried_in_parts_can_be_built() -> None:
    waiting = [IteratorTracker]
    while waiting:
        cls = waiting.pop()
        waiting += cls.__subclasses__()
        assert cls.split is IteratorTracker.split or hasattr(cls, "build"), cls
