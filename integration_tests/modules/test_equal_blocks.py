"""Stacks of equal blocks, and of almost equal ones: one differs, from the start or from some call
on."""

import sys
from collections.abc import Callable
from types import FrameType
from typing import Any

import pytest
import stator
import torch
import torch.nn.functional as F
from torch import Tensor, nn

SIZE, DEPTH = 8, 4


class Block(nn.Module):
    """The usual parts of a block, and one attribute of each kind that code branches on."""

    def __init__(self, index: int = 0) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(SIZE)
        self.up = nn.Linear(SIZE, 2 * SIZE)
        self.down = nn.Linear(2 * SIZE, SIZE)
        self.dropout = nn.Dropout(0.0)
        self.offset = nn.Buffer(torch.full((SIZE,), 0.5))
        self.scale = 1.0
        self.activation: Callable[[Tensor], Tensor] = F.gelu
        self.settings = {"residual": True}
        self.skip: nn.Module | None = None

    def forward(self, x: Tensor, mask: Tensor | None = None) -> Tensor:
        hidden = self.activation(self.up(self.norm(x + self.offset)))
        out = self.dropout(self.down(hidden)) * self.scale
        if mask is not None:
            out = out * mask
        if self.skip is not None:
            x = self.skip(x)
        result: Tensor = x + out if self.settings["residual"] else out
        return result


class Stack(nn.Module):
    def __init__(self, block: Callable[[int], nn.Module] = Block, depth: int = DEPTH) -> None:
        super().__init__()
        self.first = nn.Linear(SIZE, SIZE)
        self.layers = nn.ModuleList(map(block, range(depth)))

    def forward(self, x: Tensor) -> Tensor:
        x = self.first(x)
        for layer in self.layers:
            x = layer(x)
        return x


def freeze(layers: Any, index: int) -> None:
    layers[index].up.weight.requires_grad_(False)


def freeze_all(layers: Any, index: int) -> None:
    layers[index].requires_grad_(False)


def set_eval(layers: Any, index: int) -> None:
    layers[index].eval()


def set_eval_of_dropout(layers: Any, index: int) -> None:
    layers[index].dropout.eval()


def set_dropout(layers: Any, index: int) -> None:
    layers[index].dropout.p = 0.5


def double_with_casts(layers: Any, index: int) -> None:
    layers[index] = nn.Sequential(Cast(torch.float64), layers[index].double(), Cast(torch.float32))


def bfloat_with_casts(layers: Any, index: int) -> None:
    inner = layers[index].bfloat16()
    layers[index] = nn.Sequential(Cast(torch.bfloat16), inner, Cast(torch.float32))


class Cast(nn.Module):
    def __init__(self, dtype: torch.dtype) -> None:
        super().__init__()
        self.dtype = dtype

    def forward(self, x: Tensor) -> Tensor:
        return x.to(self.dtype)


def tie_to_neighbour(layers: Any, index: int) -> None:
    layers[index].up.weight = layers[index - 1].up.weight


def tie_inside(layers: Any, index: int) -> None:
    layers[index].down.weight = nn.Parameter(layers[index].up.weight.detach().t().clone())
    layers[index].norm.bias = layers[index].norm.weight


def share_block(layers: Any, index: int) -> None:
    layers[index] = layers[index - 1]


def share_buffer(layers: Any, index: int) -> None:
    layers[index].offset = layers[index - 1].offset


def buffer_is_weight(layers: Any, index: int) -> None:
    layers[index].offset = layers[index].norm.weight.detach()


def add_hook(layers: Any, index: int) -> None:
    layers[index].register_forward_hook(lambda module, given, out: out * 1.5)


def add_hook_inside(layers: Any, index: int) -> None:
    layers[index].up.register_forward_pre_hook(lambda module, given: (given[0] + 1.0,))


def add_backward_hook(layers: Any, index: int) -> None:
    layers[index].down.register_full_backward_hook(lambda module, given, out: (given[0] * 2.0,))


def add_hook_of_gradient(layers: Any, index: int) -> None:
    layers[index].up.weight.register_hook(lambda grad: grad * 3.0)


def scale(layers: Any, index: int) -> None:
    layers[index].scale = 0.5


def scale_by_int(layers: Any, index: int) -> None:
    layers[index].scale = 2


def other_activation(layers: Any, index: int) -> None:
    layers[index].activation = F.relu


def other_setting(layers: Any, index: int) -> None:
    layers[index].settings["residual"] = False


def new_settings(layers: Any, index: int) -> None:
    layers[index].settings = {"residual": 0, "more": 1}


def add_skip(layers: Any, index: int) -> None:
    layers[index].skip = nn.Linear(SIZE, SIZE)


