"""What an exception lets go of on its way dies before the handler runs, as in plain Python: no collector is needed."""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import stator
import torch
from torch import Tensor, nn

from integration_tests.oracle import assert_same

NET = nn.Linear(1, 1)
DONE: list[str] = []
MISSING: dict[int, int] = {}


class Noticed:
    """Says when it dies."""

    def __enter__(self) -> Any:
        return self

    def __exit__(self, *args: object) -> None:
        pass

    def __iter__(self) -> Any:
        return self

    def __next__(self) -> int:
        return 1

    def __del__(self) -> None:
        DONE.append("gone")


def closing() -> Iterator[int]:
    try:
        yield 1
        yield 2
    finally:
        DONE.append("closed")


def a_generator(x: Tensor) -> None:
    for value in closing():
        stator.graph_break()
        raise KeyError(value)


def a_generator_that_was_asked_long_before(x: Tensor) -> None:
    for _ in closing():
        stator.graph_break()
        for _ in range(2):
            stator.graph_break()
        del NET.nothing


def an_iterator(x: Tensor) -> None:
    for value in Noticed():
        stator.graph_break()
        raise KeyError(value)


def two_generators_in_one_iterator(x: Tensor) -> None:
    for value in zip(closing(), closing(), strict=True):
        stator.graph_break()
        raise KeyError(value)


def a_manager(x: Tensor) -> None:
    with Noticed():
        stator.graph_break()
        raise KeyError(1)


def an_operand(x: Tensor) -> Any:
    return Noticed(), stator.graph_break(), MISSING[3]  # type: ignore[func-returns-value]


def an_argument(x: Tensor) -> None:
    print(Noticed(), stator.graph_break(), MISSING[3])  # type: ignore[func-returns-value]


LOSING: tuple[Callable[[Tensor], Any], ...] = (
    a_generator,
    a_generator_that_was_asked_long_before,
    an_iterator,
    two_generators_in_one_iterator,
    a_manager,
)
LOSING += (an_operand, an_argument)


@pytest.mark.parametrize("lose", LOSING, ids=lambda fn: fn.__name__.replace("_", " "))
@pytest.mark.parametrize("times", [1, 2])
def test_dies_before_the_handler(lose: Callable[[Tensor], Any], times: int) -> None:
    def run(x: Tensor) -> Any:
        DONE.clear()
        for _ in range(times):
            try:
                lose(x)
            except (KeyError, AttributeError) as error:
                DONE.append(str(error))
            finally:
                DONE.append("left")
        return x + 1, [*DONE]

    gc.disable()
    try:
        assert_same(run, stator.compile(run, backend="eager"), lambda: (torch.ones(1),), calls=3)
    finally:
        gc.enable()
