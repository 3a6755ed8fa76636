"""Numbers that an entry computes itself, and conditions on floats as guards."""

from __future__ import annotations

import math
import operator
from typing import Any

import pytest
import torch
from stator_guards import Source
from stator_subgraphs.conformance import Driver


def text(driver: Driver, traced: Any) -> str | None:
    found: str | None = driver.recorder.text_of(traced, lambda source: f"<{source}>")
    return found


def test_arithmetic_that_cannot_raise_is_text_over_the_inputs(driver: Driver) -> None:
    n, k = driver.input("n", 7), driver.input("k", 2.5)
    assert text(driver, driver.call(operator.add, n, 1)) == "<n> + 1"
    scaled = driver.call(operator.mul, driver.call(operator.sub, k, 1), k)
    assert text(driver, scaled) == "(<k> - 1) * <k>"
    assert text(driver, driver.call(operator.neg, n)) == "-<n>"
    assert text(driver, driver.call(operator.truediv, k, 3)) == "<k> / 3"
    assert text(driver, driver.call(operator.floordiv, n, 2)) == "<n> // 2"


def test_size_is_an_input(driver: Driver) -> None:
    x = driver.input("x", torch.ones(4, 3), "dynamic")
    size = driver.call("size", x, 0)
    assert text(driver, driver.call(operator.mul, size, 2)) == "<x.size(0)> * 2"


@pytest.mark.parametrize(
    ("target", "operands"),
    [
        (operator.truediv, ("n", 3)),  # a large int is no float
        (operator.truediv, ("k", "k")),
        (operator.floordiv, ("n", "n")),
        (operator.mul, ("n", 0.5)),
        (operator.add, ("n", "k")),
        (math.floor, ("k",)),
        (torch._sym_sqrt, ("k",)),
        (operator.pow, ("k", 2)),
    ],
)
def test_what_may_raise_is_left_to_the_graph(
    driver: Driver, target: Any, operands: tuple[Any, ...]
) -> None:
    inputs = {"n": driver.input("n", 7), "k": driver.input("k", 2.5)}
    given = [inputs[name] if isinstance(name, str) else name for name in operands]
    assert text(driver, driver.call(target, *given)) is None


def test_input_as_such_is_no_arithmetic(driver: Driver) -> None:
    assert text(driver, driver.input("n", 7)) is None


def test_long_arithmetic_is_left_to_the_graph(driver: Driver) -> None:
    traced = driver.input("k", 2.5)
    for _ in range(12):
        traced = driver.call(operator.add, traced, 0.1)
    assert text(driver, traced) is None


def test_condition_on_a_computed_float_is_a_guard_in_program_order(driver: Driver) -> None:
    k = driver.input("k", 0.1)
    total = driver.call(operator.add, driver.call(operator.add, k, 0.2), 0.3)
    above = driver.call(operator.gt, total, 0.6)
    found = driver.recorder.condition_of(above)
    assert found is not None
    condition, holds = found
    assert condition.text == "(((n0 + 0.2) + 0.3) > 0.6)"
    assert holds is ((0.1 + 0.2) + 0.3 > 0.6)
    assert [condition.holds(None, {"k": value}) for value in (0.1, 0.05)] == [True, False]


def test_condition_that_does_not_hold_is_negated_and_may_call_functions(driver: Driver) -> None:
    k = driver.input("k", 0.1)
    cosine = driver.call(operator.add, driver.call(torch._sym_cos, k), k)
    found = driver.recorder.condition_of(driver.call(operator.lt, cosine, 0.5))
    assert found is not None
    assert found[0].text.startswith("not ")
    assert [str(source) for source in found[0].sources.values()] == ["k"]
    assert found[0].holds(None, {"k": 0.1})
    assert not found[0].holds(None, {"k": -1.0})


def test_condition_that_shape_env_decides_exactly_is_left_to_it(driver: Driver) -> None:
    n, k = driver.input("n", 7), driver.input("k", 2.5)
    assert driver.recorder.condition_of(driver.call(operator.gt, n, 3)) is None
    assert driver.recorder.condition_of(driver.call(operator.gt, k, 3)) is None


def test_sources_are_those_of_the_inputs(driver: Driver) -> None:
    read: list[Source] = []
    traced = driver.call(operator.add, driver.input("n", 7), 1)
    driver.recorder.text_of(traced, lambda source: read.append(source) or "n")  # type: ignore[func-returns-value]
    assert [str(source) for source in read] == ["n"]