def no_bias(layers: Any, index: int) -> None:
    layers[index].down.bias = None


def wider(layers: Any, index: int) -> None:
    layers[index].up = nn.Linear(SIZE, 3 * SIZE)
    layers[index].down = nn.Linear(3 * SIZE, SIZE)


def other_norm(layers: Any, index: int) -> None:
    layers[index].norm = nn.RMSNorm(SIZE)


def other_epsilon(layers: Any, index: int) -> None:
    layers[index].norm.eps = 0.1


def own_forward(layers: Any, index: int) -> None:
    layers[index].forward = lambda x: x * 2.0


def other_strides(layers: Any, index: int) -> None:
    weight = layers[index].up.weight
    layers[index].up.weight = nn.Parameter(weight.detach().t().contiguous().t())


def expanded_buffer(layers: Any, index: int) -> None:
    layers[index].offset = torch.ones(1).expand(SIZE)


def parameter_to_buffer(layers: Any, index: int) -> None:
    weight = layers[index].norm.weight.detach()
    del layers[index].norm.weight
    layers[index].norm.register_buffer("weight", weight)


DIFFERENCES = [
    *(freeze, freeze_all, set_eval, set_eval_of_dropout, set_dropout, double_with_casts),
    *(bfloat_with_casts, tie_to_neighbour, tie_inside, share_block, share_buffer),
    *(buffer_is_weight, add_hook, add_hook_inside, add_backward_hook, add_hook_of_gradient),
    *(scale, scale_by_int, other_activation, other_setting, new_settings, add_skip, no_bias),
    *(wider, other_norm, other_epsilon, own_forward, other_strides, expanded_buffer),
    parameter_to_buffer,
]


def steps(model: nn.Module, call: Any, change: Callable[[Any], None] | None) -> list[Any]:
    """Three training steps, with a change of the model before the second, and a call without
    gradients."""
    found: list[Any] = []
    for step in range(3):
        if step == 1 and change is not None:
            change(model)
        torch.manual_seed(step)
        x = torch.randn(2 + step // 2, SIZE)
        out = call(x)
        model.zero_grad()
        out.sin().sum().backward()
        found += [out.detach(), torch.rand(1)]
        found += [p.grad if p.grad is None else p.grad.clone() for p in model.parameters()]
    with torch.no_grad():
        found.append(call(torch.ones(2, SIZE)))
    return [*found, *(buffer.clone() for buffer in model.buffers())]


def assert_as_plain(
    start: Callable[[Any], None] | None, change: Callable[[Any], None] | None
) -> None:
    models = [made(start) for _ in range(2)]
    compiled = stator.compile(models[1], backend="eager")
    expected, found = steps(models[0], models[0], change), steps(models[1], compiled, change)
    assert len(found) == len(expected)
    for one, other in zip(found, expected, strict=True):
        assert (one is None) == (other is None)
        assert one is None or torch.equal(one, other)


def made(start: Callable[[Any], None] | None) -> Stack:
    torch.manual_seed(7)
    model = Stack()
    if start is not None:
        start(model)
    return model


@pytest.mark.slow
@pytest.mark.parametrize("index", range(DEPTH))
@pytest.mark.parametrize("difference", DIFFERENCES)
def test_one_block_that_differs_is_as_in_python(difference: Any, index: int) -> None:
    assert_as_plain(lambda model: difference(model.layers, index), None)


@pytest.mark.slow
@pytest.mark.parametrize("index", range(DEPTH))
@pytest.mark.parametrize("difference", DIFFERENCES)
def test_one_block_that_differs_from_the_second_call_on(difference: Any, index: int) -> None:
    assert_as_plain(None, lambda model: difference(model.layers, index))


def instructions(call: Callable[[], object]) -> int:
    """Count the instructions that are interpreted in a call."""
    count = 0

    def profile(frame: FrameType, event: str, argument: object) -> None:
        nonlocal count
        count += event == "call" and frame.f_code.co_qualname == "SymbolicDomain.at"

    sys.setprofile(profile)
    try:
        call()
    finally:
        sys.setprofile(None)
    return count


def interpreted(block: Callable[[int], nn.Module], depth: int) -> int:
    model = Stack(block, depth)
    compiled = stator.compile(model, backend="eager", options={"recompile_limit": depth + 8})
    return instructions(lambda: compiled(torch.ones(2, SIZE)))


def test_equal_blocks_are_interpreted_once() -> None:
    one, two, many = (interpreted(Block, depth) for depth in (1, 2, 12))
    assert many - two < 10 * 0.25 * one
    assert two < 1.5 * one
