"""Parameters and layers that a region makes: values, gradients, memory and identity are those of
plain Python."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import pytest
import stator
import torch
from torch import Tensor, nn
from torch.utils._pytree import tree_leaves

X = torch.linspace(-1, 1, 6).reshape(2, 3)
Program = Callable[[Tensor], Any]
CAPTURED: dict[str, Program] = {}
BROKEN: dict[str, Program] = {}


def captured(fn: Program) -> Program:
    CAPTURED[fn.__name__.replace("_", " ")] = fn
    return fn


def broken(fn: Program) -> Program:
    BROKEN[fn.__name__.replace("_", " ")] = fn
    return fn


@captured
def a_layer_that_is_dropped(x: Tensor) -> Any:
    return nn.Linear(3, 3)(x)


@captured
def a_layer_that_is_returned(x: Tensor) -> Any:
    layer = nn.Linear(3, 3)
    return layer(x), layer


@broken
def a_parameter_of_an_input(x: Tensor) -> Any:
    return nn.Parameter(x)


@captured
def a_parameter_without_gradients(x: Tensor) -> Any:
    p = nn.Parameter(x * 2, requires_grad=False)
    return p, p * x


@captured
def writes_to_the_tensor_that_it_was_made_of(x: Tensor) -> Any:
    w = x * 2
    p = nn.Parameter(w)
    with torch.no_grad():
        w.add_(1)
    return p, p.sin(), w.detach()


@broken
def writes_to_memory_of_an_input(x: Tensor) -> Any:
    p = nn.Parameter(x.detach())
    with torch.no_grad():
        p.mul_(3)
    return p * 2, p


@captured
def functions_of_nn_init(x: Tensor) -> Any:
    layer = nn.Linear(3, 2)
    nn.init.xavier_uniform_(layer.weight)
    nn.init.constant_(layer.bias, 0.5)
    nn.init.normal_(layer.weight, std=2.0)
    nn.init.uniform_(layer.bias)
    nn.init.orthogonal_(layer.weight)
    nn.init.kaiming_normal_(layer.weight)
    return layer(x).relu(), layer


@captured
def layers_with_buffers(x: Tensor) -> Any:
    model = nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4), nn.ReLU(), nn.Linear(4, 2))
    return model(x), model


@captured
def shared_weights(x: Tensor) -> Any:
    a, b = nn.Linear(3, 3), nn.Linear(3, 3)
    b.weight = a.weight
    return b(a(x)), a, b, a.weight is b.weight


@captured
def a_write_between_two_uses(x: Tensor) -> Any:
    p = nn.Parameter(torch.ones(3))
    y = p * x
    with torch.no_grad():
        p.mul_(2)
    return y.detach(), p * x, p


@captured
def what_is_known_of_a_parameter(x: Tensor) -> Any:
    p = nn.Parameter(torch.ones(3, 3))
    p.tag = 3  # type: ignore[attr-defined]
    flags = p.is_leaf, p.requires_grad, p.grad_fn, p.grad, isinstance(p, nn.Parameter), type(p)
    same = p.contiguous() is p, p.detach() is p, p.data.requires_grad
    return flags, same, p.shape, p.tag, p.T @ x.T, p, p.data * 2  # type: ignore[attr-defined]


@captured
def made_without_gradients(x: Tensor) -> Any:
    with torch.no_grad():
        layer = nn.Linear(3, 3)
        y = layer(x)
    return y, layer(x), layer


@captured
def parameters_in_a_list(x: Tensor) -> Any:
    kept = nn.ParameterList([nn.Parameter(torch.full((3,), float(i))) for i in range(3)])
    return sum(p * x for p in kept), kept


@captured
def a_copy_of_a_parameter(x: Tensor) -> Any:
    p = nn.Parameter(x * 1)
    q = copy.deepcopy(p)
    return p, q, p is q, p * 2 + q


@captured
def recurrent_and_attention_layers(x: Tensor) -> Any:
    lstm, attention = nn.LSTM(3, 4), nn.MultiheadAttention(4, 2)
    q = lstm(x[None])[0]
    return attention(q, q, q)[0], lstm, attention


@broken
def a_parameter_over_a_break(x: Tensor) -> Any:
    p = nn.Parameter(x * 2)
    y = p.sin()
    stator.graph_break()
    return y + p, p


@broken
def an_identity_matrix_as_weight(x: Tensor) -> Any:
    layer = nn.Linear(3, 3)
    nn.init.eye_(layer.weight)
    return layer(x), layer


@broken
def a_write_with_gradients(x: Tensor) -> Any:
    p = nn.Parameter(torch.zeros(3))
    p.add_(1)
    return p


def described(program: Program, seed: int) -> Any:
    """What can be seen of the results: with gradients and memory, after a backward."""
    torch.manual_seed(seed)
    x = X.clone().requires_grad_()
    try:
        leaves = tree_leaves(program(x))
    except RuntimeError as error:
        return type(error), str(error)
    modules = [each for each in leaves if isinstance(each, nn.Module)]
    tensors = [each for each in leaves if isinstance(each, Tensor)]
    tensors += [p for module in modules for p in module.parameters()]
    trained = [(each**2).sum() for each in tensors if each.requires_grad]
    if trained:
        torch.autograd.backward(torch.stack(trained).sum())
    facts = [(type(each), each.requires_grad, each.is_leaf) for each in tensors]
    places = [each.untyped_storage().data_ptr() for each in (x, *tensors)]
    shared = [[places.index(place) for place in places]]
    values = [each.detach().clone() for each in tensors]
    gradients = [each.grad for each in (x, *tensors) if each.is_leaf]
    rest = [each for each in leaves if not isinstance(each, Tensor | nn.Module)]
    return facts, shared, values, gradients, rest, torch.rand(1)


def alike(given: Any, expected: Any) -> bool:
    if isinstance(expected, Tensor):
        return isinstance(given, Tensor) and torch.allclose(given, expected, equal_nan=True)
    return bool(given == expected)


def check(program: Program, backend: str) -> Any:
    compiled = stator.compile(program, backend=backend)
    for seed in range(3):
        expected, given = described(program, seed), described(compiled, seed)
        pairs = zip(tree_leaves(given), tree_leaves(expected), strict=True)
        assert all(alike(*pair) for pair in pairs), (given, expected)
    return compiled.report


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
@pytest.mark.parametrize("name", CAPTURED)
def test_a_parameter_made_in_a_region_is_captured(name: str, backend: str) -> None:
    report = check(CAPTURED[name], backend)
    assert (report.graph_count, len(report.breaks)) == (1, 0)


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
@pytest.mark.parametrize("name", BROKEN)
def test_a_parameter_made_in_a_region_that_breaks(name: str, backend: str) -> None:
    assert len(check(BROKEN[name], backend).breaks) == 1


def test_each_call_makes_other_parameters() -> None:
    compiled = stator.compile(lambda x: nn.Parameter(x * 2), backend="eager", fullgraph=True)
    first, second = compiled(X), compiled(X)
    assert first is not second
    with torch.no_grad():
        first.zero_()
    assert second.equal(X * 2)
    assert compiled.report.graph_count == 1


def test_parameters_of_varying_size_have_the_size_of_the_call() -> None:
    def program(x: Tensor) -> Tensor:
        return nn.Parameter(x * 2) * 3

    compiled = stator.compile(program, backend="eager")
    for size in (2, 3, 4, 5):
        x = torch.arange(float(size))
        assert compiled(x).equal(program(x))
    assert len(compiled.report.breaks) == 0
