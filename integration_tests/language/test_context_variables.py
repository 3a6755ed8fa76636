"""`contextvars.ContextVar.get`, whether the variable is set, has a default, or neither."""

from __future__ import annotations

import contextvars
from collections.abc import Callable
from typing import Any

import pytest
import stator
import torch
from torch import Tensor

from integration_tests.support.oracle import assert_same

WITH_DEFAULT: contextvars.ContextVar[Any] = contextvars.ContextVar("with_default", default=(3,))
WITHOUT: contextvars.ContextVar[Any] = contextvars.ContextVar("without")


def caught(x: Tensor) -> Any:
    try:
        return x * WITHOUT.get()
    except LookupError:
        return x - 1


READS: dict[str, Callable[[Tensor], Any]] = {
    "its default": lambda x: (x * WITH_DEFAULT.get()[0], WITH_DEFAULT.get()),
    "another default": lambda x: (x * WITHOUT.get(2), WITH_DEFAULT.get(None)),
    "a default of the call": lambda x: WITHOUT.get(x) + 1,
    "none": caught,
    "one object": lambda x: (x, WITH_DEFAULT.get() is WITH_DEFAULT.get()),
}


@pytest.mark.parametrize("title", READS)
def test_a_variable_is_read_whether_it_is_set_or_not(title: str) -> None:
    compiled: Any = stator.compile(READS[title], backend="eager", fullgraph=True)

    def check() -> None:
        assert_same(READS[title], compiled, lambda: (torch.ones(2),))

    check()
    for value in ([5], (7,)):
        tokens = WITH_DEFAULT.set(value), WITHOUT.set(torch.tensor(4))
        check()
        WITH_DEFAULT.reset(tokens[0])
        WITHOUT.reset(tokens[1])
    check()
    assert not compiled.report.breaks


def test_the_error_of_a_variable_that_is_not_set() -> None:
    def program(x: Tensor) -> Any:
        return x + WITHOUT.get()

    compiled = stator.compile(program, backend="eager")
    assert_same(program, compiled, lambda: (torch.ones(2),))


def test_the_error_that_is_kept_has_the_variable() -> None:
    def program(x: Tensor) -> Any:
        try:
            return WITHOUT.get()
        except LookupError as error:
            return x * 2, error.args[0] is WITHOUT

    compiled = stator.compile(program, backend="eager")
    assert_same(program, compiled, lambda: (torch.ones(2),))
