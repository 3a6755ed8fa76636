"""Subclasses of `functools.partial`, and effect handlers that are built from them."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import stator
import torch
from torch import Tensor

STACK: list[Handler] = []


class Bound(functools.partial[Any]):
    """A slot hides the attribute of the base class: calls use the latter."""

    __slots__ = ("func",)

    def __init__(self, func: Callable[..., Any]) -> None:
        self.func = func  # type: ignore[misc]

    def __get__(self, instance: object, owner: type | None = None) -> Any:
        return self if instance is None else functools.partial(self.func, instance)


class Handler:
    """Records or replaces what a model samples, while it is on the stack."""

    def __init__(self, values: dict[str, Tensor] | None = None) -> None:
        self.values = values or {}
        self.trace: dict[str, Tensor] = {}

    def __call__(self, function: Callable[..., Any]) -> Bound:
        return Bound(functools.partial(within, self, function))

    def __enter__(self) -> Handler:
        STACK.append(self)
        return self

    def __exit__(self, *error: object) -> None:
        STACK.remove(self)

    def process(self, name: str, value: Tensor) -> Tensor:
        self.trace[name] = value = self.values.get(name, value)
        return value


def within(handler: Handler, function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    with handler:
        return function(*args, **kwargs)


def sample(name: str, mean: Tensor) -> Tensor:
    value = mean + torch.randn(mean.shape)
    for handler in reversed(STACK):
        value = handler.process(name, value)
    return value


def model(data: Tensor, scale: float = 1.0) -> Tensor:
    location = sample("location", data.mean() * scale)
    return sample("observed", location.expand(data.shape))


def traced(handler: Handler, function: Callable[..., Any], data: Tensor) -> Any:
    result = handler(function)(data, scale=2.0)
    return result, dict(handler.trace)


def inferred(guide: Callable[..., Any], data: Tensor) -> Any:
    _, values = traced(Handler(), guide, data)
    return traced(Handler({"location": values["location"]}), Handler()(model), data)


def same(function: Callable[..., Any], *given: Any) -> None:
    compiled = stator.compile(function, backend="eager")
    for number in range(3):
        torch.manual_seed(number)
        expected = function(*given)
        torch.manual_seed(number)
        torch.testing.assert_close(compiled(*given), expected, rtol=0, atol=0)
        assert not STACK


def test_model_that_is_traced_through_effect_handlers() -> None:
    same(traced, Handler(), model, torch.ones(3))
    same(inferred, model, torch.arange(4.0))


def test_call_of_a_partial_whose_class_hides_its_function() -> None:
    bound = Bound(functools.partial(within, Handler(), model))
    same(lambda data: (bound(data), bound.func(data, scale=3.0), len(bound.args)), torch.ones(3))


class Layer:
    doubled = Bound(lambda self, x: x * self.factor)
    factor = 2


def test_partial_as_a_method() -> None:
    same(lambda layer, x: layer.doubled(x), Layer(), torch.ones(2))
