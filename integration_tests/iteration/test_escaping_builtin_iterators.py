"""Builtin iterators that the region made over what existed before, given away: over iterators that
it moved on, and over deques at their end."""

from __future__ import annotations

import itertools
from collections import deque
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import stator
import torch
from torch import Tensor

from integration_tests.support.oracle import assert_same

CONSUMERS: dict[str, Callable[[Iterator[int]], Iterator[Any]]] = {
    "enumerate": lambda it: enumerate(it, 3),
    "filter": lambda it: filter(None, it),
    "map": lambda it: map(str, it),
    "zip": lambda it: zip(it, it, strict=True),
    "enumerate of filter": lambda it: enumerate(filter(None, it)),
}


def gone_on(fn: Callable[..., Any]) -> Callable[..., Any]:
    """What the iterator that `fn` gives is, what comes of it, and what is left below it."""

    def run(x: Tensor, below: Any) -> Any:
        x, iterator = fn(x, below)
        return x, type(iterator), list(itertools.islice(iterator, 2)), list(below)

    return run


@pytest.mark.parametrize("name", CONSUMERS)
@pytest.mark.parametrize("steps", range(3))
def test_over_an_iterator_that_was_moved_on(name: str, steps: int) -> None:
    def f(x: Tensor, below: Iterator[int]) -> Any:
        for _ in range(steps):
            x = x + next(below)
        return x, CONSUMERS[name](below)

    compiled = stator.compile(f, backend="eager", fullgraph=True)
    assert_same(
        gone_on(f), gone_on(compiled), lambda: (torch.ones(2), iter([4, 0, 5, 6, 0, 7, 8, 9]))
    )


def ended(fn: Callable[..., Any]) -> Callable[..., Any]:
    """What the iterator that `fn` gives is, and what a step does before and after a change."""

    def run(x: Tensor, items: deque[int]) -> Any:
        x, iterator = fn(x, items)
        before = next(iterator, "end")
        items.append(8)
        try:
            return x, type(iterator), before, next(iterator, "end")
        except RuntimeError as error:
            return x, type(iterator), before, str(error)

    return run


@pytest.mark.parametrize("iterate", [iter, reversed])
def test_over_a_deque_at_its_end(iterate: Callable[[Any], Iterator[int]]) -> None:
    def f(x: Tensor, items: deque[int]) -> Any:
        iterator = iterate(items)
        for item in iterator:
            x = x + item
        return x, iterator

    compiled = stator.compile(f, backend="eager", fullgraph=True)
    assert_same(ended(f), ended(compiled), lambda: (torch.ones(2), deque([1, 2, 3])))


@pytest.mark.parametrize("iterate", [iter, reversed])
def test_over_a_deque_that_changed_after_its_end(iterate: Callable[[Any], Iterator[int]]) -> None:
    """Forwards, the iterator finds that out; backwards it has ended for good."""

    def f(x: Tensor, items: deque[int]) -> Any:
        iterator = iterate(items)
        for item in iterator:
            x = x + item
        items.append(7)
        return x, iterator

    def run(fn: Callable[..., Any]) -> Callable[..., Any]:
        def step(x: Tensor, items: deque[int]) -> Any:
            x, iterator = fn(x, items)
            try:
                return x, items, next(iterator, "end")
            except RuntimeError as error:
                return x, items, str(error)

        return step

    compiled = stator.compile(f, backend="eager")
    assert_same(run(f), run(compiled), lambda: (torch.ones(2), deque([1, 2, 3])))
