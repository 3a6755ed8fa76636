"""Objects on the context of an `autograd.Function`: modules, functions and others, read by the
backward."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import stator
import torch
from torch import Tensor, nn
from torch.autograd import Function

from integration_tests.support.counting import Counting


class Config:
    def __init__(self, scale: float) -> None:
        self.scale = scale


torch.manual_seed(0)
LAYER = nn.Linear(3, 3)
LAYERS = nn.ModuleList([LAYER, nn.Linear(3, 3)])
CONFIG = Config(3.0)


class KeepsModule(Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, layer: nn.Linear) -> Any:
        ctx.layer = layer
        ctx.save_for_backward(x)
        return layer(x)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> Any:
        (x,) = ctx.saved_tensors
        return grad @ ctx.layer.weight + x.mean(), None


class KeepsModuleInSetup(Function):
    @staticmethod
    def forward(x: Tensor, layer: nn.Linear) -> Any:
        return layer(x)

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        x, ctx.layer = inputs
        ctx.save_for_backward(x, output)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> Any:
        x, output = ctx.saved_tensors
        return grad @ ctx.layer.weight + output.sum() * x.mean(), None


class KeepsObject(Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, config: Config) -> Any:
        ctx.config = ctx.same = config
        return x * config.scale

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> Any:
        assert ctx.config is ctx.same
        return grad * ctx.config.scale, None


class KeepsFunction(Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, function: Callable[[Tensor], Tensor]) -> Any:
        ctx.function = function
        ctx.save_for_backward(x)
        return function(x)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> Any:
        (x,) = ctx.saved_tensors
        return grad * ctx.function(x), None


class KeepsContainers(Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, layers: Any) -> Any:
        ctx.layers, ctx.shape = layers, x.shape
        ctx.named = {"first": layers[0], "rows": x.shape[0]}
        return layers[1](layers[0](x))

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> Any:
        inner = grad @ ctx.layers[1].weight @ ctx.named["first"].weight
        return inner * ctx.shape[0] * ctx.named["rows"], None


class AsksForItsInputs(Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, y: Tensor) -> Any:
        ctx.save_for_backward(x, y)
        ctx.set_materialize_grads(False)
        ctx.flags = list(ctx.needs_input_grad)
        return x * y, x + y

    @staticmethod
    def backward(ctx: Any, product: Tensor | None, total: Tensor | None) -> Any:
        x, y = ctx.saved_tensors
        assert ctx.flags == list(ctx.needs_input_grad)
        gradients: list[Any] = []
        for other, needed in zip((y, x), ctx.needs_input_grad, strict=True):
            parts = [0 if product is None else product * other, 0 if total is None else total]
            gradients.append(sum(parts) if needed else None)
        return tuple(gradients)


class GivesIndices(Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Any:
        values, indices = x.sort()
        ctx.mark_non_differentiable(indices)
        ctx.save_for_backward(indices)
        return values, indices

    @staticmethod
    def backward(ctx: Any, grad: Tensor, _: Any) -> Any:
        (indices,) = ctx.saved_tensors
        return torch.zeros_like(grad).scatter(-1, indices, grad)


def applied(function: Any, *args: Any) -> Any:
    return function.apply(*args)


def scaled(x: Tensor) -> Tensor:
    return x * 3


def sorted_values(x: Tensor) -> Any:
    values, indices = applied(GivesIndices, x)
    return values * (indices + 1)


PROGRAMS: dict[str, Callable[[Any], Any]] = {
    "a module": lambda x: applied(KeepsModule, x, LAYER),
    "a module, twice": lambda x: applied(KeepsModule, applied(KeepsModule, x, LAYER), LAYERS[1]),
    "a module in setup": lambda x: applied(KeepsModuleInSetup, x, LAYER),
    "a list of modules": lambda x: applied(KeepsContainers, x, [LAYER, LAYER]),
    "a module list": lambda x: applied(KeepsContainers, x, LAYERS),
    "an object": lambda x: applied(KeepsObject, x, CONFIG),
    "a function of torch": lambda x: applied(KeepsFunction, x, torch.sin),
    "a function": lambda x: applied(KeepsFunction, x, scaled),
    "two functions": lambda x: applied(KeepsModule, x, LAYER) + applied(KeepsObject, x, CONFIG),
    "flags of inputs": lambda x: applied(AsksForItsInputs, x, x.detach())[0],
    "no gradient of one result": lambda x: applied(AsksForItsInputs, x, x * 2)[1],
    "indices": sorted_values,
}


def keeping(x: Any, layer: nn.Linear) -> Any:
    return applied(KeepsModule, x, layer)


def given() -> Tensor:
    return torch.tensor([[3.0, 1.0, 2.0], [0.5, -1.0, 4.0]], requires_grad=True)


def gradients(fn: Callable[[Any], Any]) -> Any:
    x = given()
    y = fn(x)
    torch.autograd.backward((y * y).sum())
    return y.detach(), x.grad


@pytest.mark.parametrize("backend", ["counting", "aot_eager"])
@pytest.mark.parametrize("name", PROGRAMS)
def test_backward_reads_what_forward_kept(name: str, backend: str) -> None:
    fn, counting = PROGRAMS[name], Counting()
    chosen: Any = counting if backend == "counting" else backend
    compiled = stator.compile(fn, backend=chosen, fullgraph=True)
    for _ in range(3):
        torch.testing.assert_close(gradients(compiled), gradients(fn))
    assert counting.count == (backend == "counting")


@pytest.mark.parametrize("name", [name for name in PROGRAMS if name != "indices"])
def test_second_derivatives_call_the_original_backward_on_a_complete_context(name: str) -> None:
    def second(fn: Callable[[Any], Any]) -> Any:
        x = given()
        (first,) = torch.autograd.grad((fn(x * x) ** 2).sum(), x, create_graph=True)
        torch.autograd.backward((first * first).sum())
        return first.detach(), x.grad

    fn = PROGRAMS[name]
    compiled = stator.compile(fn, backend="eager", fullgraph=True)
    torch.testing.assert_close(second(compiled), second(fn))


def test_another_module_is_another_graph_once() -> None:
    counting = Counting()
    compiled = stator.compile(keeping, backend=counting)
    for _ in range(3):
        for layer in LAYERS:
            expected = gradients(lambda x: applied(KeepsModule, x, layer))  # noqa: B023
            found = gradients(lambda x: compiled(x, layer))  # noqa: B023
            torch.testing.assert_close(found, expected)
    assert counting.count <= 2


def test_weights_replaced_in_place_are_those_that_backward_reads() -> None:
    layer = nn.Linear(3, 3)
    compiled = stator.compile(lambda x: applied(KeepsModule, x, layer), backend="eager")
    gradients(compiled)
    with torch.no_grad():
        layer.weight.mul_(2)
    expected = gradients(lambda x: applied(KeepsModule, x, layer))
    torch.testing.assert_close(gradients(compiled), expected)


def test_an_object_made_for_the_call_runs_natively() -> None:
    def fn(x: Any) -> Any:
        return applied(KeepsObject, x, Config(2.0))

    torch.testing.assert_close(gradients(stator.compile(fn, backend="eager")), gradients(fn))
    with pytest.raises(stator.Unsupported) as info:
        stator.compile(fn, backend="eager", fullgraph=True)(given())
    assert info.value.reason == "autograd-function"
