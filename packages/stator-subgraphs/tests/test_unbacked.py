"""Values that only the data decides: captured where asked for, checked at run time, refused
otherwise."""

from __future__ import annotations

import operator

import pytest
import torch
from stator_bytecode.errors import Unsupported
from stator_subgraphs.conformance import Driver


def test_they_are_refused_by_default(driver: Driver) -> None:
    x = driver.input("x", torch.ones(3))
    for reason, target in (("data-dependent-output", "item"), ("data-dependent-shape", "nonzero")):
        with pytest.raises(Unsupported) as caught:
            driver.call(target, driver.call("sum", x) if target == "item" else x)
        assert caught.value.reason == reason


def test_an_item_is_a_number_of_the_graph(scalar_driver: Driver) -> None:
    driver = scalar_driver
    n = driver.call("item", driver.input("n", torch.tensor(3)))
    captured = driver.finish(driver.call(torch.mul, driver.input("x", torch.ones(2)), n))
    assert "unbacked_bindings" in n.node.meta
    assert driver.run(captured, n=torch.tensor(7))[0].tolist() == [7.0, 7.0]


def test_what_the_program_checks_is_checked_at_run_time(scalar_driver: Driver) -> None:
    driver = scalar_driver
    n = driver.call("item", driver.input("n", torch.tensor(3)))
    driver.call(torch._check, driver.call(operator.lt, n, 5))
    captured = driver.finish(driver.call(torch.zeros, n))
    assert driver.run(captured)[0].shape == (3,)
    with pytest.raises(RuntimeError):
        driver.run(captured, n=torch.tensor(6))


def test_a_result_of_unknown_size(scalar_driver: Driver) -> None:
    driver = scalar_driver
    found = driver.call("nonzero", driver.input("x", torch.tensor([0.0, 1.0, 2.0])))
    captured = driver.finish(driver.call(torch.add, found, 1), driver.call("size", found, 0))
    rows, count = driver.run(captured, x=torch.ones(4))
    assert (rows.tolist(), count) == ([[1], [2], [3], [4]], 4)


def test_a_symbol_that_was_taken_back_is_not_remembered(scalar_driver: Driver) -> None:
    driver = scalar_driver
    x = driver.input("n", torch.tensor(3))
    mark = driver.recorder.mark()
    driver.call("item", x)
    driver.recorder.rollback(mark)
    n = driver.call("item", x)
    captured = driver.finish(driver.call(torch.ones, n))
    assert driver.run(captured)[0].tolist() == [1.0, 1.0, 1.0]


def test_a_failed_operator_leaves_no_symbol_behind(scalar_driver: Driver) -> None:
    driver = scalar_driver
    x = driver.input("x", torch.ones(3, 3))
    with pytest.raises(Unsupported):
        driver.call(lambda value: value.nonzero() @ value, x)
    assert driver.recorder.shape_env.pending_fresh_unbacked_symbols == []
    driver.finish(driver.call(torch.neg, x))


def test_a_rollback_of_a_write_to_a_result_of_unknown_size(scalar_driver: Driver) -> None:
    driver = scalar_driver
    found = driver.call("nonzero", driver.input("x", torch.tensor([0.0, 1.0])))
    before = found.example.shape
    mark = driver.recorder.mark()
    driver.call("t_", found)
    driver.recorder.rollback(mark)
    assert found.example.shape == before
    assert found.example._version == 0
    assert driver.run(driver.finish(found))[0].tolist() == [[1]]
