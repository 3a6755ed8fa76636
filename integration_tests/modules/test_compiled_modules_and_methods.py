"""Compiled objects beyond their call: `forward` of a compiled module, and methods that decorators
compile."""

from __future__ import annotations

import copy
import inspect
from typing import Any

import pytest
import stator
import torch
from torch import Tensor, nn

X = torch.ones(2, 3)


class Scaled(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(3, 3)

    def forward(self, x: Tensor, scale: float = 2.0) -> Tensor:
        y: Tensor = self.layer(x) * scale
        return y


def compiled_module(**options: Any) -> tuple[Any, Any]:
    torch.manual_seed(0)
    model = Scaled()
    return model, stator.compile(model, backend="eager", **options)


def test_forward_of_a_compiled_module_runs_compiled() -> None:
    model, compiled = compiled_module(fullgraph=True)
    for _ in range(3):
        assert compiled.forward(X, scale=3.0).equal(model.forward(X, scale=3.0))
    assert compiled.forward.report.graph_count == 1
    assert compiled.report.graph_count == 0


def test_forward_calls_no_hooks_as_that_of_the_module() -> None:
    model, compiled = compiled_module()
    called: list[str] = []
    model.register_forward_hook(lambda *_: called.append("hook"))
    compiled.forward(X)
    assert called == []
    compiled(X)
    assert called == ["hook"]


def test_forward_has_the_signature_of_the_original() -> None:
    model, compiled = compiled_module()
    assert inspect.signature(compiled.forward) == inspect.signature(model.forward)
    assert type(compiled).forward is Scaled.forward


def test_a_forward_that_the_instance_has_goes_first() -> None:
    model, compiled = compiled_module()
    model.forward = lambda x: x + 1
    assert compiled.forward(X).equal(X + 1)
    assert compiled(X).equal(X + 1)


def test_forward_of_a_copy_computes_with_the_weights_of_the_copy() -> None:
    model, compiled = compiled_module()
    other = copy.deepcopy(compiled)
    with torch.no_grad():
        other.layer.weight.zero_()
    assert compiled.forward(X).equal(model.forward(X))
    assert not other.forward(X).equal(model.forward(X))


def test_forward_of_a_compiled_module_is_captured_in_another_region() -> None:
    model, inner = compiled_module()
    outer = stator.compile(lambda x: inner.forward(x) + 1, backend="eager", fullgraph=True)
    assert outer(X).equal(model.forward(X) + 1)


def test_gradients_pass_through_forward() -> None:
    model, compiled = compiled_module()
    compiled.forward(X).sum().backward()
    given = model.layer.weight.grad.clone()
    model.zero_grad()
    model.forward(X).sum().backward()
    assert given.equal(model.layer.weight.grad)


compile_it = stator.compile(backend="eager")
"""One decorator for several functions."""


class Methods:
    bonus = 1.0

    @compile_it
    def plain(self, x: Tensor) -> Tensor:
        return x + self.bonus

    @staticmethod
    @compile_it
    def static(x: Tensor) -> Tensor:
        return x + 2

    @compile_it
    @staticmethod
    def static_inside(x: Tensor) -> Tensor:
        return x + 2

    @classmethod
    @compile_it
    def of_class(cls, x: Tensor) -> Tensor:
        return x + cls.bonus

    @compile_it
    @classmethod
    def of_class_inside(cls, x: Tensor) -> Tensor:
        return x + cls.bonus

    @torch.no_grad()
    @compile_it
    def without_gradients(self, x: Tensor) -> Tensor:
        return x * self.bonus

    @compile_it
    @torch.no_grad()
    def without_gradients_inside(self, x: Tensor) -> Tensor:
        return x * self.bonus

    @compile_it
    @torch.autocast("cpu", dtype=torch.bfloat16)  # type: ignore[untyped-decorator]
    def cast(self, x: Tensor) -> Tensor:
        return x @ x.T * self.bonus


class Inheriting(Methods):
    bonus = 3.0


NAMES = [name for name in vars(Methods) if not name.startswith("_") and name != "bonus"]


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("cls", [Methods, Inheriting])
def test_a_decorated_method_computes_what_the_method_does(name: str, cls: Any) -> None:
    expected = {
        "static": X + 2,
        "static_inside": X + 2,
        "cast": (X @ X.T).bfloat16() * cls.bonus,
        "without_gradients": X * cls.bonus,
        "without_gradients_inside": X * cls.bonus,
    }.get(name, X + cls.bonus)
    x = X.clone().requires_grad_(name.startswith("without"))
    for _ in range(2):
        given = getattr(cls(), name)(x)
        assert given.equal(expected)
        assert given.dtype == expected.dtype
        assert not given.requires_grad


@pytest.mark.parametrize("name", NAMES)
def test_a_decorated_method_is_captured_in_another_region(name: str) -> None:
    owner = Methods()
    outer = stator.compile(lambda x: getattr(owner, name)(x) + 1, backend="eager", fullgraph=True)
    assert outer(X).equal(getattr(owner, name)(X) + 1)


def test_a_decorated_method_compiles_once_for_all_instances_alike() -> None:
    class Owner:
        def __init__(self, weight: Tensor) -> None:
            self.weight = weight

        @stator.compile(backend="eager")
        def method(self, x: Tensor) -> Tensor:
            return x * self.weight

    for number in range(4):
        weight = torch.full((3,), float(number))
        assert Owner(weight).method(X).equal(X * weight)
    method: Any = Owner.method
    assert method.report.graph_count == 1
