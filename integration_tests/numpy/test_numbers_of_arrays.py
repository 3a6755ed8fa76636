"""Numbers of NumPy that are read from arrays, or made in the region: operands of tensors and of
arrays, one graph for all values."""

from __future__ import annotations

import functools
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
import stator
import torch
import torch.nn.functional as F

from integration_tests.support.counting import Counting
from integration_tests.support.description import EXACT, describe, differences
from integration_tests.support.oracle import assert_same

TABLE = np.array([1.5, 2.5], dtype=np.float32)
DTYPES = (np.bool_, np.uint8, np.int8, np.int32, np.int64, np.float32, np.float64)

READ = """
x * a[0] | x + a.sum() | a[0] * x | x - a.mean() | a.max() - x | x / a[1] | x > a[1] | a[1] == x | x ** a[1]
x * TABLE[1] | x * o.n[0] | x * np.max(a) | x * (a[0] + 1) | x * a[k] | x * a[0] * a[1] + a[2]
x.long() + a[0] | x.half() * a[0] | x.bool() * a[0] | x.sum() * a[0] | x.long().sum() - a[0] | (x * a[0], a[0])
x + x.detach().numpy().sum() | x * (x * 2).numpy()[0, 1] | [x * n for n in a] | x * a[1:].sum()
"""
OF_FLOATS = """
x.clamp(max=a[0]) | torch.full((2,), a[0]) | x.mul_(a[0]) | torch.add(x, x, alpha=a[0]) | F.elu(x, a[1])
x.masked_fill(x > 0, a[0]) | torch.where(x > 0, x, a[0]) | (x - a.mean()) / (a.std() + 1)
"""
MADE = """
x * np.float32(v) | x + np.int64(k) | np.float64(v) + 1 | (x, np.int8(k) * 20) | x * np.sqrt(v)
x * np.exp(-k / 10) | x * np.clip(v, 0, 2) | x[:np.int64(k)] | np.float16(v) * x + np.float32(v)
"""
BESIDE_ARRAYS = """
a * v | torch.from_numpy(a + k) | (a * v).sum() | a.sum() * v | x * (v * a[1]) | (v > a[1], a[0] + k, k * a[1])
torch.from_numpy(np.where(a > v, a, 0)) | torch.from_numpy(a[:k]) | a[-k:] | np.arange(20)[k:k + 3].sum() + x
x * np.arange(12).reshape(3, 4)[: k // 2, 1 : k + 1].sum()
"""


def split(table: str) -> list[str]:
    return [text.strip() for line in table.strip().splitlines() for text in line.split(" | ")]


class Holder:
    def __init__(self, n: Any) -> None:
        self.n = n


def described(call: Callable[..., Any], step: int, dtype: Any) -> Any:
    x = torch.arange(12.0).reshape(3, 4) - 3
    array = (np.array([3, 1, 2]) + step).astype(dtype)
    arguments = [x, array, Holder(np.array([step, 1.0])), step % 2 + 1, step + 0.5]
    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        try:
            result = call(*arguments)
        except Exception as error:
            result = type(error)
    return describe(result=result, arguments=arguments[:2], warned=len(warned))


def compare_series(text: str, dtype: Any = np.float32) -> Counting:
    """Run a program on five series of values, plainly and compiled; return the graphs."""
    scope = {"np": np, "torch": torch, "F": F, "TABLE": TABLE}
    fn = eval(f"lambda x, a, o, k, v: {text}", scope)
    backend = Counting()
    compiled = stator.compile(fn, backend=backend)
    for step in range(5):
        expected, actual = (described(call, step, dtype) for call in (fn, compiled))
        assert not differences(expected, actual, EXACT), (text, step)
    assert not compiled.report.breaks
    return backend


@pytest.mark.parametrize("text", split(READ))
def test_number_of_an_array_is_an_operand_of_a_tensor(text: str) -> None:
    assert compare_series(text).count <= 1 + ("a[k]" in text)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("text", ["x * a[0]", "a[2] + x.long()", "x.uint8() - a[0]", "x > a[1]"])
def test_every_dtype_follows_the_rules_of_torch(text: str, dtype: Any) -> None:
    assert compare_series(text.replace("uint8()", "to(torch.uint8)"), dtype).count == 1


@pytest.mark.parametrize("text", split(OF_FLOATS))
def test_number_of_an_array_is_an_argument(text: str) -> None:
    assert compare_series(text).count == 1


@pytest.mark.parametrize("text", split(MADE))
def test_number_that_is_made_of_one_of_python(text: str) -> None:
    assert compare_series(text).count <= 2


@pytest.mark.parametrize("text", split(BESIDE_ARRAYS))
def test_number_of_python_beside_an_array(text: str) -> None:
    assert compare_series(text).count <= 2


def test_empty_part_of_an_array_has_the_strides_that_numpy_gives() -> None:
    compiled = stator.compile(lambda a, k: torch.from_numpy(a[k:]), backend="eager")
    strides = [compiled(np.ones(3), k).stride() for k in (1, 2, 3)]
    assert strides == [(1,)] * 3


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.bool_])
def test_item_that_torch_refuses_is_refused(dtype: Any) -> None:
    def fn(x: Any, a: Any) -> Any:
        y = x.clone()
        y[0] = a[0]
        return y

    compiled = stator.compile(fn, backend="eager")
    assert_same(fn, compiled, lambda: (torch.ones(3), np.ones(2, dtype)))


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
def test_number_is_read_where_the_program_reads_it(backend: str) -> None:
    def written(x: Any, a: Any) -> Any:
        before = a[0]
        a[0] = 5
        return x * before, x * a[0]

    def shared(x: Any, a: Any) -> Any:
        y = x.detach().clone()
        before = y.numpy()[0]
        y.mul_(2)
        return x * before, x * y.numpy()[0]

    def over_a_break(x: Any, a: Any) -> Any:
        number = a.max()
        print(end="")
        return x * number, number

    for fn in (written, shared, over_a_break):
        compiled = stator.compile(fn, backend=backend)
        starts = iter(range(100))
        assert_same(fn, compiled, functools.partial(following, starts), calls=4)


def following(starts: Iterator[int]) -> tuple[torch.Tensor, np.ndarray[Any, Any]]:
    return arguments(next(starts))


def arguments(start: int) -> tuple[torch.Tensor, np.ndarray[Any, Any]]:
    x = torch.arange(3.0) + start
    return x.requires_grad_(), np.array([start, 2.0])


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
def test_number_in_bodies_and_transforms(backend: str) -> None:
    def fn(x: Any, a: Any) -> Any:
        gradient = torch.func.grad(lambda y: (y * a[0]).sum())(x.detach())
        mapped = torch.vmap(lambda y: y * a[1])(x)
        return gradient, mapped, x.long().sum() * a[0]

    compiled = stator.compile(fn, backend=backend)
    starts = iter(range(100))
    assert_same(fn, compiled, functools.partial(following, starts), calls=4)
    assert compiled.report.graph_count == 1
