"""Functions with one break each, in every kind of place: ``cut`` is what breaks the graph, or does
nothing.

All compute on both sides of the break, so that unbroken they are one graph and broken exactly two.
``explode`` is a call that cannot be captured and raises.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor

Cut = Callable[[], Any]
CUT: dict[str, Callable[[Tensor, Cut], Any]] = {}
EXPLODES: dict[str, Callable[[Tensor, Cut], Any]] = {}


def cut_case(fn: Callable[[Tensor, Cut], Any]) -> Callable[[Tensor, Cut], Any]:
    CUT[fn.__name__.replace("_", " ")] = fn
    return fn


def exploding_case(fn: Callable[[Tensor, Cut], Any]) -> Callable[[Tensor, Cut], Any]:
    EXPLODES[fn.__name__.replace("_", " ")] = fn
    return fn


@cut_case
def straight_line(x: Tensor, cut: Cut) -> Tensor:
    y = x + 1
    cut()
    return y * 2


@cut_case
def an_operand_of_an_expression(x: Tensor, cut: Cut) -> Tensor:
    return (x + 1) * (2 if cut() is None else 3) + x.sin()


@cut_case
def a_for_loop(x: Tensor, cut: Cut) -> Tensor:
    for i in range(4):
        x = x + i
        if i == 1:
            cut()
    return x * 2


@cut_case
def a_while_loop(x: Tensor, cut: Cut) -> Tensor:
    i = 0
    while i < 4:
        x = x.sin() + i
        i += 1
        if i == 2:
            cut()
    return x


@cut_case
def nested_loops(x: Tensor, cut: Cut) -> Tensor:
    for i, name in enumerate("ab"):
        for j in [1, 2, 3]:
            x = x * j + i
            if (name, j) == ("a", 2):
                cut()
    return x


class Scaling:
    """A context manager of the user, with something to see on the way in and out."""

    def __init__(self, log: list[str]) -> None:
        self.log = log

    def __enter__(self) -> int:
        self.log.append("in")
        return 3

    def __exit__(self, *error: Any) -> bool:
        self.log.append("out" if error[0] is None else error[0].__name__)
        return error[0] is ValueError


@cut_case
def a_user_with(x: Tensor, cut: Cut) -> tuple[Tensor, list[str]]:
    log: list[str] = []
    with Scaling(log) as factor:
        x = x * factor
        cut()
        x = x + 1
    return x - 1, log


@contextmanager
def scaled(x: Tensor, log: list[str]) -> Iterator[Tensor]:
    log.append("in")
    try:
        yield x * 3
    finally:
        log.append("out")


@cut_case
def a_generator_with(x: Tensor, cut: Cut) -> tuple[Tensor, list[str]]:
    log: list[str] = []
    with scaled(x, log) as y:
        cut()
        y = y + 1
    return y - 1, log


@cut_case
def no_grad(x: Tensor, cut: Cut) -> tuple[Tensor, bool]:
    with torch.no_grad():
        y = x * 2
        cut()
        y = y + 1
    return y + x, torch.is_grad_enabled()


@cut_case
def a_try(x: Tensor, cut: Cut) -> Tensor:
    try:
        x = x + 1
        cut()
        x = x * 2
    except ValueError:
        x = x * 100
    return x - 1


@cut_case
def an_except(x: Tensor, cut: Cut) -> Tensor:
    try:
        x = x + 1
        raise ValueError(3)
    except ValueError as error:
        cut()
        x = x * error.args[0]
    return x - 1


@cut_case
def a_finally(x: Tensor, cut: Cut) -> Tensor:
    try:
        x = x + 1
    finally:
        cut()
        x = x * 2
    return x


@cut_case
def a_finally_with_an_exception_in_flight(x: Tensor, cut: Cut) -> Tensor:
    try:
        try:
            x = x + 1
            raise KeyError("gone")
        finally:
            cut()
            x = x * 2
    except KeyError as error:
        return x - len(error.args)


@cut_case
def a_comprehension(x: Tensor, cut: Cut) -> list[Tensor]:
    return [(cut() if i == 1 else None, x * i)[1] for i in range(3)]


def produce(x: Tensor, cut: Cut) -> Iterator[Tensor]:
    for i in range(3):
        yield x + i
        if i == 1:
            cut()


@cut_case
def a_generator(x: Tensor, cut: Cut) -> Tensor:
    total = x
    for part in produce(x, cut):
        total = total * part
    return total


@cut_case
def around_a_suspended_generator(x: Tensor, cut: Cut) -> Tensor:
    parts = produce(x, int)
    first = next(parts)
    cut()
    return first * next(parts) + next(parts)


class Half:
    """A property and methods that call each other, five deep."""

    def __init__(self, x: Tensor, cut: Cut) -> None:
        self.x = x
        self.cut = cut

    @property
    def value(self) -> Tensor:
        y = self.x / 2
        self.cut()
        return y + 1

    def one(self, x: Tensor) -> Tensor:
        return self.two(x + 1) * 2

    def two(self, x: Tensor) -> Tensor:
        return self.three(x + 2) * 3

    def three(self, x: Tensor) -> Tensor:
        return self.four(x + 3) * 4

    def four(self, x: Tensor) -> Tensor:
        return self.five(x + 4) * 5

    def five(self, x: Tensor) -> Tensor:
        x = x.sin()
        self.cut()
        return x.cos()


@cut_case
def a_property(x: Tensor, cut: Cut) -> Tensor:
    return Half(x, cut).value * 2


@cut_case
def a_method_five_deep(x: Tensor, cut: Cut) -> Tensor:
    return Half(x, cut).one(x) - 1


@cut_case
def a_closure_that_writes(x: Tensor, cut: Cut) -> tuple[Tensor, int]:
    count = 0

    def step(y: Tensor) -> Tensor:
        nonlocal count
        count += 1
        cut()
        return y + count

    return step(x * 2) * 3, count


@exploding_case
def handled_where_it_is_raised(x: Tensor, explode: Cut) -> Tensor:
    try:
        x = x + 1
        explode()
    except ValueError as error:
        x = x * len(error.args)
    return x - 1


def passes_on(x: Tensor, explode: Cut) -> Tensor:
    y = x + 1
    explode()
    return y


@exploding_case
def handled_in_an_outer_frame(x: Tensor, explode: Cut) -> Tensor:
    try:
        return passes_on(x, explode)
    except ValueError as error:
        return x * 2 + len(error.args)


@exploding_case
def handled_by_a_with(x: Tensor, explode: Cut) -> tuple[Tensor, list[str]]:
    log: list[str] = []
    with Scaling(log) as factor:
        x = x * factor
        passes_on(x, explode)
    return x + 1, log


@exploding_case
def not_handled(x: Tensor, explode: Cut) -> Tensor:
    return passes_on(x + 1, explode)


@exploding_case
def replaced_by_another(x: Tensor, explode: Cut) -> Tensor:
    try:
        return passes_on(x + 1, explode)
    except ValueError as error:
        raise KeyError(*error.args) from error
