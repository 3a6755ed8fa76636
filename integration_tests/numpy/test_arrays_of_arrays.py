"""`np.array` and `np.asarray` of sequences that hold arrays, and arrays that are resized where they
are made."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import stator
import torch
from torch import Tensor

from integration_tests.support.counting import Counting
from integration_tests.support.oracle import assert_same

PROGRAMS: dict[str, Callable[..., Any]] = {}
REFUSED: dict[str, Callable[..., Any]] = {}


def program(fn: Callable[..., Any]) -> Callable[..., Any]:
    PROGRAMS[fn.__name__.replace("_", " ")] = fn
    return fn


def refused(fn: Callable[..., Any]) -> Callable[..., Any]:
    REFUSED[fn.__name__.replace("_", " ")] = fn
    return fn


@program
def arrays_in_a_list(x: Tensor, a: Any) -> Any:
    return x + 1, np.asarray([a, a + 1]), np.array((a, a * 2)).sum(0), np.array([a, a], ndmin=3)


@program
def arrays_in_nested_sequences(x: Tensor, a: Any) -> Any:
    return x * 2, np.asarray([[a, a], (a + 1, a)]), np.array([[a[0], 1], [a[1], 2]])


@program
def numbers_of_arrays(x: Tensor, a: Any) -> Any:
    return x, np.asarray([a[0], 1, 2.5]), np.array([a.max(), a.min()]), np.asarray([a > 2, a < 3])


@program
def dtypes_of_what_is_joined(x: Tensor, a: Any) -> Any:
    joined = np.asarray([a, np.ones(6, np.float32)])
    return (
        x,
        joined.dtype == a.dtype,
        joined,
        np.asarray([a, a], dtype=np.int32),
        np.array([a], "f4"),
    )


@program
def tensors_in_a_list(x: Tensor, a: Any) -> Any:
    return np.asarray([x.numpy(), x.numpy() + 1]), np.asarray([x, x + 1])


@program
def a_copy_is_made(x: Tensor, a: Any) -> Any:
    joined = np.asarray([a, a])
    joined[0] = 7
    return x, joined, a, np.asarray(a) is a, np.array(a) is a


@program
def values_are_put(x: Tensor, a: Any) -> Any:
    a.put([0, 2], [9, 8])
    np.clip(a, 1, 5, out=a)
    return x, a


@program
def values_are_put_at_small_and_boolean_indices(x: Tensor, a: Any) -> Any:
    np.put(a, np.array([2, 0], np.uint8), [9, 8])
    a.put(np.array([True, False]), np.array([7, 6]))
    return x, a


@program
def an_array_grows_and_shrinks(x: Tensor, a: Any) -> Any:
    made, other, flat = np.arange(4.0), np.ones((2, 3), np.int64), np.arange(6)
    made.resize(2, 3, refcheck=False)
    other.resize((4,), refcheck=False)
    flat.resize((2, 2), refcheck=False)
    made += 1
    return x + len(made), made, other, flat, made.shape


@program
def an_array_of_the_same_size_keeps_its_memory(x: Tensor, a: Any) -> Any:
    made = np.arange(4.0)
    part = made[1:]
    made.resize(2, 2)
    made[0, 1] = 9
    return x, made, part


@refused
def two_variables_refer_to_it(x: Tensor, a: Any) -> Any:
    made = np.arange(4.0)
    other = made
    try:
        made.resize(6)
    except ValueError as error:
        return x, str(error)[:30], other
    return x, made


@refused
def a_list_refers_to_it(x: Tensor, a: Any) -> Any:
    made = np.arange(4.0)
    held = [made]
    try:
        made.resize(6)
    except ValueError as error:
        return x, str(error)[:30], held
    return x, made


@refused
def a_view_refers_to_it(x: Tensor, a: Any) -> Any:
    made = np.arange(4.0)
    part = made[1:]
    try:
        made.resize(6)
    except ValueError as error:
        return x, str(error)[:30], part
    return x, made


@refused
def it_is_a_view(x: Tensor, a: Any) -> Any:
    made = np.arange(4.0).reshape(2, 2)
    try:
        made.resize(6)
    except ValueError as error:
        return x, str(error)[:30], made
    return x, made


@refused
def it_is_the_memory_of_a_tensor(x: Tensor, a: Any) -> Any:
    made = x.numpy()
    try:
        made.resize(8)
    except ValueError as error:
        return x, str(error)[:30], made
    return x, made


@refused
def it_comes_from_outside(x: Tensor, a: Any) -> Any:
    a.resize(2, 3)
    return x + len(a), a


@refused
def a_negative_size(x: Tensor, a: Any) -> Any:
    made = np.arange(3)
    made.resize(-1)
    return x


@refused
def sequences_of_several_lengths(x: Tensor, a: Any) -> Any:
    try:
        return np.asarray([a, a[:2]])
    except ValueError as error:
        return x, str(error)


def arguments() -> tuple[Any, ...]:
    return torch.arange(3.0), np.arange(6.0)[::-1].copy()


@pytest.mark.parametrize("name", PROGRAMS)
def test_arrays_are_those_of_numpy_in_one_graph(name: str) -> None:
    fn, counting = PROGRAMS[name], Counting()
    compiled = stator.compile(fn, backend=counting, fullgraph=True)
    assert_same(fn, compiled, arguments, 3)
    assert counting.count == 1


@pytest.mark.parametrize("name", [*PROGRAMS, *REFUSED])
def test_arrays_are_those_of_numpy_over_breaks(name: str) -> None:
    fn = {**PROGRAMS, **REFUSED}[name]
    assert_same(fn, stator.compile(fn, backend="eager"), arguments, 3)


def test_indices_along_an_axis_are_checked() -> None:
    def fn(x: Tensor, a: Any) -> Any:
        rows = np.arange(6.0).reshape(2, 3)
        found = np.take_along_axis(rows, np.array([[-1, 0], [2, 1]]), 1)
        try:
            np.take_along_axis(rows, np.array([[3]]), 1)
        except IndexError as error:
            return x + 1, found, str(error)
        return x, found

    counting = Counting()
    assert_same(fn, stator.compile(fn, backend=counting), arguments, 3, graphs_may_raise=True)
    assert counting.count == 1


def test_an_array_that_one_variable_refers_to_is_resized() -> None:
    def grow(x: Tensor) -> Any:
        made = np.arange(4.0)
        made.resize(6)
        return x, made

    compiled = stator.compile(grow, backend="eager", fullgraph=True)
    for _ in range(2):
        # Not by the oracle: its trace function makes the frame refer to its variables once more.
        assert compiled(torch.ones(2))[1].tolist() == [0, 1, 2, 3, 0, 0]
