"""Modes that the program changes are in force while tracing, and set back by a rollback and by the
end."""

from __future__ import annotations

import pytest
import torch
from stator_subgraphs import OutputGraph
from stator_subgraphs.conformance import Driver, FixedLocations
from torch.amp import autocast_mode
from torch.autograd import grad_mode


def enter_autocast(driver: Driver) -> object:
    return driver.call(autocast_mode._enter_autocast, "cpu", torch.bfloat16, True, None)


def product(driver: Driver) -> torch.dtype:
    x = driver.input("x", torch.ones(2, 2))
    return driver.call(torch.mm, x, x).example.dtype  # type: ignore[no-any-return]


def test_autocast_is_in_force_between_its_two_calls(driver: Driver) -> None:
    entered = enter_autocast(driver)
    assert product(driver) is torch.bfloat16
    driver.call(autocast_mode._exit_autocast, entered)
    assert product(driver) is torch.float32


@pytest.mark.parametrize("leave", [False, True])
def test_a_rollback_sets_autocast_back(driver: Driver, leave: bool) -> None:
    entered = enter_autocast(driver) if leave else None
    mark = driver.recorder.mark()
    if leave:
        driver.call(autocast_mode._exit_autocast, entered)
    else:
        enter_autocast(driver)
    driver.recorder.rollback(mark)
    assert torch.is_autocast_enabled("cpu") is leave


def test_the_end_sets_autocast_back(driver: Driver) -> None:
    enter_autocast(driver)
    driver.finish(driver.call(torch.neg, driver.input("x", torch.ones(2))))
    assert not torch.is_autocast_enabled("cpu")


def test_values_are_made_again_under_the_autocast_they_had(driver: Driver) -> None:
    x = driver.input("x", torch.ones(2, 2))
    entered = enter_autocast(driver)
    low = driver.call(torch.mm, x, x)
    driver.call(autocast_mode._exit_autocast, entered)
    mark = driver.recorder.mark()
    driver.call("add_", low, 1)
    driver.recorder.rollback(mark)
    assert (low.example.dtype, low.example._version) == (torch.bfloat16, 0)
    assert not torch.is_autocast_enabled("cpu")


def test_inference_mode(driver: Driver) -> None:
    mark = driver.recorder.mark()
    entered = driver.call(grad_mode._enter_inference_mode, True)
    y = driver.call(torch.neg, driver.input("x", torch.ones(2)))
    assert y.example.is_inference()
    driver.call("add_", y, 1)
    driver.call(grad_mode._exit_inference_mode, entered)
    assert not torch.is_inference_mode_enabled()
    driver.recorder.rollback(mark)
    assert not torch.is_inference_mode_enabled()


def test_a_trace_that_fails_leaves_no_mode_behind() -> None:
    graph = OutputGraph(FixedLocations())

    def trace() -> None:
        with graph.tracing():
            Driver(graph).call(torch._C._set_grad_enabled, False)
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        trace()
    assert torch.is_grad_enabled()
