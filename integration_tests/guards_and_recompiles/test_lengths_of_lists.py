"""`len` of a list that grows or shrinks between calls: a number like others, symbolic once it has
changed."""

from __future__ import annotations

import collections
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import stator
import torch
from torch import Tensor

from integration_tests.support.counting import Counting

X = torch.arange(3.0)
Calls = Iterator[tuple[Any, ...]]


class Logging(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.history: list[Tensor] = []

    def forward(self, x: Tensor) -> Tensor:
        self.history.append(x.sum())
        return x * len(self.history)


def counted_in_a_module(x: Tensor, module: Logging) -> Any:
    return module(x), module.history[-1]


def as_a_size(x: Tensor, items: list[Any]) -> Tensor:
    return torch.zeros(len(items)) + x[0]


def before_and_after_changes(x: Tensor, items: list[Any]) -> Tensor:
    first = len(items)
    items.append(1)
    second = len(items)
    items.pop()
    items.pop()
    return x * first + second - len(items)


def bounded(x: Tensor, items: list[Any]) -> Tensor:
    if len(items) > 3:
        items.pop(0)
    items.append(len(items))
    return x + len(items)


def bounded_queue(x: Tensor, items: collections.deque[Any]) -> Tensor:
    items.append(x)
    if len(items) > 4:
        items.popleft()
    return x * len(items)


def bounded_by_c(x: Tensor, items: collections.deque[Any]) -> Tensor:
    items.append(1)
    return x * len(items)


def checked(x: Tensor, items: list[Any]) -> Tensor:
    assert len(items) < 100
    return x + 1


def compared(x: Tensor, items: list[Any]) -> Tensor:
    return x * (len(items) == 5) + (2 if len(items) else 3)


def in_text(x: Tensor, items: list[Any]) -> Any:
    return x + 1, f"{len(items)} items"


def read_as_well(x: Tensor, items: list[Any]) -> Any:
    return x * len(items) + sum(items)


def grown_in_a_loop(x: Tensor, items: list[Any]) -> Any:
    found: list[int] = []
    for item in items:
        stator.graph_break()
        found.append(len(found) + item)
        x = x + len(found)
    return x, found


def of_lengths(*lengths: int) -> Calls:
    return ((X, list(range(length))) for length in lengths)


def again(container: Any) -> Calls:
    return ((X, container) for _ in range(8))


PROGRAMS: dict[Callable[..., Any], tuple[Callable[[], Calls], int]] = {
    counted_in_a_module: (lambda: again(Logging()), 2),
    as_a_size: (lambda: of_lengths(2, 3, 4, 5, 3), 2),
    before_and_after_changes: (lambda: of_lengths(2, 3, 4, 5, 6, 3), 2),
    bounded: (lambda: again([]), 3),
    bounded_queue: (lambda: again(collections.deque()), 3),
    bounded_by_c: (lambda: again(collections.deque(maxlen=2)), 3),
    checked: (lambda: of_lengths(1, 2, 3, 4), 2),
    compared: (lambda: of_lengths(0, 3, 4, 5, 6, 7), 4),
    in_text: (lambda: of_lengths(3, 4, 5), 1),
    read_as_well: (lambda: of_lengths(2, 3, 4, 3), 3),
    grown_in_a_loop: (lambda: of_lengths(4, 4, 6), 8),
}


@pytest.mark.parametrize("fn", PROGRAMS)
def test_results_and_contents_are_those_of_plain_python(fn: Callable[..., Any]) -> None:
    make_calls, graphs = PROGRAMS[fn]
    backend = Counting()
    compiled = stator.compile(fn, backend=backend)
    for expected_args, args in zip(make_calls(), make_calls(), strict=True):
        expected, found = fn(*expected_args), compiled(*args)
        assert str(found) == str(expected)
        if not isinstance(args[1], torch.nn.Module):
            assert str(args[1]) == str(expected_args[1])
    assert backend.count <= graphs


def test_a_length_that_stays_is_a_constant() -> None:
    backend = Counting()
    compiled = stator.compile(as_a_size, backend=backend)
    for args in of_lengths(3, 3, 3):
        compiled(*args)
    (graph,) = backend.graphs
    assert [node.name for node in graph.graph.find_nodes(op="placeholder")] == ["x"]


def test_one_list_under_two_names_has_one_length() -> None:
    def fn(x: Tensor, left: list[int], right: list[int]) -> Tensor:
        left.append(1)
        return x * len(left) + len(right)

    compiled = stator.compile(fn, backend="eager")
    for length in (1, 2, 3, 4):
        plain, same = list(range(length)), list(range(length))
        assert compiled(X, same, same).tolist() == fn(X, plain, plain).tolist()
        assert same == plain
        assert compiled(X, same, [*same]).tolist() == fn(X, plain, [*plain]).tolist()
        assert same == plain
