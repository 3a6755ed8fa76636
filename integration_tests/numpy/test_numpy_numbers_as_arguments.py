"""Numbers of NumPy as arguments: one entry for all values, with NumPy's classes, values and
warnings."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import stator
import torch
import torch.nn.functional as F

from integration_tests.support.counting import Counting
from integration_tests.support.description import EXACT, describe, differences
from integration_tests.support.oracle import assert_same

INTEGERS = (np.int8, np.int16, np.int32, np.int64, np.uint8, np.uint16, np.uint32, np.uint64)
FLOATS = (np.float16, np.float32, np.float64)

STAYS = """
x * n | n - x | x / n | x ** n | x > n | x.clamp(n) | x.long() * n | x.half() + n | x.mul_(n)
torch.full((2,), n) | torch.tensor(n) | torch.as_tensor(n) | x.new_full((2,), n) | torch.add(x, x, alpha=n)
(x, n) | (x, n + 1, n * 2, n / 2, n - n) | (x, np.sqrt(n), np.add(n, 1), np.maximum(n, 1))
(x, int(n), float(n), n.item()) | (x, n.dtype, n.ndim, type(n), n.real) | (x, n.astype(np.float32), np.float32(n))
(x, math.sqrt(n), math.floor(n)) | (x, isinstance(n, np.integer), isinstance(n, float)) | x * (n + k) | x * n * n
x * math.floor(n) | F.leaky_relu(x, n) | (x, 1.5 * n, np.float32(2) * n) | x if n > 1 else -x | (x, -n, abs(n))
"""
OF_INTEGERS = """
x[:n] | x[n:, :2] | torch.zeros(n, 2) | x.repeat(n, 1) | x[n - 2] | x.narrow(0, 0, n - 1) | torch.arange(n)
(x, n // 2, n % 3, n ** 2, n << 1, n & 1) | x.view(-1)[n]
"""


def split(table: str) -> list[str]:
    return [text.strip() for line in table.strip().splitlines() for text in line.split(" | ")]


def compare_series(text: str, numbers: list[Any]) -> int:
    """Run a program on all these numbers, plainly and compiled; return how many graphs there
    are."""
    scope = {"torch": torch, "F": F, "np": np, "math": math}
    fn = eval(f"lambda x, n, k: {text}", scope)
    backend = Counting()
    compiled = stator.compile(fn, backend=backend)
    for k, n in enumerate(numbers):
        expected, actual = (described(call, n, k) for call in (fn, compiled))
        assert not differences(expected, actual, EXACT), (text, n)
    return backend.count


def described(call: Callable[..., Any], n: Any, k: int) -> Any:
    arguments = [torch.arange(12.0).reshape(3, 4), n, k + 2]
    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        result = call(*arguments)
    return describe(result=result, arguments=arguments, warned=len(warned))


@pytest.mark.parametrize("text", split(STAYS))
@pytest.mark.parametrize("cls", [np.int64, np.float32, np.float64])
def test_one_graph_serves_all_values(text: str, cls: Any) -> None:
    varies_with_k = "k" in text
    numbers = [cls(value) for value in (2, 3, 5, 4)]
    assert compare_series(text, numbers) <= 1 + varies_with_k


@pytest.mark.parametrize("text", split(OF_INTEGERS))
def test_integers_are_sizes_and_positions(text: str) -> None:
    assert compare_series(text, [np.int32(value) for value in (3, 2, 4, 3)]) <= 2


@pytest.mark.parametrize("cls", [*INTEGERS, *FLOATS])
def test_every_width_keeps_its_rules(cls: Any) -> None:
    text = "(x * n, n, n + 1, n / 2, n * n, x.long() * n)"
    assert compare_series(text, [cls(value) for value in (2, 7, 11, 0, 1)]) == 1


@pytest.mark.parametrize("text", ["n * n", "n + n", "x * (n * n)", "n - 127", "n // (n - n)"])
def test_overflow_and_division_by_zero_warn_in_the_call_that_has_them(text: str) -> None:
    numbers = [np.int8(value) for value in (3, 5, 100, 4, -100)]
    compare_series(f"(x, {text})", numbers)


def test_division_in_a_branch_that_is_not_taken_does_not_warn() -> None:
    compare_series("(x, 7 // n if n else 0)", [np.int64(value) for value in (2, 0, 3, 0)])


@pytest.mark.parametrize("cls", FLOATS)
def test_zeros_infinities_and_nan(cls: Any) -> None:
    numbers = [cls(value) for value in (0.5, 0.0, -0.0, math.inf, -math.inf, math.nan, 0.25)]
    compare_series("(x * n, n, 1.0 - n)", numbers)


def test_number_that_is_returned_is_the_object_that_was_given() -> None:
    compiled = stator.compile(lambda x, n: (x * n, n), backend="eager")
    for value in (1.5, 2.5, 3.5):
        number = np.float32(value)
        assert compiled(torch.ones(2), number)[1] is number


def test_int_that_the_class_cannot_hold_raises_as_in_numpy() -> None:
    def fn(x: Any, n: Any, k: int) -> Any:
        return x * (n + k)

    others = iter((3, 4, 300, 5))
    compiled = stator.compile(fn, backend="eager")
    assert_same(fn, compiled, lambda: (torch.ones(2), np.int8(3), next(others)), calls=4)


def test_number_larger_than_torch_takes_is_left_to_numpy() -> None:
    compare_series("x * n", [np.uint64(value) for value in (3, 2**63, 5, 2**64 - 1)])


def test_another_class_has_an_entry_of_its_own() -> None:
    numbers = [np.int64(3), np.int32(3), np.float32(3), np.int64(4), 3, np.int32(5)]
    assert compare_series("(x * n, n + 1)", numbers) == 4


def test_truth_of_numpy_is_no_number_of_torch() -> None:
    numbers = [np.bool_(value) for value in (True, False, True)]
    compare_series("(x if n else -x, n, not n)", numbers)


def test_number_beside_an_array_is_computed_in_the_graph() -> None:
    def fn(a: Any, n: Any) -> Any:
        return torch.from_numpy(a * n + a), a.sum() + n

    backend = Counting()
    compiled = stator.compile(fn, backend=backend)
    for cls, values in ((np.float32, (0.5, 1.5, 2.5)), (np.int64, (1, 2, 3))):
        for value in values:
            array = np.arange(3, dtype=np.float32)
            wanted, given = fn(array, cls(value)), compiled(array, cls(value))
            assert not differences(describe(r=wanted), describe(r=given), EXACT)
    assert backend.count == 2


class Holder:
    def __init__(self, n: Any) -> None:
        self.n = n


def test_number_on_a_fresh_object() -> None:
    backend = Counting()
    compiled = stator.compile(lambda x, o: x * o.n, backend=backend)
    for value in (2, 3, 4):
        result = compiled(torch.ones(3), Holder(np.float64(value)))
        assert torch.equal(result, torch.ones(3) * value)
    assert backend.count == 1


def test_static_shapes_have_an_entry_for_each_value() -> None:
    backend = Counting()
    compiled = stator.compile(lambda x, n: x * n, backend=backend, dynamic=False)
    for value in (2, 3, 2):
        assert torch.equal(compiled(torch.ones(3), np.int64(value)), torch.ones(3) * value)
    assert backend.count == 2


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
def test_number_over_a_break(backend: str) -> None:
    def fn(x: Any, n: Any) -> Any:
        y = x * n
        print(end="")
        return y + n, n * 2

    values = iter((2, 3, 4, 5))
    compiled = stator.compile(fn, backend=backend)
    assert_same(fn, compiled, lambda: (torch.ones(3), np.int64(next(values))), calls=4)


def test_two_numbers_are_one_object_or_two() -> None:
    def fn(x: Any, n: Any, m: Any) -> Any:
        return x * n, n is m, (n + 1) is (n + 1), n + 0 is n

    compiled = stator.compile(fn, backend="eager")
    for value in (2, 3, 4):
        one, other = np.float64(value), np.float64(value)
        for pair in ((one, one), (one, other), (other, one)):
            expected, actual = fn(torch.ones(2), *pair), compiled(torch.ones(2), *pair)
            assert expected[1:] == actual[1:]
            assert torch.equal(expected[0], actual[0])


@pytest.mark.parametrize("container", ["(n, k)", "[n, [k]]", "{'n': n, 'k': k}"])
def test_numbers_in_containers(container: str) -> None:
    make = eval(f"lambda n, k: {container}")
    read = {"(": "c[0] * c[1]", "[": "c[0] * c[1][0]", "{": "c['n'] * c['k']"}[container[0]]
    fn = eval(f"lambda x, c: (x * ({read}), c)")
    backend = Counting()
    compiled = stator.compile(fn, backend=backend)
    for value in (2, 3, 4):
        given = make(np.int16(value), np.float32(value))
        expected, actual = fn(torch.ones(2), given), compiled(torch.ones(2), given)
        assert not differences(describe(r=expected), describe(r=actual), EXACT)
    assert backend.count == 1
