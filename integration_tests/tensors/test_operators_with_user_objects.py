"""Operators between a tensor and an object of the program's own class."""

from __future__ import annotations

import itertools
import operator
from typing import Any

import pytest
import stator
import torch
from torch import Tensor

from integration_tests.support.oracle import assert_same


class Scale:
    def __init__(self, by: float) -> None:
        self.by = by

    def __rmul__(self, other: Tensor) -> Tensor:
        return other * self.by

    def __rmatmul__(self, other: Tensor) -> Tensor:
        return other.sum() * self.by

    def __gt__(self, other: Tensor) -> Tensor:
        return other < self.by

    def __radd__(self, other: Tensor) -> Scale:
        return Scale(self.by + other.shape[0])


class Index(Scale):
    def __index__(self) -> int:
        return 1

    def __len__(self) -> int:
        return 2

    def __getitem__(self, i: int) -> float:
        return [1.0, 2.0][i]


def reflected(x: Tensor, o: Scale) -> Any:
    return x * o, x @ o, x < o, (x + o).by


def in_place(x: Tensor, o: Any) -> Any:
    y = x
    y *= o
    x += o
    return y, x.by  # type: ignore[attr-defined]


def refused_by_both(x: Tensor, o: Any) -> Any:
    found: list[Any] = []
    operators: list[Any] = [operator.sub, operator.and_, operator.lt, operator.isub]
    for operate in operators:
        try:
            found.append(operate(x, o if operate is not operator.lt else object()))
        except TypeError as error:
            found.append(str(error))
    return found, x == o, x != object()


@pytest.mark.parametrize("cls", [Scale, Index])
@pytest.mark.parametrize("fn", [reflected, in_place, refused_by_both])
def test_a_tensor_leaves_operators_to_objects_that_are_no_numbers(
    fn: Any, cls: type[Scale]
) -> None:
    sizes = itertools.cycle([2, 3, 4])
    compiled = stator.compile(fn, backend="eager", fullgraph=True)
    assert_same(fn, compiled, lambda: (torch.ones(next(sizes)), cls(2.0)))


class Hearing(Scale):
    @classmethod
    def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return func.__name__, len(args)


def heard(x: Tensor, o: Any) -> Any:
    return x * o, x @ o, x < o, x - o


@pytest.mark.parametrize("cls", [Hearing, float])
def test_numbers_and_objects_that_hear_of_functions_of_torch_are_not_left_to_themselves(
    cls: type,
) -> None:
    def fn(x: Tensor, o: Any) -> Any:
        return heard(x, o) if cls is Hearing else x * o

    assert_same(fn, stator.compile(fn, backend="eager"), lambda: (torch.ones(2), cls(2.0)))
