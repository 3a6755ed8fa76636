"""Equal blocks that write to tensors, and results of equal blocks that are written to."""

from typing import Any, cast

import pytest
import stator
import torch
from torch import Tensor, nn

SIZE = 4


class Twice(nn.Module):
    """Gives one tensor, and one tuple, in several places."""

    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(SIZE, SIZE)

    def forward(self, x: Tensor) -> tuple[Any, ...]:
        out = self.linear(x)
        pair = out, x
        return pair, out, pair, self.linear(x)


def test_results_that_are_one_object_are_so_in_each_call() -> None:
    def program(layers: nn.ModuleList, x: Tensor) -> list[tuple[bool, ...]]:
        found: list[tuple[bool, ...]] = []
        for layer in layers:
            pair, out, again, other = layer(x)
            found.append((pair is again, pair[0] is out, pair[1] is x, other is out))
            x = out.sin()
        return found

    layers = nn.ModuleList(Twice() for _ in range(4))
    compiled: Any = stator.compile(program, backend="eager")
    assert compiled(layers, torch.ones(2, SIZE)) == program(layers, torch.ones(2, SIZE))
    assert "Twice that were recorded like an earlier one: 2" in str(compiled.report)


class Frozen(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(SIZE, SIZE).requires_grad_(False)

    def forward(self, x: Tensor) -> Tensor:
        return cast(Tensor, self.linear(x)) * 2.0


CHANGES = {
    "history": lambda out, weight: out.add_(weight),
    "shape": lambda out, weight: out.t_(),
    "dimension": lambda out, weight: out.unsqueeze_(0),
    "gradient": lambda out, weight: out.requires_grad_(),
    "view": lambda out, weight: out[0].mul_(weight),
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_results_are_like_those_of_an_earlier_call_before_it_was_written_to(change: Any) -> None:
    def program(layers: nn.ModuleList, x: Tensor, weight: Tensor) -> Any:
        found: list[Any] = []
        for layer in layers:
            out = layer(x)
            found.append((out.shape, out.stride(), out.requires_grad, out.is_leaf))
            change(out, weight)
            found.append((out.shape, out.stride(), out.requires_grad, out.is_leaf))
        return found, out.detach()

    layers, weight = nn.ModuleList(Frozen() for _ in range(4)), torch.ones(SIZE, requires_grad=True)
    compiled: Any = stator.compile(program, backend="eager")
    expected, last = program(layers, torch.ones(2, SIZE), weight)
    found, again = compiled(layers, torch.ones(2, SIZE), weight)
    assert found == expected
    assert torch.equal(again, last)


def test_an_argument_that_was_written_to_since_is_as_it_is_now() -> None:
    def program(layers: nn.ModuleList, x: Tensor, weight: Tensor) -> list[bool]:
        values = [x * 2.0 for _ in layers]
        found = []
        for index, layer in enumerate(layers):
            found.append(layer(values[index]).requires_grad)
            values[index].add_(weight)
            found.append(layer(values[index]).requires_grad)
        return found

    layers, weight = nn.ModuleList(Frozen() for _ in range(3)), torch.ones(SIZE, requires_grad=True)
    compiled: Any = stator.compile(program, backend="eager")
    expected = program(layers, torch.ones(2, SIZE), weight)
    assert expected == [False, True] * 3
    assert compiled(layers, torch.ones(2, SIZE), weight) == expected
