"""More functions with one break each, whose generators are held by objects that only the frames can
see."""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor

from integration_tests.breaks.broken import (
    CUT,
    EXPLODES,
    Cut,
    cut_case,
    exploding_case,
    produce,
    scaled,
)

__all__ = ["CUT", "EXPLODES"]  # all cases, these included


@cut_case
def two_managers_and_one_inside(x: Tensor, cut: Cut) -> tuple[Tensor, list[str]]:
    log: list[str] = []
    with scaled(x, log) as y, scaled(y, log) as z, scaled(z, log) as deepest:
        cut()
        x = x + deepest
    return x * 2, log


@cut_case
def a_manager_in_a_local(x: Tensor, cut: Cut) -> tuple[Tensor, list[str], bool]:
    log: list[str] = []
    manager = scaled(x, log)
    with manager as y:
        cut()
        x = x + y
    return x, log, isinstance(manager, contextlib.AbstractContextManager)


@cut_case
def an_exit_stack(x: Tensor, cut: Cut) -> tuple[Tensor, list[str]]:
    log: list[str] = []
    with contextlib.ExitStack() as stack:
        y = stack.enter_context(scaled(x, log))
        stack.callback(log.append, "called back")
        cut()
        x = x + stack.enter_context(scaled(y, log))
    return x, log


@cut_case
def the_clean_up_of_a_manager(x: Tensor, cut: Cut) -> Tensor:
    @contextlib.contextmanager
    def cleaned() -> Iterator[Tensor]:
        try:
            yield x + 1
        finally:
            cut()

    with cleaned() as y:
        z = y.sin()
    return z * 2


def plain(x: Tensor, count: int) -> Iterator[Tensor]:
    for i in range(count):
        yield x * i


@cut_case
def enumerate_over_a_generator(x: Tensor, cut: Cut) -> Tensor:
    for i, value in enumerate(plain(x, 5), 3):
        x = x + value * i
        if i == 5:
            cut()
    return x


@cut_case
def zip_and_map_over_generators(x: Tensor, cut: Cut) -> Tensor:
    for i, (one, two) in enumerate(zip(plain(x, 4), map(torch.neg, plain(x, 5)), strict=False)):
        x = x + one * two
        if i == 1:
            cut()
    return x


@cut_case
def a_filter_over_a_generator(x: Tensor, cut: Cut) -> Tensor:
    for i in filter(lambda i: i % 2, (j for j in range(7))):
        x = x + i
        if i == 3:
            cut()
    return x


@cut_case
def itertools_under_way(x: Tensor, cut: Cut) -> Tensor:
    for i, value in enumerate(itertools.islice(itertools.chain(plain(x, 3), [x, x + 1]), 1, 5)):
        x = x + value
        if i == 1:
            cut()
    return x


@cut_case
def itertools_not_begun(x: Tensor, cut: Cut) -> Tensor:
    pairs = itertools.pairwise(plain(x, 4))
    x = x + 1
    cut()
    for one, two in pairs:
        x = x + one * two
    return x


class Held:
    def __init__(self, x: Tensor, count: int) -> None:
        self.values = plain(x, count)
        self.seen = 0

    def __iter__(self) -> Held:
        return self

    def __next__(self) -> Tensor:
        self.seen += 1
        return next(self.values)


@cut_case
def an_iterator_class_over_a_generator(x: Tensor, cut: Cut) -> tuple[Tensor, int]:
    held = Held(x, 4)
    for value in held:
        x = x + value
        if held.seen == 2:
            cut()
    return x, held.seen


@cut_case
def generators_in_containers(x: Tensor, cut: Cut) -> Tensor:
    several: Any = [plain(x, 3), (plain(x + 1, 2), "label")]
    x = x + next(several[0]) + next(several[1][0])
    cut()
    for value in several[0]:
        x = x + value
    return torch.mul(x, next(several[1][0]))


@cut_case
def a_holder_that_is_handed_out(x: Tensor, cut: Cut) -> tuple[Tensor, list[Tensor], int]:
    held = Held(x, 4)
    x = x + next(held)
    cut()
    x = x + next(held)
    return x, list(held), held.seen


@cut_case
def a_holder_that_nothing_uses_again(x: Tensor, cut: Cut) -> tuple[Tensor, list[str]]:
    log: list[str] = []

    def watched() -> Iterator[Tensor]:
        try:
            yield x
        finally:
            log.append("closed")

    held = enumerate(watched())
    x = x + next(held)[1]
    cut()
    return x + 1, log


@exploding_case
def out_of_managers_and_handled(x: Tensor, explode: Cut) -> tuple[Tensor, list[str]]:
    log: list[str] = []
    try:
        with scaled(x, log) as y, contextlib.ExitStack() as stack:
            z = stack.enter_context(scaled(y, log))
            explode()
            x = x + z
    except ValueError as error:
        log.append(str(error))
    return x * 2, log


@exploding_case
def inside_a_manager_that_suppresses(x: Tensor, explode: Cut) -> tuple[Tensor, int]:
    done: list[Tensor] = []

    @contextlib.contextmanager
    def forgiving() -> Iterator[Tensor]:
        try:
            yield x + 1
        except ValueError:
            done.append(x)

    with forgiving() as y:
        x = x * y
        explode()
    return x + 1, len(done)


@exploding_case
def through_enumerated_generators(x: Tensor, explode: Cut) -> Tensor:
    for i, value in enumerate(produce(x, explode)):
        x = x + value * i
    return x
