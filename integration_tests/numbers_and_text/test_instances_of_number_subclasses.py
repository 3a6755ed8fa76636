"""Existing instances of subclasses of `int`, `float` and `str` as operands, indices and arguments:
inputs like plain values, whose class may override operators."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import pytest
import stator
import torch
from torch import Tensor

PERCENT, BRACES = "%s, %.1f", "{}"


class Meters(float):
    pass


class Level(int):
    pass


class Name(str):
    pass


class Adding(float):
    def __add__(self, other: float) -> Any:
        return f"sum of {float(self)} and {other}"

    __radd__ = __add__

    def __mul__(self, other: object) -> Any:
        return NotImplemented


class Converted(float):
    def __float__(self) -> float:
        return 100.0

    def __index__(self) -> int:
        return 1

    def __str__(self) -> str:
        return "converted"


def operators(x: Tensor, m: Any) -> Any:
    return x * m, m * x, x - m, m + 1, 1 - m, -m, abs(m), m / 2, m // 2, m % 2, m**2, +m, round(m)


def comparisons(x: Tensor, m: Any) -> Any:
    return (
        (x * 2 if m < 3 else x * 3),
        m == 2,
        m >= 2.5,
        m in (1, 2.5),
        bool(m),
        max(m, 1),
        min(m, 9),
    )


def integers(x: Tensor, m: Any) -> Any:
    made = [*range(10)]
    parts = made[m], made[:m], sum(range(m)), m << 1, m & 1, ~m, divmod(m, 2), m.bit_length()
    return x.view(m, -1), x[m], torch.zeros(m), parts


def conversions(x: Tensor, m: Any) -> Any:
    return x * math.sqrt(m), math.floor(m), int(m), float(m), f"{m:.2f}"


def formats(x: Tensor, m: Any) -> Any:
    return x * 2, f"{m}", str(m), PERCENT % (m, m), BRACES.format(m), repr(m)


def texts(x: Tensor, m: Any) -> Any:
    parts = m.upper(), m[0], "b" in m, m in "abc", m.startswith("b"), m == "b", m * 2, m.split("b")
    return x * len(m), m + "a", "a" + m, "-".join([m, "a"]), f"{m}", parts


def identities(x: Tensor, m: Any) -> Any:
    kept = [m]
    return x * 2, type(m), m is kept[0], isinstance(m, float), kept[0]


def reflected(x: Tensor, m: Any) -> Any:
    return x * 2, m + 1, 1 + m, 1.5 + m


CASES: list[tuple[Callable[..., Any], Any]] = [
    (operators, Meters(2.5)),
    (operators, Level(3)),
    (comparisons, Meters(2.5)),
    (comparisons, Level(3)),
    (integers, Level(3)),
    (conversions, Meters(2.5)),
    (conversions, Level(4)),
    (conversions, Converted(2.5)),
    (formats, Meters(2.5)),
    (formats, Level(3)),
    (formats, Converted(2.5)),
    (texts, Name("b")),
    (identities, Meters(2.5)),
    (reflected, Adding(2.5)),
]


def assert_equal(found: Any, expected: Any) -> None:
    assert type(found) is type(expected)
    if isinstance(expected, Tensor):
        assert found.dtype == expected.dtype
        torch.testing.assert_close(found, expected)
    elif isinstance(expected, tuple):
        for one, other in zip(found, expected, strict=True):
            assert_equal(one, other)
    else:
        assert found == expected


@pytest.mark.parametrize(("function", "value"), CASES)
def test_results_are_those_of_python(function: Callable[..., Any], value: Any) -> None:
    compiled = stator.compile(function, backend="eager")
    x = torch.arange(6.0)

    for _ in range(2):
        assert_equal(compiled(x, value), function(x, value))


@pytest.mark.parametrize(
    ("function", "value"),
    [
        (operators, Meters(2.5)),
        (operators, Level(3)),
        (comparisons, Meters(2.5)),
        (integers, Level(3)),
        (conversions, Meters(2.5)),
        (identities, Meters(2.5)),
    ],
)
def test_they_are_captured(function: Callable[..., Any], value: Any) -> None:
    stator.compile(function, backend="eager", fullgraph=True)(torch.arange(6.0), value)


def test_a_multiplication_that_the_class_declines_is_an_error() -> None:
    def multiply(m: Any) -> Any:
        return m * 2

    with pytest.raises(TypeError, match="unsupported operand"):
        stator.compile(multiply, backend="eager")(Adding(2.5))


@pytest.mark.parametrize(
    "values",
    [[Meters(0.5 * n) for n in range(8)], [Level(n) for n in range(8)]],
    ids=["float", "int"],
)
def test_values_that_change_are_symbolic(values: list[Any]) -> None:
    def scale(x: Tensor, m: Any) -> Any:
        return x * m, m + 1

    compiled: Any = stator.compile(scale, backend="eager")
    for value in values:
        assert_equal(compiled(torch.ones(3), value), scale(torch.ones(3), value))
    assert compiled.report.graph_count <= 3


def test_an_attribute_of_a_module_is_read_on_each_call() -> None:
    class Scaled(torch.nn.Module):
        by: float = Meters(2.0)

        def forward(self, x: Tensor) -> Tensor:
            return x * self.by

    module = Scaled()
    compiled: Any = stator.compile(module, backend="eager", fullgraph=True)
    for value in (Meters(2.0), Meters(3.0), 4.0, Meters(5.0), 6.0):
        module.by = value
        torch.testing.assert_close(compiled(torch.ones(3)), torch.ones(3) * float(value))


def bounded(x: Tensor, m: float) -> Any:
    return x * min(max(m, 0.25), 2.0), max(m, 0.0), max(0.0, m), min(m, 0.0), min(0.0, m)


def test_bounds_of_a_changing_float_make_two_graphs() -> None:
    compiled: Any = stator.compile(bounded, backend="eager")
    for value in (1.5, 2.5, 0.1, -0.0, 0.5, -3.0, 7.5, -0.0):
        found, expected = compiled(torch.ones(3), value), bounded(torch.ones(3), value)
        assert_equal(found, expected)
        assert repr(found[1:]) == repr(expected[1:])  # which of the two zeros it is
    assert compiled.report.graph_count == 2


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_bounds_of_a_float_that_is_not_finite(value: float) -> None:
    compiled: Any = stator.compile(bounded, backend="eager")
    for each in (1.5, 2.5, value, 3.5, value):
        assert repr(compiled(torch.ones(3), each)) == repr(bounded(torch.ones(3), each))


TABLE = {"a": 1, "b": 2}
WITH_NAMES = {Name("a"): 1, "b": 2}


def keys(x: Tensor, n: Any) -> Any:
    made = {n: 1, "c": 2}
    made[str(n)] = 3
    found = TABLE[n], WITH_NAMES.get(n), n in TABLE, n in {"a"}, {n: 1} == {"a": 1}
    return (
        x * 2,
        [type(key) for key in made],
        [key is n for key in made],
        list(made.values()),
        found,
    )


@pytest.mark.parametrize("name", ["a", Name("a"), Name("b")])
def test_texts_of_a_subclass_are_keys(name: str) -> None:
    compiled = stator.compile(keys, backend="eager", fullgraph=True)

    assert_equal(compiled(torch.ones(3), name), keys(torch.ones(3), name))


class Unequal(str):
    def __eq__(self, other: object) -> bool:
        return False

    __hash__ = str.__hash__


class Hashed(int):
    def __hash__(self) -> int:
        return 5


@pytest.mark.parametrize("key", [Unequal("a"), Hashed(6)])
def test_keys_of_classes_with_own_equality_or_hash(key: Any) -> None:
    def look_up(x: Tensor) -> Any:
        return x * 2, {key: 1, "a": 2, 6: 3}, TABLE.get(key)

    compiled: Any = stator.compile(look_up, backend="eager")
    found, expected = compiled(torch.ones(3)), look_up(torch.ones(3))

    assert [*found[1].values()] == [*expected[1].values()]
    assert found[2] == expected[2]


def test_formatted_values_that_change_are_symbolic() -> None:
    compiled = stator.compile(lambda x, m: (x + 1, f"{m:.2f}", str(m)), backend="eager")
    for number in range(8):
        _, *texts = compiled(torch.ones(2), Meters(number + 0.5))
        assert texts == [f"{number + 0.5:.2f}", str(number + 0.5)]
    assert compiled.report.graph_count == 2
