"""Programs that make an iterator, and go on with it after a break, give it away, or fail; and
classes to go through."""

from __future__ import annotations

import collections
import contextlib
import functools
import heapq
import itertools
import operator
from collections.abc import Callable, Iterator
from typing import Any

import stator
from torch import Tensor

LOG: list[Any] = []

ITERATORS = """
map(lambda a, b: a + b, g(n), g(n + 1))
filter(lambda v: v != 1, g(n))
zip(g(n), g(n - 1), strict=True)
enumerate(zip(g(n), g(n)), 5)
(v for v in g(n))
itertools.chain(g(n), g(2))
itertools.chain.from_iterable(g(v) for v in g(n))
itertools.cycle(itertools.islice(g(n), 2))
itertools.islice(g(5), 1, n + 1, 2)
itertools.islice(g(5), 3, 1)
itertools.takewhile(lambda v: v < 2, g(n))
itertools.dropwhile(lambda v: v < 1, g(n))
itertools.filterfalse(None, g(n))
itertools.starmap(together, zip(g(n), g(n)))
itertools.compress(selectors=g(n), data=g(n + 1))
itertools.accumulate(g(n))
itertools.accumulate(iterable=g(n), func=lambda a, b: a * b, initial=2)
itertools.pairwise(g(n))
itertools.zip_longest(g(n), g(2), fillvalue=8)
itertools.product(g(n), g(2))
itertools.permutations(g(n), 2)
itertools.tee(g(n))[0]
itertools.groupby(g(n))
zip(itertools.count(), itertools.repeat(1), g(n))
"""
OVER_GENERATORS = """
itertools.chain(v for v in g(n))
itertools.combinations((v for v in g(4)), 2)
itertools.product((v for v in g(2)), repeat=2)
map(str, (v for v in g(n)))
zip((v for v in g(n)), g(3))
zip(iter((n, 1)), (v for v in g(n)))
enumerate(v for v in g(n))
enumerate((v for v in g(n)), n)
"""
USES = {
    "loop": """
    for v in {it}:
        out.append(v)
        stator.graph_break()
        if len(out) > 7:
            break
""",
    "next": """
    it = {it}
    out.append(next(it, "none"))
    stator.graph_break()
    out.append(next(it, "none"))
    stator.graph_break()
    out += itertools.islice(it, 6)
    out.append(next(it, "end"))
""",
    "give": """
    it = {it}
    out.append(next(it, "none"))
    out.append(it)
""",
    "loop in a loop": """
    it = {it}
    for v in it:
        stator.graph_break()
        for w in it:
            out.append((v, w))
            if len(out) % 2:
                break
        if len(out) > 7:
            break
""",
    "held by a list that holds itself": """
    held = [{it}]
    out.append(next(held[0], "none"))
    held.append(held)
    stator.graph_break()
    out += itertools.islice(held[0], 6)
    stator.graph_break()
    out.append(next(held[0], "end"))
""",
}
CONSUMED = """
sum(g(n))
sorted(g(n), key=lambda v: -v)
max(g(n), default=9)
any(v > 1 for v in g(n))
dict(zip(g(n), g(n)))
call(*g(n), *g(n))
",".join(map(str, g(n)))
bytes(g(n))
list(enumerate(g(n), n))
collections.Counter(g(n))
functools.reduce(operator.add, g(n), 0)
list(itertools.starmap(call, ((v, v) for v in g(n))))
1 in g(n)
operator.indexOf(g(n), 0)
{1, 2}.intersection(g(n))
{1: 1}.keys() | g(n)
heapq.nlargest(2, g(n))
[list(group) for _, group in itertools.groupby(g(n), broken)]
list(itertools.filterfalse(broken, g(n)))
suppressed(g(n))
"""


def together(a: Any, b: Any) -> Any:
    return a, b


def call(*args: Any) -> Any:
    return args


def broken(value: Any) -> Any:
    stator.graph_break()
    return value


def suppressed(it: Any) -> Any:
    found = []
    with contextlib.suppress(KeyError):
        found.extend(it)
    return found


class Restarting:
    """Begins anew when it is asked for its iterator."""

    def __init__(self, n: int) -> None:
        self.at, self.n = -1, n

    def __iter__(self) -> Any:
        LOG.append("iter")
        self.at = -1
        return self

    def __next__(self) -> int:
        self.at += 1
        LOG.append(self.at)
        if self.at >= self.n:
            raise StopIteration
        return self.at


class Failing(Restarting):
    """Goes on after it has failed."""

    def __next__(self) -> int:
        if self.at == 0 and "failed" not in LOG:
            LOG.append("failed")
            raise KeyError("once")
        return super().__next__()


class ByItems:
    def __init__(self, n: int) -> None:
        self.n = n

    def __getitem__(self, index: int) -> int:
        LOG.append(index)
        if index >= self.n:
            raise IndexError
        return index


class Stepping:
    """Has no `__iter__`, which nobody needs who was asked for it by another."""

    def __init__(self, n: int) -> None:
        self.at, self.n = -1, n

    __next__ = Restarting.__next__


class Lending:
    def __init__(self, n: int) -> None:
        self.n = n

    def __iter__(self) -> Any:
        LOG.append("lent")
        return Stepping(self.n)


class Breaking(Restarting):
    def __next__(self) -> int:
        stator.graph_break()
        return super().__next__()


class BreakingByItems(ByItems):
    def __getitem__(self, index: int) -> int:
        if index == 1:
            stator.graph_break()
        return super().__getitem__(index)


def generated(n: int) -> Iterator[int]:
    try:
        for i in range(n):
            stator.graph_break()
            yield i
        LOG.append("end")
    finally:
        LOG.append("closed")


SOURCES: dict[str, Callable[[int], Any]] = {
    "restarting": Restarting,
    "failing": Failing,
    "by items": ByItems,
    "lending": Lending,
    "a list": lambda n: list(range(n)),
}
BREAKING: dict[str, Callable[[int], Any]] = {
    "breaking": Breaking,
    "breaking by items": BreakingByItems,
    "generated": generated,
}


def program(body: str) -> Callable[[Tensor, int, Callable[[int], Any]], Any]:
    text = f"def run(x, n, g):\n    out = []\n{body}\n    return out, x + 1\n"
    names = dict(globals())
    exec(compile(text, f"<{body}>", "exec"), names)
    run: Callable[[Tensor, int, Callable[[int], Any]], Any] = names["run"]
    return run


__all__ = ["collections", "functools", "heapq", "itertools", "operator"]
