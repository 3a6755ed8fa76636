"""Numbers that change between calls are inputs from their second value on, wherever they are read.

Where control flow depends on one, the condition is a guard; where a text or a constant does, its
value.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import pytest
import stator
import torch
import torch.nn.functional as F
from stator._subject import region_in

from integration_tests.support.counting import Counting
from integration_tests.support.description import EXACT, describe, differences

Function = Callable[..., Any]
X = torch.linspace(-1, 1, 3)


def graphs(fn: Function, values: list[Any], backend: Any = None, **options: Any) -> list[int]:
    """Compare calls with these numbers with plain Python; return the number of graphs after
    each."""
    counting = Counting()
    compiled = stator.compile(fn, backend=backend or counting, **options)
    found = []
    for value in values:
        expected, actual = (described(call, value) for call in (fn, compiled))
        assert not differences(expected, actual, EXACT), value
        found.append(counting.count)
    return found


def described(call: Function, value: Any) -> Any:
    x = X.clone()
    try:
        return describe(result=call(x, value), x=x)
    except (ArithmeticError, ValueError, IndexError) as error:
        return describe(raised=(type(error).__name__, str(error)))


# -- ints ----------------------------------------------------------------------------------------
ZERO_AND_ONE = """
x * k | x[:k] | torch.zeros(k) | x.sum(k) if k < 1 else x | x.roll(k) | (k and 5, not k, bool(k), x) | x / k
[x * i for i in range(k)] | x.repeat(k + 1) | torch.full((2,), k) | torch.tensor([k, k]) | x ** k | (k * 0, k - 1, x)
x.expand(k + 1, 3) | torch.eye(k) | x[k % 3] | (math.sqrt(k), x) | (x, [1, 2, 3, 4][k]) | (7 % k, 7 // k, x)
"""


@pytest.mark.parametrize("values", [[0, 1, 2, 3], [1, 0, 2, 1], [3, 1, 0, 2]])
@pytest.mark.parametrize(
    "text",
    [part.strip() for line in ZERO_AND_ONE.strip().split("\n") for part in line.split(" | ")],
)
def test_zero_and_one_are_values_like_others(text: str, values: list[int]) -> None:
    graphs(eval(f"lambda x, k: {text}", {"torch": torch, "math": math}), values)


def test_ints_from_zero_on_have_two_graphs() -> None:
    assert graphs(lambda x, k: x * k + k, [0, 1, 2, 3, 4]) == [1, 2, 2, 2, 2]


def test_int_beyond_a_machine_word() -> None:
    graphs(lambda x, k: (x, k + 1, k * 2, -k), [3, 4, 2**63 - 1, 2**63, 2**70, -(2**63)])


# -- floats ----------------------------------------------------------------------------------------
FLOATS = """
x * k | x + k | x / k | (x, k) | (x, k + 1.0, k * 0.9, k - 0.1, -k, k / 3) | x * (1 - k) | (x, 1 / (k + 4))
(x, k * k * k, k * 1e300 * 1e300) | (x, k + 2**60, 3 * k) | (x, math.copysign(1.0, k)) | (x, str(k), repr(k * 1.0))
x if k > 0.1 else -x | x * (k or 2.0) | (x, k == 0, k != 0, not k) | x * min(k, 0.7) | x * max(0.1, 1 - k * 0.1)
(x, math.isfinite(k), math.isnan(k), math.isinf(k * 10)) | (x, abs(k), k % 0.3, k // 0.3) | x * 0.9 ** k
"""
EDGES = [0.5, 0.25, 0.0, -0.0, 0.75, math.inf, -math.inf, math.nan, -1.5, 1e308, 5e-324, 0.0, 0.5]


@pytest.mark.parametrize("first", [0, 2, 3])
@pytest.mark.parametrize(
    "text", [part.strip() for line in FLOATS.strip().split("\n") for part in line.split(" | ")]
)
def test_floats_are_exact_at_every_edge(text: str, first: int) -> None:
    values = EDGES[first:] + EDGES[:first]
    fn = eval(f"lambda x, k: {text}", {"math": math})
    graphs(fn, values, recompile_limit=30)


def test_zero_is_a_float_like_others() -> None:
    assert graphs(lambda x, k: x * k, [0.5, 0.0, 0.7, 0.8]) == [1, 2, 2, 2]
    assert graphs(lambda x, k: x * k, [0.0, 0.5, 0.0, 0.8]) == [1, 2, 2, 2]


def test_float_stays_a_scalar_for_type_promotion() -> None:
    def fn(x: torch.Tensor, k: float) -> Any:
        return x * k, x.half() * k, x.long() * k, x.double() + k

    assert graphs(fn, [0.5, 0.75, 1.5])[-1] == 2


@pytest.mark.parametrize(
    "condition", ["k * 0.1 < 0.35", "1 - k * 0.1 > 0.9", "math.cos(k) + k > 1.5"]
)
def test_condition_on_a_computed_float_is_one_guard(condition: str) -> None:
    scope = {"math": math}
    fn = eval(f"lambda x, k: x * k if {condition} else x - k", scope)
    assert graphs(fn, [0.5, 0.75, 0.25, 3.75, 4.5, 5.5, 0.125])[-1] <= 3


def test_condition_is_computed_in_the_order_of_the_program() -> None:
    """With 0.1, 0.2 and 0.3 the sum is above 0.6 in one order, and equal in the other."""

    def fn(x: torch.Tensor, k: float) -> torch.Tensor:
        return x + 1 if (k + 0.2) + 0.3 > 0.6 else x - 1

    def other(x: torch.Tensor, k: float) -> torch.Tensor:
        return x + 1 if k + (0.2 + 0.3) > 0.6 else x - 1

    for each in (fn, other):
        graphs(each, [0.05, 0.06, 0.1, 0.10000000000000002, 0.09999999999999999, 0.1])


def test_condition_on_a_float_is_read_in_the_guards() -> None:
    compiled = stator.compile(lambda x, k: x if k * 0.5 < 2.0 else -x, backend="eager")
    for value in (0.5, 0.75):
        compiled(X, value)
    newest: Any = region_in(compiled).root.cache.all_entries()[0]
    assert "((n0 * 0.5) < 2.0)" in [
        getattr(guard.kind, "text", "") for guard in newest.guards.guards
    ]


# -- state ----------------------------------------------------------------------------------------
class Annealed(torch.nn.Module):
    """Decays its temperature in each call, and counts the calls."""

    def __init__(self) -> None:
        super().__init__()
        self.temperature, self.calls = 2.0, 0

    def forward(self, x: torch.Tensor, k: Any) -> Any:
        self.calls += 1
        self.temperature *= 0.9
        return F.softmax(x / self.temperature, -1) * self.calls


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
def test_state_of_a_module_is_computed_by_the_entry(backend: str) -> None:
    plain, module = Annealed(), Annealed()
    compiled = stator.compile(module, backend=backend)
    for _ in range(6):
        assert torch.equal(compiled(X, None), plain(X, None))
        assert (module.calls, module.temperature) == (plain.calls, plain.temperature)
    entries = region_in(compiled).root.cache.all_entries()
    assert len(entries) == (2 if backend == "eager" else 1)  # the first serves one call
    assert "+ 1" in entries[0].data.source
    assert "* 0.9" in entries[0].data.source


def test_number_that_is_stored_in_two_places_is_one_object() -> None:
    class Holder:
        first = second = 1000

    holder = Holder()

    def fn(x: torch.Tensor, k: int) -> torch.Tensor:
        holder.first = holder.second = k + 1000
        return x * holder.first

    compiled = stator.compile(fn, backend="eager")
    for k in (1, 2, 3):
        compiled(X, k)
        assert holder.first is holder.second
        assert holder.first == k + 1000


def test_changed_default_of_an_argument() -> None:
    def fn(x: torch.Tensor, k: float = 0.5) -> torch.Tensor:
        return x * k

    def call(x: torch.Tensor, value: float) -> torch.Tensor:
        fn.__defaults__ = (value,)
        return fn(x)

    def read(x: torch.Tensor, value: Any) -> torch.Tensor:
        return fn(x)

    counting = Counting()
    compiled = stator.compile(read, backend=counting)
    for value in (0.5, 0.75, 1.5, 2.5):
        expected = call(X, value)
        assert torch.equal(compiled(X, None), expected)
    assert counting.count == 2


def test_setting_of_a_layer_that_needs_a_constant_has_an_entry_for_each_value() -> None:
    layer = torch.nn.Dropout(0.5).eval()
    layer.p = 0.25

    def fn(x: torch.Tensor, p: float) -> Any:
        layer.p = p
        return layer(x) * layer.p

    graphs(fn, [0.5, 0.25, 0.75])


def test_graph_that_writes_to_an_input_takes_a_changed_float() -> None:
    assert graphs(lambda x, k: x.mul_(k), [0.5, 0.75, 1.5, 2.5]) == [1, 2, 2, 2]


# -- functions that no graph has -----------------------------------------------------------------
@pytest.mark.parametrize(
    ("text", "most"),
    [
        ("x * math.exp(-5.0 * (1 - min(k, 9) / 10) ** 2)", 2),
        ("x * math.log(k + 1) + math.log10(k)", 2),
        ("x * math.log(k, 3)", 2),
        ("x * math.atan2(1, k) + math.atan2(k, 2.0)", 2),
        ("x * sum(math.exp(-k * i) for i in range(40))", 2),
        ("x * math.log1p(math.exp(math.erf(k)))", 2),
        ("x * 2 if math.exp(k) > 50 else x", 3),
    ],
)
def test_function_of_math_is_computed_by_the_entry(text: str, most: int) -> None:
    function = eval(f"lambda x, k: {text}", {"math": math})
    for values in ([2.0, 3.0, 4.0, 5.5, 1.5], [2, 3, 4, 7, 5]):
        assert graphs(function, values)[-1] <= most


def test_function_of_math_that_raises_has_its_own_entry() -> None:
    texts = ("x * math.exp(k)", "x * math.log(k)", "x * math.exp(1 / k)")
    for function in [eval(f"lambda x, k: {text}", {"math": math}) for text in texts]:
        graphs(function, [2.0, 3.0, 1000.0, 0.0, -0.0, -1.0, math.inf, math.nan, 4.0])
