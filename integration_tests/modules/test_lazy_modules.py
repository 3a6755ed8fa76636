"""Lazy modules: a compiled one is one graph from its first call on.

A call that makes parameters of modules inside of the compiled one runs eagerly; the calls after it
are one graph.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import stator
import torch
from torch import Tensor, nn
from torch.nn.modules.lazy import LazyModuleMixin

from integration_tests.support.counting import Counting


class Broken(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = nn.LazyLinear(4), nn.LazyLinear(2)

    def forward(self, x: Tensor) -> Any:
        y = nn.functional.dropout(self.first(x), 0.5)
        stator.graph_break()
        return self.second(y)


class Around(nn.Module):
    """A module around a lazy one."""

    def __init__(self) -> None:
        super().__init__()
        self.inner = nn.LazyConv1d(2, 3, padding=1)

    def forward(self, x: Tensor) -> Any:
        return self.inner(x) * 2


def half_initialized() -> nn.Module:
    model = nn.Sequential(nn.LazyLinear(4), nn.ReLU(), nn.LazyLinear(2))
    model[0](torch.ones(2, 6))
    return model


MODELS: dict[str, tuple[Callable[[], nn.Module], tuple[int, ...]]] = {
    "linear": (lambda: nn.LazyLinear(3), (2, 6)),
    "several": (lambda: nn.Sequential(nn.LazyLinear(4), nn.Tanh(), nn.LazyLinear(2)), (2, 6)),
    "convolution and normalization": (
        lambda: nn.Sequential(nn.LazyConv2d(4, 3), nn.LazyBatchNorm2d(), nn.Flatten()),
        (2, 3, 6, 6),
    ),
    "random numbers before": (lambda: nn.Sequential(nn.Dropout(0.5), nn.LazyLinear(3)), (2, 6)),
    "half initialized": (half_initialized, (2, 6)),
    "around another": (Around, (2, 3, 6)),
}


def state_of(model: nn.Module) -> Any:
    hooks = [len(module._forward_pre_hooks) for module in model.modules()]
    return hooks, {name: value.clone() for name, value in model.state_dict().items()}


def run(make: Callable[[], nn.Module], shape: tuple[int, ...], backend: Any, **options: Any) -> Any:
    torch.manual_seed(0)
    model = make()
    called: Any = model if backend is None else stator.compile(model, backend=backend, **options)
    results = []
    for step in range(4):
        result = called(torch.linspace(-1, 1, torch.Size(shape).numel()).reshape(shape) + step)
        result.sum().backward()
        results += [result.detach(), [parameter.grad for parameter in model.parameters()]]
    return model, results, state_of(model), torch.get_rng_state()


@pytest.mark.parametrize("title", MODELS)
def test_calls_after_the_first_are_one_graph(title: str) -> None:
    counting = Counting()
    found = run(*MODELS[title], counting, fullgraph=True)
    assert counting.count == 1
    assert not any(isinstance(module, LazyModuleMixin) for module in found[0].modules())
    torch.testing.assert_close(found[1:], run(*MODELS[title], None)[1:])


def test_lazy_module_behind_a_break() -> None:
    found = run(Broken, (2, 6), "eager")
    torch.testing.assert_close(found[1:], run(Broken, (2, 6), None)[1:])


def test_lazy_module_made_in_each_call_is_a_break() -> None:
    def f(x: Tensor) -> Any:
        torch.manual_seed(0)
        return nn.LazyLinear(2)(x).sin() + x.sum()

    compiled = stator.compile(f, backend="eager")
    for step in range(8):
        x = torch.ones(2, 3) + step
        torch.testing.assert_close(compiled(x), f(x))


def first_call(model: nn.Module, backend: Any, *args: Any) -> Any:
    """Call a model once; return the result, what it has become and the random state."""
    torch.manual_seed(0)
    called: Any = model if backend is None else stator.compile(model, backend=backend)
    return called(*args), state_of(model), torch.get_rng_state()


@pytest.mark.parametrize("make", [lambda: nn.LazyLinear(3), lambda: nn.LazyConv1d(2, 3)])
def test_first_call_of_a_lazy_module_is_captured(make: Callable[[], nn.Module]) -> None:
    counting, x = Counting(), torch.linspace(-1, 1, 24).reshape(2, 3, 4)
    found = first_call(make(), counting, x)
    torch.testing.assert_close(found, first_call(make(), None, x))
    assert counting.count == 1


class Failing(nn.LazyLinear):
    """A lazy module that cannot be initialized, and counts the attempts."""

    attempts = 0

    def initialize_parameters(self, *args: Any) -> None:
        self.attempts += 1
        raise ValueError(f"attempt {self.attempts}")


def test_initialization_that_raises_runs_once() -> None:
    model = Failing(3)
    compiled = stator.compile(model, backend="eager")
    with pytest.raises(ValueError, match="attempt 1"):
        compiled(torch.ones(2, 3))
    assert model.attempts == 1


@pytest.mark.parametrize("prepend", [False, True])
def test_hooks_run_beside_the_initialization_in_their_order(prepend: bool) -> None:
    seen: list[bool] = []

    def hook(module: nn.Module, args: Any) -> Any:
        seen.append(isinstance(module, LazyModuleMixin))
        return args[0] * 2

    results = []
    for backend in (None, "eager"):
        model = nn.LazyLinear(3)
        model.register_forward_pre_hook(hook, prepend=prepend)
        results.append(first_call(model, backend, torch.ones(2, 3)))
    torch.testing.assert_close(*results)
    assert seen == [prepend, prepend]
