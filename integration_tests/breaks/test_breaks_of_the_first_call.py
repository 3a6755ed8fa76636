"""Breaks whose cause is gone after the first call: the next call traces again, and later calls have
one graph."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import stator
import torch
from stator._subject import region_in
from torch import Tensor

from integration_tests.support.counting import Counting

X = torch.arange(3.0)


def counted(fn: Callable[..., Any], calls: int) -> tuple[Any, list[int]]:
    """Call the compiled function several times: its report, and the number of graphs after each
    call."""
    counting = Counting()
    compiled = stator.compile(fn, backend=counting)
    counts = []
    for _ in range(calls):
        assert torch.equal(compiled(X), fn(X))
        counts.append(counting.count)
    return compiled.report, counts


def test_a_module_that_cannot_be_imported_is_looked_for_twice() -> None:
    def fn(x: Tensor) -> Any:
        y = x + 1
        try:
            import there_is_no_such_module  # type: ignore[import-not-found]
        except ImportError:
            return y * 5
        return y * there_is_no_such_module.FACTOR

    report, counts = counted(fn, 5)
    assert counts == [0, 2, 2, 2, 2]  # the graphs of the first trace run as they are
    assert [broke.reason for broke in report.breaks] == ["import"]


def test_a_cached_function_without_a_result_breaks_in_the_first_call_only() -> None:
    table: list[int] = []

    @functools.lru_cache
    def cached(n: int) -> int:
        table.append(n)
        return n * 2

    def fn(x: Tensor) -> Tensor:
        return (x + 1) * cached(3)

    compiled = stator.compile(fn, backend=(counting := Counting()))
    for _ in range(3):
        assert torch.equal(compiled(X), (X + 1) * 6)
    assert table == [3]
    assert compiled.report.breaks == []
    assert counting.count == 1


def test_a_cache_that_is_cleared_before_each_call_is_traced_again_once() -> None:
    @functools.lru_cache
    def cached(n: int) -> int:
        print(end="")
        return n * 2

    def fn(x: Tensor) -> Tensor:
        return (x + 1) * cached(3)

    compiled = stator.compile(fn, backend=(counting := Counting()))
    counts = []
    for _ in range(5):
        cached.cache_clear()
        assert torch.equal(compiled(X), (X + 1) * 6)
        counts.append(counting.count)
    assert counts[1:] == counts[1:2] * 4


def test_guards_are_planned_in_the_first_call_that_makes_a_cached_result() -> None:
    @functools.lru_cache
    def doubled(n: int) -> int:
        return n * 2

    class Layers(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layers = torch.nn.ModuleList(torch.nn.Linear(3, 3) for _ in range(20))

        def forward(self, x: Tensor) -> Tensor:
            for layer in self.layers:
                x = layer(x) * doubled(3)
            return x

    model = Layers()
    compiled = stator.compile(model, backend="eager")
    result = compiled(X)
    (entry,) = region_in(compiled).root.cache.all_entries()
    guards: Any = entry.guards
    assert guards.watching.plan is not None
    assert doubled.cache_info()[:2] == (19, 1)
    assert torch.equal(compiled(X), result)
    assert doubled.cache_info()[:2] == (39, 1)
