"""Functions that can reach no tensor, and break: called natively as a whole. Those that can are
captured as far as they go."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import stator
import torch
from torch import Tensor, nn

from integration_tests.support.counting import Counting
from integration_tests.support.oracle import assert_same

SCALES = {"one": 1, "two": [2.0, 3.0]}
LAYER = nn.Linear(4, 4)
TELLS: list[str] = []


def tell(text: str) -> None:
    TELLS.append(text)
    print(text, end="")


def masked_spans(shape: Any, share: float, least: int = 1, mask: Any = None) -> Any:
    """As wav2vec2 draws the spans that it masks."""
    count, length = shape
    offset = np.random.rand(1).item()

    def spans(size: int) -> int:
        return max(int(share * size + offset), least)

    found = np.zeros((count, length), dtype=bool)
    for row in range(count):
        drawn = np.random.choice(np.arange(length), spans(length), replace=False)
        found[row, drawn] = True
    if np.any(found.sum(-1) == 0) or mask is not None:
        raise ValueError("nothing is masked")
    return found


def masks(x: Tensor) -> Any:
    y = x * 2
    mask = torch.tensor(masked_spans(x.shape, 0.5))
    return torch.where(mask, y, -y)


def tells_twice(text: str, scale: float) -> float:
    tell(text)
    tell(f"{text} again")
    return float(scale * SCALES["two"][0])  # type: ignore[index]


def scales(x: Tensor) -> Any:
    return (x + 1) * tells_twice("scale", 2.0) - 1


def draws(names: list[str], sizes: tuple[int, ...]) -> list[Any]:
    import math

    tell(f"{len(names)}")
    tell("drawn")
    return [random.random() * math.prod(sizes) for _ in names]


def draws_for_names(x: Tensor) -> Any:
    first, second = draws(["a", "b"], (2, 3))
    return x * first + second


def makes_a_function(factor: int) -> Callable[[Tensor], Tensor]:
    tell("one")
    tell("two")
    return lambda x: x * factor


def calls_what_was_made(x: Tensor) -> Any:
    return makes_a_function(3)(x + 1) - 1


WITHOUT: dict[Callable[..., Any], int] = {
    masks: 2,
    scales: 2,
    draws_for_names: 3,  # numbers that change become symbolic
    calls_what_was_made: 2,
}


@pytest.mark.parametrize("fn", WITHOUT, ids=lambda fn: fn.__name__)
def test_a_function_without_tensors_gives_what_plain_python_gives(fn: Callable[..., Any]) -> None:
    assert_same(fn, stator.compile(fn, backend="eager"), lambda: (torch.ones(3, 4),), calls=4)


@pytest.mark.parametrize("fn", WITHOUT, ids=lambda fn: fn.__name__)
def test_a_function_without_tensors_costs_one_break(fn: Callable[..., Any]) -> None:
    compiled = stator.compile(fn, backend="eager")
    for _ in range(4):
        compiled(torch.ones(3, 4))
    assert compiled.report.entry_count == WITHOUT[fn]
    assert len(compiled.report.breaks) == 1


def test_an_exception_of_it_meets_the_handler_of_the_program() -> None:
    def fn(x: Tensor) -> Any:
        try:
            masked_spans(x.shape, 0.5, mask="all")
        except ValueError as error:
            entry: Any = error.__traceback__
            return x + 1, str(error), entry.tb_next.tb_frame.f_code.co_name
        return x

    assert_same(fn, stator.compile(fn, backend="eager"), lambda: (torch.ones(3, 4),), calls=3)


def applies_global_layer(text: str) -> Any:
    tell(text)
    y = LAYER(torch.ones(2, 4)).relu()
    tell(text)
    return y.sum()


def applies_layer_of_default(text: str, layer: nn.Module = LAYER) -> Any:
    tell(text)
    y = layer.weight.relu()  # type: ignore[operator]
    tell(text)
    return y.sum()


def applies_argument(text: str, parts: Any) -> Any:
    tell(text)
    y = parts[0].relu()
    tell(text)
    return y.sum()


def of_closure() -> Callable[[str], Any]:
    layer = LAYER

    def applies(text: str) -> Any:
        tell(text)
        y = layer.weight.relu()
        tell(text)
        return y.sum()

    return applies


def calls_another(text: str) -> Any:
    return applies_global_layer(text)


applies_layer_of_closure = of_closure()


@pytest.mark.parametrize(
    "call",
    [
        lambda x: applies_global_layer("a"),
        lambda x: applies_layer_of_default("a"),
        lambda x: applies_argument("a", [x]),
        lambda x: applies_layer_of_closure("a"),
        lambda x: calls_another("a"),
    ],
    ids=["global", "default", "list", "closure", "callee"],
)
def test_a_function_that_can_reach_a_tensor_is_captured(call: Callable[[Tensor], Any]) -> None:
    def fn(x: Tensor) -> Any:
        return call(x * 2) + 1

    counting = Counting()
    compiled = stator.compile(fn, backend=counting)
    for _ in range(2):
        torch.testing.assert_close(compiled(torch.ones(2, 4)), fn(torch.ones(2, 4)))
    targets = [str(node.target) for graph in counting.graphs for node in graph.graph.nodes]
    assert any("relu" in target for target in targets)


def test_classes_that_a_function_makes_are_captured() -> None:
    def makes_a_class(factor: int) -> Any:
        tell("one")

        class Scale:
            def of(self, x: Tensor) -> Tensor:
                return x * factor

        return Scale

    def fn(x: Tensor) -> Any:
        return makes_a_class(2)().of(x + 1)

    compiled = stator.compile(fn, backend="eager")
    for _ in range(4):
        assert compiled(torch.ones(2)).tolist() == [4.0, 4.0]
    assert compiled.report.entry_count == 2
