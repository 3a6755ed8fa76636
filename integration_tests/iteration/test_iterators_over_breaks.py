"""Iterators over breaks: everybody is asked for as much as in plain Python, and as often; classes
log it."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import pytest
import stator
import torch
from torch import Tensor

from integration_tests.iteration.iterator_programs import (
    BREAKING,
    CONSUMED,
    ITERATORS,
    LOG,
    OVER_GENERATORS,
    SOURCES,
    USES,
    program,
)

SIZES = (3, 1, 0, 4, 3)


def shown(value: Any) -> Any:
    if isinstance(value, list | tuple):
        return [shown(item) for item in value]
    if not hasattr(value, "__next__"):
        return str(value)
    found = [type(value).__name__]
    try:
        found += [shown(item) for item in itertools.islice(value, 8)]
    except Exception as error:
        found.append(repr(error))
    return found


def outcome(run: Callable[..., Any], n: int, source: Callable[[int], Any]) -> Any:
    LOG.clear()
    try:
        result = shown(run(torch.ones(2), n, source))
    except Exception as error:
        result = type(error), str(error), type(error.__context__)
    return result, list(LOG)


def check(run: Callable[..., Any], source: Callable[[int], Any], limit: int = 64) -> None:
    compiled = stator.compile(run, backend="eager", recompile_limit=limit)
    for n in SIZES:
        assert outcome(compiled, n, source) == outcome(run, n, source)


@pytest.mark.parametrize("source", SOURCES)
@pytest.mark.parametrize("use", USES)
def test_iterators_go_on(use: str, source: str) -> None:
    for text in ITERATORS.strip().splitlines():
        check(program(USES[use].format(it=text)), SOURCES[source])


@pytest.mark.filterwarnings("ignore::stator_guards.RecompileLimitWarning")
@pytest.mark.parametrize("use", USES)
def test_iterators_go_on_as_real_ones_past_the_recompile_limit(use: str) -> None:
    for text in OVER_GENERATORS.strip().splitlines():
        for source in SOURCES.values():
            check(program(USES[use].format(it=text)), source, limit=1)


@pytest.mark.parametrize("source", BREAKING)
def test_what_breaks_while_it_is_gone_through(source: str) -> None:
    for text in CONSUMED.strip().splitlines():
        check(program(f"    out.append({text})"), BREAKING[source])


def test_a_tee_is_not_entered_again() -> None:
    class Entering:
        def __iter__(self) -> Any:
            return self

        def __next__(self) -> Any:
            return next(other[0])

    other: list[Any] = []

    def run(x: Tensor) -> Any:
        one, two = itertools.tee(Entering())
        other[:] = [two]
        try:
            next(one)
        except RuntimeError as error:
            return str(error), type(one), x + 1

    compiled = stator.compile(run, backend="eager")
    for _ in range(2):
        assert str(compiled(torch.ones(1))) == str(run(torch.ones(1)))
