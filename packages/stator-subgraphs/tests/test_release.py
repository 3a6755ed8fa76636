"""Nothing of the program is kept alive by a graph, not even until the next garbage collection."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Iterator

import pytest
import torch
from stator_subgraphs import OutputGraph
from stator_subgraphs.conformance import Driver, FixedLocations


@pytest.fixture(autouse=True)
def _no_collector() -> Iterator[None]:
    gc.disable()
    yield
    gc.enable()


def use(driver: Driver) -> None:
    x, w = (
        driver.input("x", torch.ones(4, 3), "dynamic"),
        driver.input("w", torch.nn.Parameter(torch.ones(3))),
    )
    mark = driver.recorder.mark()
    driver.call("mul_", x, w)
    driver.recorder.rollback(mark)
    with driver.recorder.subgraph("body") as scope:
        scope.close([driver.call(torch.mul, x, w)])


def references(driver: Driver) -> list[weakref.ref[torch.Tensor]]:
    found = [weakref.ref(value) for value in driver.values.values()]
    driver.values.clear()
    return found


def test_tensors_die_after_release() -> None:
    driver = Driver(OutputGraph(FixedLocations()))
    use(driver)
    captured = driver.finish(driver.input("y", torch.ones(2)))
    assert captured.shape_guards() != []
    alive = references(driver)
    captured.release()
    assert [reference() for reference in alive] == [None] * 3
    assert len(captured.inputs) == 1


def test_tensors_die_when_the_trace_is_given_up() -> None:
    driver = Driver(OutputGraph(FixedLocations()))
    use(driver)
    alive = references(driver)
    driver.recorder.release()
    assert [reference() for reference in alive] == [None] * 2


def test_inputs_can_be_swapped_after_release() -> None:
    driver = Driver(OutputGraph(FixedLocations()))
    x = driver.input("x", torch.ones(2))
    captured = driver.finish(driver.call(torch.neg, x))
    real, other = driver.values.pop("x"), torch.zeros(2)
    captured.release()
    torch.utils.swap_tensors(real, other)
    assert real.tolist() == [0.0, 0.0]
