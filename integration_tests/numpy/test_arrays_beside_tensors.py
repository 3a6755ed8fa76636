"""Operators of a tensor with an array behind it, and functions of NumPy that get tensors: NumPy
computes them, and gives a tensor, with a warning of some releases."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import stator
import torch
from torch import Tensor

from integration_tests.support.description import Tolerance
from integration_tests.support.oracle import assert_same

CLOSE = Tolerance(1e-5, 1e-6)
iadd: Any = operator.iadd
ROW: Any = np.array([1.0, -2.0, 3.0])
SMALL: Any = ROW.astype("float32")
CAPTURED: dict[str, Callable[[Any], Any]] = {
    "a product": lambda x: x * SMALL,
    "of another dtype": lambda x: x + ROW,
    "of integers": lambda x: x - np.arange(3),
    "a quotient": lambda x: x / SMALL,
    "a remainder": lambda x: x % np.abs(SMALL),
    "a power": lambda x: (x + 2) ** SMALL,
    "a matrix product": lambda x: x @ np.ones((3, 2), dtype="float32"),
    "no dimensions": lambda x: x * np.array(2.0),
    "a new array": lambda x: x * np.linspace(0, 1, 3),
    "in place": lambda x: iadd(x, SMALL),
    "of bools": lambda x: (x > 0) & np.array([True, False, True]),
    "a function of one": np.sin,
    "a function of two": lambda x: np.add(SMALL, x),
    "a comparison": lambda x: np.less(x, ROW),
    "of the same": lambda x: np.maximum(x, x * 2) + 1,
    "chained": lambda x: (x * SMALL).sum() + x,
}
OTHERS: dict[str, Callable[[Any], Any]] = {
    "the array first": lambda x: SMALL * x,
    "ordered": lambda x: x < SMALL,
    "equal": lambda x: (x == SMALL,),
    "a function of torch": lambda x: torch.add(x, SMALL),
    "a method": lambda x: x.mul(SMALL),
    "of another kind": lambda x: x.bfloat16() * SMALL,
    "with gradients": lambda x: x.requires_grad_() * SMALL,
    "a reduction": np.mean,
    "several results": np.modf,
    "an integer power": lambda x: x.long() ** np.arange(3),
}


def given() -> tuple[Tensor]:
    return (torch.linspace(-1, 1, 6).reshape(2, 3),)


@pytest.mark.parametrize("title", CAPTURED)
def test_numpy_computes_it_in_the_graph(title: str) -> None:
    compiled = stator.compile(CAPTURED[title], backend="eager", fullgraph=True)
    assert_same(CAPTURED[title], compiled, given, tolerance=CLOSE)


@pytest.mark.parametrize("title", OTHERS)
def test_what_is_not_captured_is_right(title: str) -> None:
    def program(x: Tensor) -> Any:
        y = x + 1
        try:
            return y, OTHERS[title](x)
        except (RuntimeError, TypeError, ValueError) as error:
            return y, type(error), str(error)

    assert_same(program, stator.compile(program, backend="eager"), given, tolerance=CLOSE)


def test_the_result_has_memory_of_its_own() -> None:
    def program(x: Tensor) -> Any:
        y: Any = x * SMALL
        y.add_(1)
        return x, y, y.requires_grad

    assert_same(program, stator.compile(program, backend="eager", fullgraph=True), given)
