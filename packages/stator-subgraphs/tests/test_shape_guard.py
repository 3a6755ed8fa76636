"""What a graph relies on about sizes and numbers comes back as expressions over our sources."""

from __future__ import annotations

import operator
from typing import Any

import pytest
import torch
from stator_bytecode.errors import InvalidUse, Unsupported
from stator_guards import ParameterSource
from stator_subgraphs import OutputGraph
from stator_subgraphs.conformance import Driver, FixedLocations
from stator_variables import Dim


def texts(captured: Any) -> list[str]:
    """Each fact, with the names of its sources put in."""
    found = []
    for fact in captured.shape_guards():
        text = fact.expression.text
        for name, source in fact.expression.sources.items():
            text = text.replace(name, str(source))
        found.append(text)
    return found


def holds(captured: Any, **state: Any) -> bool:
    return all(fact.expression.holds(None, state) for fact in captured.shape_guards())


def test_static_shapes_need_no_facts(driver: Driver) -> None:
    captured = driver.finish(driver.call(torch.neg, driver.input("x", torch.ones(3, 4))))
    assert texts(captured) == []


def test_a_dynamic_size_is_not_zero_or_one(driver: Driver) -> None:
    captured = driver.finish(driver.call(torch.neg, driver.input("x", torch.ones(3, 4), "dynamic")))
    assert texts(captured) == ["2 <= x.size(0)"]


def test_a_branch_on_a_size_is_a_fact_with_its_line(driver: Driver, places: FixedLocations) -> None:
    x = driver.input("x", torch.ones(6, 4), "dynamic")
    places.at(42, "forward")
    assert x.example.size(0) * 2 > 10
    (fact, *_) = driver.finish(driver.call(torch.neg, x)).shape_guards()
    assert (fact.where.line, fact.where.function) == (42, "forward")


def test_facts_accept_and_reject(driver: Driver) -> None:
    x = driver.input("x", torch.ones(6, 4), "dynamic")
    assert x.example.size(0) % 2 == 0
    captured = driver.finish(driver.call(torch.neg, x))
    assert holds(captured, x=torch.ones(8, 4))
    assert not holds(captured, x=torch.ones(7, 4))


def test_sizes_that_an_operator_needs_equal(driver: Driver) -> None:
    x, y = driver.input("x", torch.ones(6), "dynamic"), driver.input("y", torch.ones(6), "dynamic")
    captured = driver.finish(driver.call(torch.add, x, y))
    assert holds(captured, x=torch.ones(8), y=torch.ones(8))
    assert not holds(captured, x=torch.ones(8), y=torch.ones(9))


def test_a_size_that_became_constant_is_a_fact(driver: Driver) -> None:
    x = driver.input("x", torch.ones(6), "dynamic")
    assert x.example.size(0) == 6
    captured = driver.finish(driver.call(torch.neg, x))
    assert holds(captured, x=torch.ones(6))
    assert not holds(captured, x=torch.ones(5))


def test_a_shape_changed_while_tracing_is_guarded_as_it_came_in(driver: Driver) -> None:
    x = driver.input("x", torch.ones(4, 6), "dynamic", "dynamic")
    assert x.example.size(0) * 3 > 10
    driver.call("t_", x)
    captured = driver.finish(driver.call(torch.neg, x))
    assert holds(captured, x=torch.ones(5, 2))
    assert not holds(captured, x=torch.ones(2, 5))


def test_an_input_that_was_taken_back_is_asked_about_only_if_a_fact_needs_it(
    driver: Driver,
) -> None:
    x = driver.input("x", torch.ones(6), "dynamic")
    mark = driver.recorder.mark()
    driver.input("forgotten", torch.ones(7), "dynamic")
    driver.recorder.rollback(mark)
    learned = driver.input("learned", torch.ones(6), "dynamic")
    driver.call(torch.add, x, learned)
    driver.recorder.rollback(mark)
    captured = driver.finish(driver.call(torch.neg, x))
    assert "forgotten" not in " ".join(texts(captured))
    assert holds(captured, x=torch.ones(6), learned=torch.ones(6))


