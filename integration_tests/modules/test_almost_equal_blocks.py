"""Stacks of blocks of which some differ, in the ways that `test_equal_blocks` has not; blocks of
several kinds; and the report about blocks that are interpreted each."""

from collections.abc import Iterator
from functools import partial
from typing import Any, cast

import pytest
import stator
import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

from integration_tests.modules.test_equal_blocks import DEPTH, SIZE, Block, Stack, assert_as_plain


def selected_by_index(layers: Any, index: int) -> None:
    layers[index].activation = lambda x: x * torch.sin(x) if index % 2 else F.relu(x)


def break_inside(layers: Any, index: int) -> None:
    def activation(x: Tensor) -> Tensor:
        print(end="")
        return F.gelu(x)

    layers[index].activation = activation


def change_state(layers: Any, index: int) -> None:
    state = {"calls": 0}

    def activation(x: Tensor) -> Tensor:
        state["calls"] += 1
        return F.gelu(x) * state["calls"]

    layers[index].activation = activation


def write_buffer(layers: Any, index: int) -> None:
    def activation(x: Tensor) -> Tensor:
        layers[index].offset.add_(1.0)
        return F.gelu(x)

    layers[index].activation = activation


def catch_error(layers: Any, index: int) -> None:
    def activation(x: Tensor) -> Tensor:
        try:
            return x @ x
        except RuntimeError:
            return F.gelu(x) * 2.0

    layers[index].activation = activation


def draw_in_activation(layers: Any, index: int) -> None:
    layers[index].activation = F.dropout


class OtherBlock(Block):
    def forward(self, x: Tensor, mask: Tensor | None = None) -> Tensor:
        return super().forward(x, mask).sin()


def other_class(layers: Any, index: int) -> None:
    layers[index].__class__ = OtherBlock


def norm_of_weight(layers: Any, index: int) -> None:
    nn.utils.parametrizations.weight_norm(layers[index].up)


def checkpointed(layers: Any, index: int) -> None:
    forward = layers[index].forward
    layers[index].forward = lambda x: checkpoint(forward, x, use_reentrant=False)


def without_gradients(layers: Any, index: int) -> None:
    layers[index].activation = torch.no_grad()(F.gelu)


DIFFERENCES = [
    *(selected_by_index, break_inside, change_state, write_buffer, catch_error),
    *(draw_in_activation, other_class, norm_of_weight, checkpointed, without_gradients),
]


SAMPLE = [write_buffer]


def cases() -> Iterator[Any]:
    """Yield each difference at each block; all but one are slow."""
    for difference in DIFFERENCES:
        for index in range(DEPTH):
            marks = [] if index == 1 and difference in SAMPLE else [pytest.mark.slow]
            yield pytest.param(difference, index, marks=marks)


@pytest.mark.parametrize(("difference", "index"), [*cases()])
def test_one_block_that_differs_is_as_in_python(difference: Any, index: int) -> None:
    assert_as_plain(lambda model: difference(model.layers, index), None)


@pytest.mark.slow
@pytest.mark.parametrize("index", range(DEPTH))
@pytest.mark.parametrize("difference", DIFFERENCES)
def test_one_block_that_differs_from_the_second_call_on(difference: Any, index: int) -> None:
    assert_as_plain(None, lambda model: difference(model.layers, index))


def repeated_calls(model: nn.Module) -> tuple[str, ...]:
    compiled: Any = stator.compile(model, backend="eager")
    with torch.no_grad():
        compiled(torch.ones(2, SIZE))
    found: tuple[str, ...] = compiled.report.entries[0].equal_calls
    return found


def test_blocks_of_several_kinds_in_turn_are_each_interpreted_once() -> None:
    model = Stack(depth=9)
    for index, layer in enumerate(model.layers):
        layer.scale = float(index % 3)  # type: ignore[assignment]
    lines = repeated_calls(model)
    assert "calls of Block that were recorded like an earlier one: 6" in lines


class Layer(nn.Module):
    def __init__(self, size: int, result: int) -> None:
        super().__init__()
        self.linear = nn.Linear(size, result)

    def forward(self, x: Tensor) -> Tensor:
        return cast(Tensor, self.linear(x)).tanh()


def test_stages_of_other_sizes_are_each_interpreted_once() -> None:
    sizes = [(size, size + step) for size in (8, 16, 24, 32) for step in (0, 0, 0, 8)]
    model = Stack(lambda index: Layer(*sizes[index]), len(sizes))
    lines = repeated_calls(model)
    assert "calls of Layer that were recorded like an earlier one: 8" in lines


class Caching(nn.Module):
    def __init__(self, index: int) -> None:
        super().__init__()
        self.part = nn.Linear(SIZE, SIZE)

    def forward(self, x: Tensor, cache: list[Tensor]) -> Tensor:
        cache.append(self.part(x))
        return x + cache[-1]


class CachingStack(Stack):
    def __init__(self) -> None:
        super().__init__(Caching)

    def forward(self, x: Tensor) -> Tensor:
        cache: list[Tensor] = []
        for layer in self.layers:
            x = layer(x, cache)
        return x


class Counted(nn.Module):
    def __init__(self, index: int) -> None:
        super().__init__()
        self.count = 0

    def forward(self, x: Tensor) -> Tensor:
        self.count += 1
        return x * 2.0


EACH = {
    "argument": (
        CachingStack,
        "calls of Caching that were interpreted each, as an argument that the program made holds "
        f"something else: {DEPTH - 1}",
    ),
    "change": (
        partial(Stack, Counted),
        f"calls of Counted that were interpreted each, as they change themselves: {DEPTH}",
    ),
}


@pytest.mark.parametrize(("make", "line"), EACH.values(), ids=EACH)
def test_the_report_names_what_has_each_block_interpreted(make: Any, line: str) -> None:
    (found,) = [each for each in repeated_calls(make()) if "interpreted each" in each]
    assert found == line
