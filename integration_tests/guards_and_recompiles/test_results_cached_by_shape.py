"""Functions with an `lru_cache` that are called with sizes: numbers of their results that depend on
a symbolic size are inputs, so other sizes have no graphs of their own."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import pytest
import stator
import torch
from torch import Tensor

SIZES = (4, 6, 8, 10, 12)


@functools.lru_cache(1024)
def split(shape: tuple[int, ...], parts: int) -> tuple[Any, ...]:
    """The shapes before and after the first dimension is split, as einops computes them."""
    if shape[0] % parts:
        raise ValueError(f"{shape[0]} is no multiple of {parts}")
    length = shape[0] // parts
    return [length, parts, shape[1]], None, {"merged": length * shape[1], "parts": parts}


def split_tensor(x: Tensor) -> Tensor:
    before, reordering, after = split(x.shape, 2)
    assert reordering is None
    return x.reshape(before).transpose(0, 1).reshape(after["parts"], after["merged"])


def patches(x: Tensor) -> Tensor:
    """Split two dimensions of one size."""
    rows, _, _ = split((x.shape[0], x.shape[1]), 2)
    columns, _, _ = split((x.shape[1], x.shape[0]), 2)
    return x.reshape(rows[0], 2, columns[0], 2).sum((1, 3)).reshape(rows[0] * columns[0])


@functools.lru_cache
def plan(shape: tuple[int, ...]) -> list[int]:
    return [2 * shape[0] + 1, 7]


def planned(x: Tensor) -> Tensor:
    return x.new_ones(plan(tuple(x.shape))).cumsum(0)


@pytest.mark.parametrize("fullgraph", [False, True])
@pytest.mark.parametrize("warm", [False, True])
@pytest.mark.parametrize(
    ("fn", "make"),
    [
        (split_tensor, lambda n: torch.randn(n, 3)),
        (patches, lambda n: torch.randn(n, n)),
        (planned, lambda n: torch.randn(n, 3)),
    ],
)
def test_series_of_sizes_has_two_graphs(
    fn: Callable[[Tensor], Tensor], make: Callable[[int], Tensor], warm: bool, fullgraph: bool
) -> None:
    for cached in (split, plan):
        cached.cache_clear()
    inputs = [make(size) for size in SIZES]
    expected = [fn(x) for x in inputs]
    if not warm:
        for cached in (split, plan):
            cached.cache_clear()

    @functools.wraps(fn)
    def own(x: Tensor) -> Tensor:
        return fn(x)

    compiled = stator.compile(own, backend="eager", fullgraph=fullgraph)
    for x, result in zip(inputs, expected, strict=True):
        assert torch.equal(compiled(x), result)
    assert len(compiled.report.graphs) <= 2
    calls = split.cache_info().hits + split.cache_info().misses
    assert calls in (0, *(len(SIZES) * n * (1 + warm) for n in (1, 2)))


def test_error_of_a_cached_function_is_that_of_the_call() -> None:
    split.cache_clear()
    compiled = stator.compile(split_tensor, backend="eager")
    for size in (4, 6, 8):
        assert compiled(torch.randn(size, 3)).shape == (2, 3 * size // 2)
    with pytest.raises(ValueError, match="7 is no multiple of 2"):
        compiled(torch.randn(7, 3))


def test_result_computed_from_other_state_is_used_as_the_cache_has_it() -> None:
    factor = [2]

    @functools.lru_cache
    def scaled(n: int) -> list[int]:
        return [n * factor[0]]

    def fn(x: Tensor) -> Tensor:
        return x.new_ones(scaled(x.shape[0])[0])

    compiled = stator.compile(fn, backend="eager")
    for size in (3, 4):
        assert compiled(torch.ones(size)).shape == (2 * size,)
    fn(torch.ones(5))
    factor[0] = 3
    for size, length in ((5, 10), (6, 18), (4, 8)):
        assert compiled(torch.ones(size)).shape == (length,)
        assert compiled(torch.ones(size)).shape == fn(torch.ones(size)).shape


def test_function_that_reads_what_was_changed_is_not_called_ahead() -> None:
    state = {"factor": 1}

    @functools.lru_cache
    def scaled(n: int) -> int:
        return n * state["factor"]

    def fn(x: Tensor) -> Tensor:
        state["factor"] += 1
        return x + scaled(3)

    with pytest.raises(stator.errors.Unsupported, match="has no result for this yet"):
        stator.compile(fn, backend="eager", fullgraph=True)(torch.zeros(1))
    assert state == {"factor": 1}
    assert stator.compile(fn, backend="eager")(torch.zeros(1)) == 6
    assert state == {"factor": 2}


def test_function_that_reads_nothing_changed_is_called_ahead() -> None:
    calls: list[int] = []

    @functools.lru_cache
    def doubled(n: int) -> int:
        return n * 2

    def fn(x: Tensor) -> Tensor:
        calls.append(1)
        return x + doubled(3)

    compiled = stator.compile(fn, backend="eager", fullgraph=True)
    for _ in range(3):
        assert compiled(torch.zeros(1)) == 6
    assert len(calls) == 3
    assert doubled.cache_info()[:2] == (2, 1)


def test_function_without_tensors_is_called_ahead_behind_a_write() -> None:
    @functools.lru_cache
    def doubled(n: int) -> int:
        return n * 2

    def fn(x: Tensor) -> Tensor:
        return x.add_(1) + doubled(3)

    compiled = stator.compile(fn, backend="eager", fullgraph=True)
    assert [compiled(torch.zeros(1)).item() for _ in range(2)] == [7, 7]


def test_function_that_reads_a_tensor_is_not_called_ahead_behind_a_write() -> None:
    table = torch.zeros(1)

    @functools.lru_cache
    def read(n: int) -> float:
        return n + table.item()

    def fn(x: Tensor) -> Tensor:
        table.add_(1)
        return x + read(3)

    with pytest.raises(stator.errors.Unsupported, match="has no result for this yet"):
        stator.compile(fn, backend="eager", fullgraph=True)(torch.zeros(1))
    assert table == 0
    assert stator.compile(fn, backend="eager")(torch.zeros(1)) == 4
