"""itertools: the traced ones, and the app-level functions against the real ones."""

# ruff: noqa
from __future__ import annotations

import itertools
import operator
import sys
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from stator_variables._applevel import _itertools as app

CALLS: list[Callable[[Any, list[Any], list[Any]], Any]] = [
    lambda m, x, y: list(m.chain(x, y, x)),
    lambda m, x, y: list(m.islice(x, 3)),
    lambda m, x, y: list(m.islice(x, 1, None, 2)),
    lambda m, x, y: list(m.islice(x, 1, 4)),
    lambda m, x, y: (lambda it: (list(m.islice(it, 3, 1)), list(it)))(iter(x)),
    lambda m, x, y: (lambda it: (list(m.islice(it, 0, 4, 3)), list(it)))(iter(x)),
    lambda m, x, y: list(m.takewhile(lambda v: v < 3, x)),
    lambda m, x, y: list(m.dropwhile(lambda v: v < 3, x)),
    lambda m, x, y: list(m.filterfalse(lambda v: v < 3, x)),
    lambda m, x, y: list(m.filterfalse(None, x)),
    lambda m, x, y: list(m.starmap(operator.add, zip(x, y))),
    lambda m, x, y: list(m.compress(x, y)),
    lambda m, x, y: list(m.pairwise(x)),
    lambda m, x, y: list(m.accumulate(x)),
    lambda m, x, y: list(m.accumulate(x, operator.mul, initial=2)),
    lambda m, x, y: list(m.accumulate(x, max)),
    lambda m, x, y: list(m.zip_longest(x, y, fillvalue="-")),
    lambda m, x, y: list(m.zip_longest(x, y)),
    lambda m, x, y: [(key, list(group)) for key, group in m.groupby(x)],
    lambda m, x, y: [(key, list(group)) for key, group in m.groupby(x, lambda v: v // 2)],
    lambda m, x, y: [key for key, _ in m.groupby(x)],
    lambda m, x, y: [list(group) for group in [g for _, g in m.groupby(x)]],
    lambda m, x, y: [next(group) for _, group in m.groupby(x)],
    lambda m, x, y: [list(it) for it in m.tee(x, 3)],
    lambda m, x, y: (lambda a, b: (next(a, None), list(b), list(a)))(*m.tee(iter(x))),
    lambda m, x, y: [v for v, _ in zip(m.count(2), x)],
    lambda m, x, y: [v for v, _ in zip(m.count(2.5, -1), x)],
    lambda m, x, y: [v for v, _ in zip(m.cycle(y), x)],
    lambda m, x, y: [v for v, _ in zip(m.repeat(7), x)],
    lambda m, x, y: list(m.repeat("a", 3)),
]
NATIVE: list[Callable[[list[Any], list[Any]], Any]] = [
    lambda x, y: list(itertools.product(x, y)),
    lambda x, y: list(itertools.product(y, repeat=2)),
    lambda x, y: list(itertools.permutations(y, 2)),
    lambda x, y: list(itertools.permutations(y)),
    lambda x, y: list(itertools.combinations(x, 2)),
    lambda x, y: list(itertools.combinations_with_replacement(y, r=2)),
    lambda x, y: list(itertools.chain.from_iterable([x, y])),
    lambda x, y: itertools.chain(x, y),
    lambda x, y: itertools.product(x, y),
    lambda x, y: itertools.islice(x, 2),
    lambda x, y: list(itertools.islice(x, -1)),
    lambda x, y: (lambda it: (next(it, None), list(x), list(it)))(itertools.chain(x, y)),
    lambda x, y: list(itertools.chain(5)),
]
NUMBERS = st.lists(st.integers(0, 5), max_size=6)


class Asked:
    """The app-level classes, of iterators, as itertools: of iterables."""

    def __getattr__(self, name: str) -> Any:
        if name == "chain":
            return lambda *parts: app.chain(iter(parts))
        asks = (
            (lambda v: v)
            if name == "repeat"
            else (lambda v: iter(v) if hasattr(v, "__iter__") else v)
        )
        return lambda *args, **kwargs: getattr(app, name)(*map(asks, args), **kwargs)

    def tee(self, of: Any, n: int = 2) -> list[Any]:
        shared = app.Shared(iter(of))
        return [app._tee(shared) for _ in range(n)]


@pytest.mark.parametrize("call", CALLS)
@settings(max_examples=40)
@given(x=NUMBERS, y=NUMBERS)
def test_app_level_is_itertools(call: Any, x: list[int], y: list[int]) -> None:
    assert call(Asked(), x, y) == call(itertools, x, y)


@given(x=NUMBERS, n=st.integers(1, 4))
def test_batched(x: list[int], n: int) -> None:
    expected = [tuple(x[i : i + n]) for i in range(0, len(x), n)]
    assert list(app.batched(iter(x), n)) == expected
    if sys.version_info >= (3, 12):
        assert list(itertools.batched(x, n)) == expected


@pytest.mark.parametrize("call", CALLS)
def test_traced(check: Any, call: Any) -> None:
    check(lambda x, y: call(itertools, x, y), ([1, 2, 2, 3, 0], [1, 0, 4]), ([], [2]))


@pytest.mark.parametrize("call", NATIVE)
def test_traced_combinations(check: Any, call: Any) -> None:
    check(lambda x, y: call(x, y), ([1, 2, 2], [1, 0, 4]), ([], [2]))


def test_existing_itertools_objects_break(check: Any) -> None:
    def run(it: Any) -> Any:
        return next(it), next(it)

    compiled = check(
        run,
        lambda: (itertools.islice("abc", 3),),
        lambda: (itertools.chain([1, 2], [3]),),
        breaks=None,
    )
    assert {reason.reason for reason in compiled.breaks} <= {
        "existing-iterator",
        "foreign-iterator",
        "foreign-object",
    }
