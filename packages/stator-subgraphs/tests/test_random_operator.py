"""Operators that may draw random numbers, and inputs that are drawn ahead of the graph."""

from __future__ import annotations

from typing import Any

import pytest
import torch
import torch.nn.functional as F
from stator_guards import ParameterSource
from stator_subgraphs._random_operator import DRAWING
from stator_subgraphs.conformance import Driver
from torch.fx.experimental.symbolic_shapes import GuardOnDataDependentSymNode

CHOICES = ("_fused_sdp_choice", "_nested_tensor_softmax_with_shape")
"""Tagged, as they are of an attention with dropout; they draw nothing themselves."""


def tagged() -> list[str]:
    found = set()
    for qualified in torch._C._dispatch_get_all_op_names():
        namespace, _, name = qualified.partition("::")
        base, _, overload = name.partition(".")
        operator = getattr(getattr(torch.ops.aten, base, None), overload or "default", None)
        if (
            namespace == "aten"
            and operator is not None
            and torch.Tag.nondeterministic_seeded in operator.tags
        ):
            found.add(base)
    return sorted(found - {*CHOICES})


@pytest.mark.parametrize("name", tagged())
def test_all_that_torch_says_draws_may_draw(name: str) -> None:
    assert any(part in name for part in DRAWING)


@pytest.mark.parametrize(
    ("call", "draws"),
    [
        (lambda d, x: d.call(F.dropout, x, 0.5, False), False),
        (lambda d, x: d.call(F.dropout, x, 0.5, True), True),
        (lambda d, x: d.call(torch.bernoulli, x), True),
        (lambda d, x: d.call(torch.sin, x), False),
    ],
)
def test_a_graph_may_have_drawn_once_an_operator_in_it_draws(
    driver: Driver, call: Any, draws: bool
) -> None:
    call(driver, driver.input("x", torch.rand(3)))
    assert driver.recorder.may_have_drawn() is draws
    assert not driver.recorder.may_have_drawn(foreign=True)


def test_a_rollback_takes_back_that_a_graph_has_drawn(driver: Driver) -> None:
    x = driver.input("x", torch.rand(3))
    mark = driver.recorder.mark()
    driver.call(torch.bernoulli, x)
    driver.recorder.rollback(mark)
    assert not driver.recorder.may_have_drawn()


def test_drawn_values_are_inputs_that_no_real_value_stands_behind(driver: Driver) -> None:
    sources = [ParameterSource(name) for name in ("n", "f", "t")]
    n = driver.recorder.entry_number(sources[0], int)
    f = driver.recorder.entry_number(sources[1], float)
    t = driver.recorder.entry_tensor(sources[2], torch.randn, [3], {})
    total = driver.call(torch.add, driver.call(torch.mul, t, n), f)
    captured = driver.finish(total)
    assert [item.kind for item in captured.inputs] == ["number", "float", "tensor"]

    values = 2, torch.tensor(0.5, dtype=torch.float64), torch.ones(3)
    assert captured.module(*values)[0].tolist() == [2.5, 2.5, 2.5]
    assert captured.shape_guards() == []


def test_a_drawn_float_that_nothing_uses_leaves_no_operator(driver: Driver) -> None:
    driver.recorder.entry_number(ParameterSource("f"), float)
    assert driver.finish().op_count == 0


@pytest.mark.parametrize("kind", [int, float])
def test_a_drawn_number_is_no_constant(driver: Driver, kind: type) -> None:
    number = driver.recorder.entry_number(ParameterSource("n"), kind)
    with pytest.raises(GuardOnDataDependentSymNode):
        driver.recorder.constant_of(number)
