"""Breaks in methods that operators call, where the frames outside of them go on natively: each
waits at its instruction for the result of the method."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
import stator
import torch
from torch import Tensor

X = torch.arange(3.0)


class Acting:
    k = 2

    @property
    def act(self) -> Any:
        stator.graph_break()
        return lambda x, y=1: x * y + self.k


class Carrying(Exception):
    def __init__(self, x: Tensor) -> None:
        stator.graph_break()
        self.x = x


class Operand:
    def __init__(self, value: Any) -> None:
        self.value = value

    def __lt__(self, other: Any) -> Any:
        stator.graph_break()
        return [1] if self.value < other.value else []

    def __iter__(self) -> Iterator[Any]:
        stator.graph_break()
        return iter((self.value, self.value))

    def __getitem__(self, key: Any) -> Any:
        stator.graph_break()
        return self.value + key

    def __contains__(self, key: Any) -> bool:
        stator.graph_break()
        return bool(self.value == key)


class Manager:
    def __enter__(self) -> int:
        stator.graph_break()
        return 3

    def __exit__(self, *error: object) -> bool:
        stator.graph_break()
        return True


def property_that_is_called(x: Tensor) -> Any:
    subject = Acting()
    return subject.act(x * 2, y=3) + subject.act(x)


def property_of_a_super_class(x: Tensor) -> Any:
    class Derived(Acting):
        @property
        def act(self) -> Any:
            stator.graph_break()
            return super().act

        def __format__(self, spec: str) -> str:
            stator.graph_break()
            return "formatted"

        def __str__(self) -> str:
            stator.graph_break()
            return "str"

    derived = Derived()
    return derived.act(x) + len(f"{derived}{derived!s}")


def exception_that_is_made(x: Tensor) -> Any:
    try:
        raise Carrying(x * 2)
    except Carrying as error:
        return error.x + 1


def parts_of_a_group(x: Tensor) -> Any:
    y = z = x
    try:
        raise ExceptionGroup("all", [Carrying(x), ValueError(1)])
    except* Carrying as group:
        y = group.exceptions[0].x  # type: ignore[union-attr]
    except* ValueError:
        stator.graph_break()
        z = x * 2
    return y + z


def comparisons(x: Tensor) -> Any:
    y = x + 1
    if Operand(1) < Operand(2):
        y = y * 2
    while not Operand(2) < Operand(1):
        y = y + 1
        break
    return y, Operand(1) < Operand(2)


def unpacked(x: Tensor) -> Any:
    first, second = Operand(x * 2)
    third, *rest = Operand(x)
    return first + second + third + rest[0]


def items(x: Tensor) -> Any:
    return Operand(x)[2] * (3 in Operand(3)) * (1 not in Operand(2))


def collections(x: Tensor) -> Any:
    numbers: list[Any] = [1, 2, 3, 4]
    numbers[0:2] = Operand(7)
    doubled = [part * 2 for part in Operand(x)]
    stator.graph_break()
    return doubled, numbers[1:3], dict.fromkeys(Operand(3), 1)


def yielding(x: Tensor) -> Any:
    try:
        stator.graph_break()
        given = yield x * 2
        stator.graph_break()
        given = yield given + 1
    except GeneratorExit:
        stator.graph_break()
        yield 3
    return given


def generator_that_ignores_its_end(x: Tensor) -> Any:
    running = yielding(x)
    seen: list[Any] = [next(running), running.send(x)]
    try:
        running.close()
    except RuntimeError as error:
        seen.append(str(error))
    return seen


def delegation_that_is_sent_to(x: Tensor) -> Any:
    def outer() -> Any:
        return (yield from yielding(x))

    running = outer()
    seen = [next(running), running.send(x)]
    try:
        running.send(4)
    except StopIteration as error:
        seen.append(error.value)
    return seen


def manager_that_suppresses(x: Tensor) -> Any:
    with Manager() as factor:
        x = x * factor
        raise ValueError(1)
    return x


PROGRAMS: tuple[Callable[[Tensor], Any], ...] = (
    property_that_is_called,
    property_of_a_super_class,
    exception_that_is_made,
    parts_of_a_group,
    comparisons,
    unpacked,
    items,
    collections,
    generator_that_ignores_its_end,
    delegation_that_is_sent_to,
    manager_that_suppresses,
)


@pytest.mark.filterwarnings("ignore:.*now runs plainly")
@pytest.mark.parametrize("options", [{"recompile_limit": 1}, {"break_everywhere": True}])
@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.__name__)
def test_program_goes_on_after_a_break_in_an_operator(
    program: Callable[[Tensor], Any], options: dict[str, Any]
) -> None:
    compiled = stator.compile(program, backend="eager", options=options)
    for x in (X, X.double(), X.long(), X.view(1, 3), X):
        assert repr(compiled(x.clone())) == repr(program(x.clone()))
