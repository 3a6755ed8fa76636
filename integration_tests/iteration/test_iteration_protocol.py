"""What is gone through is asked for what C asks for, as often; what cannot be, is refused in C's
words."""

from __future__ import annotations

import importlib
import operator
from collections.abc import Callable
from typing import Any

import pytest
import stator
import torch
from torch import Tensor

from integration_tests.support.oracle import assert_same


class Raises:
    def __iter__(self) -> Any:
        raise TypeError("mine")


class RaisesOther:
    def __iter__(self) -> Any:
        raise KeyError("other")


class GivesNone:
    def __iter__(self) -> Any:
        return 3


class SaysNo:
    __iter__: Any = None
    __contains__: Any = None


class SaysNoToIter:
    __iter__: Any = None


GOES = """
1 in a ; 1 not in a ; operator.contains(a, 1) ; operator.countOf(a, 1) ; operator.indexOf(a, 1)
functools.reduce(operator.add, a) ; ",".join(a) ; b",".join(a) ; operator.setitem([1, 2], slice(0, 1), a)
operator.setitem([1, 2], slice(0, 2, 2), a) ; [*a] ; divmod(*a) ; [0].extend(a) ; {1: 2}.update(a) ; sum(a) ; min(a)
sorted(a) ; dict(a) ; list(collections.deque(a)) ; list(zip([1], a))
"""


MODULES = {
    name: importlib.import_module(name)
    for name in "collections functools heapq itertools math operator torch".split()
}


def programs(text: str) -> list[str]:
    return [program for line in text.strip().split("\n") for program in line.split(" ; ")]


ARE_NOT: dict[str, Callable[[], Any]] = {
    "an int": lambda: 3,
    "None": lambda: None,
    "a class": lambda: type,
    "a function of C": lambda: len,
    "a module": lambda: operator,
    "a dtype": lambda: torch.float32,
    "raises": Raises,
    "raises something else": RaisesOther,
    "gives no iterator": GivesNone,
    "says no": SaysNo,
    "says no to iter": SaysNoToIter,
}


@pytest.mark.parametrize("what", ARE_NOT)
@pytest.mark.parametrize("how", programs(GOES))
def test_the_error_is_that_of_plain_python(how: str, what: str) -> None:
    goes = eval(f"lambda a: {how}", dict(MODULES))

    def f(x: Tensor) -> Any:
        try:
            return x + 1, goes(ARE_NOT[what]())
        except Exception as error:
            return x + 1, type(error), str(error), error.__context__, error.__suppress_context__

    assert_same(f, stator.compile(f, backend="eager"), lambda: (torch.ones(2),), 2)


class Asked:
    """Starts again whenever it is asked for an iterator, and counts what it is asked for."""

    def __init__(self) -> None:
        self.times = self.steps = self.lengths = self.at = 0

    def __iter__(self) -> Any:
        self.times += 1
        self.at = 0
        return self

    def __next__(self) -> int:
        self.steps += 1
        self.at += 1
        if self.at > 3:
            raise StopIteration
        return self.at


class AskedForLength(Asked):
    def __length_hint__(self) -> int:
        self.lengths += 1
        return 2


class AskedForSize(Asked):
    def __len__(self) -> int:
        self.lengths += 1
        return 2


LAZY = """
itertools.chain([0], a) ; itertools.chain.from_iterable([a]) ; itertools.cycle(a) ; itertools.islice(a, 2)
itertools.takewhile(lambda v: v < 9, a) ; itertools.dropwhile(lambda v: v < 2, a)
itertools.filterfalse(lambda v: v == 1, a) ; itertools.starmap(max, zip(a, [4, 1]))
itertools.compress(a, [1, 0, 1]) ; itertools.compress([1, 2, 3], a) ; itertools.pairwise(a) ; itertools.accumulate(a)
itertools.zip_longest(a, [1]) ; ((key, list(group)) for key, group in itertools.groupby(a)) ; itertools.tee(a)[0]
itertools.product(a, [1]) ; itertools.combinations(a, 2) ; itertools.permutations(a, 2) ; map(str, a) ; filter(None, a)
zip(a, [3, 4, 5]) ; enumerate(a) ; iter(a)
"""
EAGER = """
sum(a, 1.5) ; max(a, key=lambda v: -v) ; any(v == 2 for v in a) ; list(a) ; tuple(a) ; set(a)
all(a) ; dict.fromkeys(a) ; collections.Counter(a) ; set().update(a) ; {1}.union(a) ; {1, 2}.intersection(a)
{9}.intersection(a) ; set().intersection(a) ; {1, 2}.intersection_update(a) ; {1}.issubset(a) ; {1, 2, 3}.issuperset(a)
{9}.issubset(a) ; {1}.issuperset(a) ; {9}.isdisjoint(a) ; {2}.isdisjoint(a) ; {9, 1}.symmetric_difference(a)
frozenset([9, 1]).difference(a) ; {2: 1}.keys().isdisjoint(a) ; {9: 1}.keys().isdisjoint(a) ; {1: 2}.keys() & a
{1: 2}.keys() | a ; math.prod(a) ; heapq.nsmallest(2, a) ; list(heapq.merge(a, [1])) ; bytes(a)
collections.deque([1]).extendleft(a) ; max(*a) ; {v: 1 for v in a} ; torch.Size(a)
"""
ALL = [
    *programs(GOES),
    *programs(EAGER),
    *(f"[*itertools.islice({text}, 6)]" for text in programs(LAZY)),
]


@pytest.mark.parametrize("cls", [Asked, AskedForLength, AskedForSize])
@pytest.mark.parametrize("how", ALL)
def test_what_can_be_gone_through_is_asked_as_often(how: str, cls: type[Asked]) -> None:
    goes = eval(f"lambda a: {how}", dict(MODULES))

    def f(x: Tensor) -> Any:
        items = cls()
        try:
            found = goes(items)
        except Exception as error:
            found = str(error)
        return x + 1, items.times, items.steps, items.lengths, items.at, found

    assert_same(f, stator.compile(f, backend="eager"), lambda: (torch.ones(2),), 2)
