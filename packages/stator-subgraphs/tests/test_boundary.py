"""Errors while an operator runs on fakes: each becomes a break, at which the operator runs
natively."""

from __future__ import annotations

import random
from typing import NamedTuple

import pytest
import torch
from stator_bytecode.errors import InternalError, InvalidUse, Unsupported
from stator_guards import ParameterSource
from stator_subgraphs.conformance import Driver


class Plain(torch.Tensor):
    pass


class Pair(NamedTuple):
    first: object
    second: object


def reason_of(driver: Driver, target: object, *args: object, **kwargs: object) -> Unsupported:
    with pytest.raises(Unsupported) as caught:
        driver.call(target, *args, **kwargs)
    return caught.value


@pytest.mark.parametrize(
    "error", [RuntimeError("mine"), ValueError("mine"), TypeError("mine"), KeyError("mine")]
)
def test_errors_of_the_operator_are_breaks(driver: Driver, error: Exception) -> None:
    def fail(value: torch.Tensor) -> None:
        raise error

    found = reason_of(driver, fail, driver.input("x", torch.ones(2)))
    assert found.reason == "operator-error"
    assert found.__cause__ is error


def test_a_fault_of_ours_is_not_taken_for_an_error_of_the_operator(
    driver: Driver, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fault(*args: object) -> None:
        raise TypeError("ours")

    monkeypatch.setattr("stator_subgraphs._call._write_down", fault)
    with pytest.raises(TypeError, match="ours"):
        driver.call(torch.neg, driver.input("x", torch.ones(2)))


def test_reading_data(driver: Driver) -> None:
    x = driver.input("x", torch.ones(2))
    assert reason_of(driver, "tolist", x).reason == "data-dependent-output"
    assert reason_of(driver, "data_ptr", x).reason == "data-pointer"
    assert reason_of(driver, "numpy", x).reason == "data-access"


def test_a_real_tensor_in_an_operator(driver: Driver) -> None:
    constant = torch.ones(2)
    assert (
        reason_of(driver, lambda x: x + constant, driver.input("x", torch.ones(2))).reason
        == "real-tensor"
    )


def test_an_operator_without_a_fake_kernel(driver: Driver) -> None:
    @torch.library.custom_op("stator_test::no_fake", mutates_args=())
    def no_fake(x: torch.Tensor) -> torch.Tensor:
        return x.clone()

    found = reason_of(
        driver, torch.ops.stator_test.no_fake.default, driver.input("x", torch.ones(2))
    )
    assert (found.reason, found.hint != "") == ("no-fake-kernel", True)


def test_a_break_says_where_and_why(driver: Driver) -> None:
    found = reason_of(driver, "item", driver.input("x", torch.ones(())))
    assert found.where.filename == "program.py"
    assert "item" in found.detail
    assert isinstance(found.__cause__, RuntimeError)


def test_a_subclass_is_refused(driver: Driver) -> None:
    with pytest.raises(Unsupported) as caught:
        driver.input("x", torch.ones(2).as_subclass(Plain))
    assert (caught.value.reason, "Plain" in caught.value.detail) == ("tensor-subclass", True)


def test_a_wrapper_that_is_reshaped_is_refused(driver: Driver) -> None:
    from torch.testing._internal.two_tensor import TwoTensor

    x = driver.input("x", TwoTensor(torch.ones(2), torch.ones(2)))
    assert type(x.example) is TwoTensor
    with pytest.raises(Unsupported) as caught:
        driver.recorder.call("unsqueeze_", (x, 0), {})
    assert caught.value.reason == "tensor-subclass"


def test_a_lazy_parameter_is_refused(driver: Driver) -> None:
    with pytest.raises(Unsupported) as caught:
        driver.recorder.tensor_input(
            ParameterSource("x"), torch.nn.UninitializedParameter(), [], "x"
        )
    assert caught.value.reason == "uninitialized-parameter"


def test_an_argument_that_cannot_be_written_down(driver: Driver) -> None:
    x = driver.input("x", torch.ones(2))
    found = reason_of(driver, torch.bernoulli, x, generator=torch.Generator())
    assert (found.reason, found.where.line) == ("unrepresentable-argument", 1)
    assert len(driver.finish(x).module.graph.nodes) == 2


def test_a_real_tensor_as_an_argument_is_our_mistake(driver: Driver) -> None:
    with pytest.raises(InternalError, match="install it"):
        driver.call(torch.add, driver.input("x", torch.ones(2)), torch.ones(2))


def test_only_modules_and_tensors_are_held(driver: Driver) -> None:
    with pytest.raises(InvalidUse, match="holds modules and tensors"):
        driver.recorder.install("held", object())


def test_numbers_that_can_be_symbolic(driver: Driver) -> None:
    with pytest.raises(InvalidUse, match="only int and float"):
        driver.recorder.number_input(ParameterSource("flag"), True, "flag")


def test_seeding_is_no_node(driver: Driver) -> None:
    before = torch.get_rng_state()
    assert reason_of(driver, torch.manual_seed, 3).reason == "random-seeding"
    assert torch.equal(torch.get_rng_state(), before)


def test_a_fake_kernel_that_draws_leaves_the_streams_alone(driver: Driver) -> None:
    @torch.library.custom_op("stator_test::draws", mutates_args=())
    def draws(x: torch.Tensor) -> torch.Tensor:
        return x.clone()

    @draws.register_fake
    def fake_draws(x: torch.Tensor) -> torch.Tensor:
        random.random()
        return torch.empty_like(x)

    before = random.getstate()
    driver.call(torch.ops.stator_test.draws.default, driver.input("x", torch.ones(2)))
    assert random.getstate() == before


def test_an_operator_runs_once(driver: Driver) -> None:
    calls = []

    def counted(value: torch.Tensor) -> torch.Tensor:
        calls.append(value)
        return value.neg()

    driver.finish(driver.call(counted, driver.input("x", torch.ones(2))))
    assert len(calls) == 1


def test_named_tuple_is_an_argument(driver: Driver) -> None:
    x, y = driver.input("x", torch.ones(2)), driver.input("y", torch.zeros(2))
    stacked = driver.call(torch.stack, Pair(x, y))
    assert stacked.example.shape == (2, 2)
    given = stacked.node.args[0]
    assert (type(given), given.first, given.second) == (Pair, x.node, y.node)
