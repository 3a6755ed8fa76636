"""Writes are seen, kept in the graph, and taken back without a trace."""

from __future__ import annotations

import operator
from collections.abc import Callable

import pytest
import torch
from stator_subgraphs._mutation import NodeTarget, is_in_place
from stator_subgraphs.conformance import Driver
from stator_variables import GraphValue


def description(traced: GraphValue) -> tuple[object, ...]:
    x = traced.example
    return (
        tuple(x.shape),
        x.stride(),
        x.storage_offset(),
        x._version,
        x.requires_grad,
        x.is_leaf,
        x._base is None,
    )


WRITES: dict[str, Callable[[Driver, GraphValue], object]] = {
    "add_": lambda driver, x: driver.call("add_", x, 1),
    "operator": lambda driver, x: driver.call(operator.iadd, x, 1),
    "item": lambda driver, x: driver.call(operator.setitem, x, 0, 5.0),
    "out": lambda driver, x: driver.call(torch.neg, x, out=x),
    "view": lambda driver, x: driver.call("mul_", driver.call("view", x, -1), 2),
    "t_": lambda driver, x: driver.call("t_", x),
    "unsqueeze_": lambda driver, x: driver.call("unsqueeze_", x, 0),
    "resize_": lambda driver, x: driver.call("resize_", x, (10, 10)),
    "set_": lambda driver, x: driver.call("set_", x, driver.call(torch.empty, 7)),
    "requires_grad_": lambda driver, x: driver.call("requires_grad_", x),
    "data": lambda driver, x: driver.call(setattr, x, "data", driver.call(torch.zeros, 4)),
    "gradient": lambda driver, x: driver.call(
        "mul_", x, driver.input("w", torch.nn.Parameter(torch.ones(2, 3)))
    ),
}


@pytest.mark.parametrize("write", WRITES)
@pytest.mark.parametrize("intermediate", [False, True], ids=["input", "intermediate"])
def test_a_write_is_seen_and_taken_back(driver: Driver, write: str, intermediate: bool) -> None:
    x = driver.input("x", torch.ones(2, 3))
    if intermediate:
        x = driver.call(torch.neg, x)
    other = driver.call("view", x, 6)
    before = description(x), description(other)
    mark = driver.recorder.mark()
    WRITES[write](driver, x)
    assert (description(x), description(other)) != before
    driver.recorder.rollback(mark)
    assert (description(x), description(other)) == before
    assert x.example.untyped_storage()._cdata == other.example.untyped_storage()._cdata
    again = driver.finish(driver.call(torch.sin, x), other)
    assert driver.run(again)[0].shape == (2, 3)


def test_a_write_before_the_mark_stays(driver: Driver) -> None:
    x = driver.input("x", torch.ones(2, 3))
    driver.call("t_", x)
    mark = driver.recorder.mark()
    driver.call("unsqueeze_", x, 0)
    driver.recorder.rollback(mark)
    assert tuple(x.example.shape) == (3, 2)
    driver.call("add_", x, 1)
    assert driver.run(driver.finish(x))[0].tolist() == [[2.0, 2.0]] * 3


def test_modes_are_as_they_were_when_values_are_made_again(driver: Driver) -> None:
    x = driver.input("x", torch.ones(3, requires_grad=True))
    driver.call(torch._C._set_grad_enabled, False)
    quiet = driver.call(torch.mul, x, 2)
    driver.call(torch._C._set_grad_enabled, True)
    mark = driver.recorder.mark()
    driver.call("add_", quiet, driver.call(torch.mul, x, 2))
    assert quiet.example.requires_grad
    driver.recorder.rollback(mark)
    assert not quiet.example.requires_grad
    assert torch.is_grad_enabled()


def test_a_write_through_one_of_two_inputs_over_one_storage(driver: Driver) -> None:
    base = torch.ones(6)
    x, y = driver.input("x", base[:3]), driver.input("y", base[3:])
    mark = driver.recorder.mark()
    driver.call("add_", x, 1)
    driver.recorder.rollback(mark)
    assert x.example.untyped_storage()._cdata == y.example.untyped_storage()._cdata
    assert x.example._version == 0


def test_a_dynamic_input_keeps_its_symbols(driver: Driver) -> None:
    x = driver.input("x", torch.ones(4, 3), "dynamic")
    before = str(x.example.shape)
    mark = driver.recorder.mark()
    driver.call("t_", x)
    driver.recorder.rollback(mark)
    assert str(x.example.shape) == before
    assert len(driver.finish(driver.call(torch.neg, x)).inputs) == 2


def test_an_unused_write_is_kept(driver: Driver) -> None:
    x = driver.input("x", torch.ones(3))
    driver.call(operator.setitem, x, 0, 4.0)
    captured = driver.finish(driver.call(torch.neg, x))
    assert driver.run(captured)[0].tolist() == [-4.0, -1.0, -1.0]


@pytest.mark.parametrize(
    "target",
    [operator.or_, operator.and_, operator.not_, operator.is_, "__or__", torch.ops.aten.add.Tensor],
)
def test_an_operator_that_gives_a_new_value_is_not_in_place(target: NodeTarget) -> None:
    assert not is_in_place(target)


@pytest.mark.parametrize(
    "target",
    [operator.ior, "__ior__", "or_", torch.relu_, torch.ops.aten.add_, torch.ops.aten.add_.Tensor],
)
def test_an_operator_that_writes_to_its_operand_is_in_place(target: NodeTarget) -> None:
    assert is_in_place(target)
