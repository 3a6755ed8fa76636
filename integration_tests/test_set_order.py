"""The order of a set follows from its hashes and its history: sets that tracing rebuilds have that of plain Python.

The numbers are such that most of them meet in one place of a small table.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import stator
import torch
from torch import Tensor

from integration_tests.oracle import assert_same

PROGRAMS: dict[str, Callable[..., Any]] = {}


def program(fn: Callable[..., Any]) -> Callable[..., Any]:
    PROGRAMS[fn.__name__.replace("_", " ")] = fn
    return fn


def order(numbers: Any) -> list[str]:
    return [*map(str, numbers)]


@program
def a_literal(x: Tensor) -> Any:
    s = {8, 0, 32, 16, 24}
    stator.graph_break()
    return order(s), x


@program
def a_literal_of_strings(x: Tensor) -> Any:
    s = {"alpha", "beta", "gamma", "delta", "eps"}
    stator.graph_break()
    return order(s), x


@program
def a_literal_in_a_loop(x: Tensor) -> Any:
    seen = []
    for n in {24, 0, 16, 8}:  # noqa: PLC0208  # in that order
        seen.append((n, x * n))
    return seen


@program
def a_literal_that_changes(x: Tensor) -> Any:
    s = {8, 0, 32, 16, 24}
    s.discard(0)
    s.add(40)
    s.add(0)
    s.remove(8)
    return order(s), x + 1, s


@program
def a_set_of_a_list(x: Tensor) -> Any:
    s = set([16, 8, 0, 8, 24])  # noqa: C405  # made of a list
    s.discard(16)
    s.update([32, 16])
    return order(s), x


@program
def a_set_that_grows(x: Tensor) -> Any:
    s = {i * 37 % 64 for i in range(30)}
    s.difference_update({3, 5, 7})
    return order(s), x


@program
def a_set_that_is_merged(x: Tensor) -> Any:
    s = {8, 0}
    s.update({24, 16, 32})
    s |= {40, 0}
    s -= {8, 99}
    return order(s), x


@program
def a_union_and_a_copy(x: Tensor) -> Any:
    s = {16, 8, 0} | {24, 8}
    r = s.copy()
    r.add(32)
    return order(s), order(r), x


@program
def a_frozenset(x: Tensor) -> Any:
    s = frozenset({24, 16, 8, 0})
    return order(s), s, x, order(frozenset([16, 8, 0]))


@program
def a_set_that_is_cleared(x: Tensor) -> Any:
    s = {8, 0, 16}
    s.clear()
    s.add(16)
    s.update({8, 0})
    return order(s), x


def an_argument(x: Tensor, s: set[int]) -> Any:
    s.add(64)
    s.discard(8)
    s.add(8)
    s.update({16, 24, 72})
    return order(s), x


def an_argument_that_is_emptied(x: Tensor, s: set[int]) -> Any:
    s.clear()
    s.add(16)
    s |= {8, 0}
    return order(s), x * len(s)


def an_argument_in_a_loop(x: Tensor, s: set[int]) -> Any:
    return [x * n for n in s], order(s)


@pytest.mark.parametrize("title", PROGRAMS)
def test_new_set_has_the_order_of_plain_python(title: str) -> None:
    assert_same(PROGRAMS[title], stator.compile(PROGRAMS[title], backend="eager"), lambda: (torch.ones(2),))


@pytest.mark.parametrize("fn", [an_argument, an_argument_that_is_emptied, an_argument_in_a_loop])
def test_existing_set_keeps_the_order_of_plain_python(fn: Callable[..., Any]) -> None:
    made = iter([{0, 8, 16}, {16, 8, 0}, {8, 24, 0}, set(range(0, 200, 8))])
    assert_same(fn, stator.compile(fn, backend="eager"), lambda: (torch.ones(2), next(made)), calls=4)


def a_loop_over_numbers(x: Tensor) -> Any:
    s = {24, 0, 16, 8}
    s.discard(16)
    s.add(40)
    seen = [x * n for n in s]
    for n in {"a", "b", "c"}:  # noqa: PLC0208
        seen.append(x + ord(n))
    return seen, sum(s), list(s)


def test_loop_over_a_set_of_numbers_is_one_graph() -> None:
    compiled = stator.compile(a_loop_over_numbers, backend="eager", fullgraph=True)
    assert_same(a_loop_over_numbers, compiled, lambda: (torch.ones(2),))
    assert compiled.report.graph_count == 1


def test_loop_over_an_existing_set_is_one_graph_for_each_order() -> None:
    compiled = stator.compile(an_argument_in_a_loop, backend="eager", fullgraph=True)
    made = iter([{0, 8, 16}, {16, 8, 0}, {8, 0, 16}, {0, 8, 16}])
    assert_same(an_argument_in_a_loop, compiled, lambda: (torch.ones(2), next(made)), calls=4)
    assert compiled.report.entry_count == len({str([*s]) for s in ({0, 8, 16}, {16, 8, 0}, {8, 0, 16})})


def test_number_that_comes_as_a_size_has_its_place() -> None:
    def fn(x: Tensor, n: int) -> Any:
        s = {n, 8, x.shape[0] * 8, 16}
        return [x.sum() * m for m in s], list(s)

    made = iter([(torch.ones(2), 0), (torch.ones(3), 24), (torch.ones(4), 32), (torch.ones(5), 8)])
    assert_same(fn, stator.compile(fn, backend="eager"), lambda: next(made), calls=4)