def test_a_symbolic_int(driver: Driver) -> None:
    n = driver.input("n", 5)
    assert n.example > 3
    captured = driver.finish(driver.call(torch.mul, driver.input("x", torch.ones(2)), n))
    assert holds(captured, n=4)
    assert not holds(captured, n=3)


def test_a_symbolic_int_that_became_constant(driver: Driver) -> None:
    n = driver.input("n", 5)
    assert n.example == 5
    captured = driver.finish(driver.call(torch.mul, driver.input("x", torch.ones(2)), n))
    assert not holds(captured, n=4)


def test_a_symbolic_float_enters_as_a_tensor(driver: Driver) -> None:
    scale = driver.input("scale", 2.5)
    assert isinstance(scale.example, torch.SymFloat)
    captured = driver.finish(driver.call(torch.mul, driver.input("x", torch.ones(2)), scale))
    assert [item.kind for item in captured.inputs] == ["float", "tensor"]
    assert driver.run(captured, scale=1.5)[0].tolist() == [1.5, 1.5]
    assert holds(captured, scale=3.5)


def test_a_float_that_is_not_finite_is_no_symbol(driver: Driver) -> None:
    with pytest.raises(Unsupported, match="constant of the graph"):
        driver.input("scale", float("nan"))


def test_strides_follow_sizes(driver: Driver) -> None:
    x = driver.input("x", torch.ones(4, 6), "dynamic", "dynamic")
    captured = driver.finish(driver.call(torch.neg, x))
    assert holds(captured, x=torch.ones(3, 5))
    assert not holds(captured, x=torch.ones(5, 3).t())


def test_two_equal_sizes_stay_two_symbols(driver: Driver) -> None:
    x, y = driver.input("x", torch.ones(6), "dynamic"), driver.input("y", torch.ones(6), "dynamic")
    captured = driver.finish(driver.call(torch.neg, x), driver.call(torch.neg, y))
    assert holds(captured, x=torch.ones(5), y=torch.ones(4))


def graph_with(dim: Dim) -> tuple[Driver, Any]:
    driver = Driver(OutputGraph(FixedLocations(), capture_data=True))
    real = driver.values["x"] = torch.ones(6)
    return driver, driver.recorder.tensor_input(ParameterSource("x"), real, [dim], "x")


def test_a_strictly_dynamic_size_must_not_become_constant() -> None:
    driver, x = graph_with(Dim("dynamic", strict=True))
    assert x.example.size(0) == 6
    captured = driver.finish(driver.call(torch.neg, x))
    with pytest.raises(InvalidUse, match=r"marked x.* as dynamic"):
        captured.shape_guards()


def test_bounds_of_a_size_are_facts() -> None:
    driver, x = graph_with(Dim("dynamic", low=4, high=8))
    captured = driver.finish(driver.call(torch.neg, x))
    assert x.example.size(0) < 9
    assert holds(captured, x=torch.ones(8))
    assert not holds(captured, x=torch.ones(9))


def test_an_unbacked_size_cannot_be_branched_on() -> None:
    driver, x = graph_with(Dim("unbacked"))
    captured_size = driver.call("size", x, 0)
    with pytest.raises(Unsupported) as caught:
        driver.call(bool, driver.call(operator.gt, captured_size, 3))
    assert caught.value.reason == "data-dependent-guard"


def test_an_unbacked_size_runs_at_every_value() -> None:
    driver, x = graph_with(Dim("unbacked"))
    captured = driver.finish(driver.call(torch.mul, x, 2))
    for size in (0, 1, 9):
        assert driver.run(captured, x=torch.ones(size))[0].shape == (size,)


def test_all_dimensions_must_be_described() -> None:
    with pytest.raises(InvalidUse, match="has 2 dimensions"):
        OutputGraph(FixedLocations()).tensor_input(
            ParameterSource("x"), torch.ones(2, 2), [Dim()], "x"
        )
