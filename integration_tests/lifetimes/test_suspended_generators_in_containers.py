"""Generators that have yet to clean up, held by short and by long containers: they do so when plain
Python's do."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import stator
import torch
from torch import Tensor

from integration_tests.support.oracle import assert_same


def noting(log: list[str], name: str) -> Iterator[str]:
    try:
        yield name
        yield name
    finally:
        log.append(name)


@contextlib.contextmanager
def noted(log: list[str], name: str) -> Iterator[None]:
    try:
        yield
    finally:
        log.append(name)


def overwritten(x: Tensor, log: list[str], n: int) -> Any:
    held: list[Any] = [*range(n)]
    generator = noting(log, "a")
    next(generator)
    held[3] = generator
    del generator
    held[3] = None
    log.append("after")
    return x + 1


def overwritten_but_still_named(x: Tensor, log: list[str], n: int) -> Any:
    held: list[Any] = [*range(n)]
    generator = noting(log, "b")
    next(generator)
    held[3] = generator
    held[3] = None
    log.append("after")
    del generator
    log.append("after that")
    return x + 1


def filled_inside_a_manager(x: Tensor, log: list[str], n: int) -> Any:
    held: dict[Any, Any] = {}
    with noted(log, "c"):
        for i in range(n):
            held[i] = x
        generator = noting(log, "d")
        next(generator)
        held["it"] = generator
        del generator
        held["it"] = 0
        log.append("in")
    log.append("out")
    return x + 1, held


def held_by_two(x: Tensor, log: list[str], n: int) -> Any:
    held: dict[Any, Any] = {i: i for i in range(n)}
    both: list[Any] = [held, 1]
    generator = noting(log, "d")
    next(generator)
    held["it"] = both[1] = generator
    del generator
    held.pop("it")
    log.append("in")
    both.clear()
    log.append("out")
    return x + 1, held


@pytest.mark.parametrize("n", [4, 300])
@pytest.mark.parametrize(
    "function", [overwritten, overwritten_but_still_named, filled_inside_a_manager, held_by_two]
)
def test_what_a_container_held_cleans_up_in_time(function: Callable[..., Any], n: int) -> None:
    assert_same(function, stator.compile(function, backend="eager"), lambda: (torch.ones(2), [], n))
