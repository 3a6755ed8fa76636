"""What an exception lets go of on its way dies before the handler runs, as in plain Python: no
collector is needed."""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import stator
import torch
from torch import Tensor, nn

from integration_tests.support.oracle import assert_same

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


# -- generators that frames on the way were going through ------------------------------------------
def failing() -> Iterator[int]:
    for value in closing():
        DONE.append(str(MISSING[value]))
    yield 1


def handling() -> Iterator[int]:
    try:
        for value in closing():
            DONE.append(str(MISSING[value]))
    except KeyError:
        DONE.append("handled")
    yield 1


def through(source: Callable[[], Iterator[int]] = failing) -> Iterator[int]:
    yield from source()


class Counting:
    """Ends, or fails, while it goes through a generator."""

    def __init__(self, error: type[Exception]) -> None:
        self.error, self.count = error, 0

    def __iter__(self) -> Any:
        return self

    def __next__(self) -> int:
        self.count += 1
        if self.count > 2:
            for _ in closing():
                raise self.error
        return self.count

    def __getattr__(self, name: str) -> Any:
        for _ in closing():
            raise AttributeError(name)

    def __add__(self, other: Any) -> Any:
        for _ in closing():
            raise self.error

    def __getitem__(self, place: int) -> Any:
        for _ in closing():
            raise self.error


WAYS: dict[str, Callable[[], Any]] = {
    "a comprehension": lambda: [value for value in failing()],  # noqa: C416
    "a comprehension over a delegating one": lambda: [value + 1 for value in through()],
    "one that handles it itself": lambda: [value + 1 for value in through(handling)],
    "list": lambda: list(through()),
    "unpacked": lambda: [*failing()],
    "sum": lambda: sum(failing()),
    "a key": lambda: min([1], key=lambda value: [each + 1 for each in through()]),
    "map": lambda: list(map(list, [failing()])),
    "an end": lambda: [value + 1 for value in Counting(StopIteration)],
    "an end in list": lambda: list(Counting(StopIteration)),
    "an end in sum": lambda: sum(Counting(StopIteration)),
    "a failure": lambda: [value + 1 for value in Counting(ValueError)],
    "hasattr": lambda: hasattr(Counting(ValueError), "none"),
    "getattr": lambda: getattr(Counting(ValueError), "none", 1),
    "an operator": lambda: Counting(TypeError) + 1,
    "an item": lambda: Counting(IndexError)[0],
}


@pytest.mark.parametrize("way", WAYS)
def test_generators_die_before_whoever_takes_the_exception_goes_on(way: str) -> None:
    def program(x: Tensor) -> Any:
        DONE.clear()
        try:
            found = WAYS[way]()
        except Exception as error:
            DONE.append(type(error).__name__)
        else:
            DONE.append(str(found))
        return x + 1, list(DONE)

    compiled = stator.compile(program, backend="eager")
    for _ in range(2):
        assert compiled(torch.ones(1))[1] == program(torch.ones(1))[1]
