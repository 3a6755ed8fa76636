"""Subclasses of `functools.partial`, and effect handlers that are built from them."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import pytest
import stator
import torch
from torch import Tensor

from integration_tests.support.oracle import assert_same

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


def keywords_are_read(x: Tensor) -> Any:
    made = functools.partial(torch.add, x, alpha=2)
    return made(x), made.keywords, made.keywords is made.keywords, made.func is torch.add


def keywords_are_changed(x: Tensor) -> Any:
    made = functools.partial(torch.add, alpha=2)
    made.keywords["alpha"] = 3
    inner = functools.partial(made, x)
    made.keywords["alpha"] = 7
    return inner(x), made(x, x), inner.keywords


def both_leave(x: Tensor) -> Any:
    made = functools.partial(torch.add, alpha=2)
    made.keywords["alpha"] = x.shape[0]
    return made, made.keywords


def keywords_leave_first(x: Tensor) -> Any:
    made = functools.partial(torch.add, x, alpha=2)
    return made.keywords, made.args, made, made.args[0] * 2


def keywords_are_emptied(x: Tensor) -> Any:
    made = functools.partial(torch.add, alpha=2)
    del made.keywords["alpha"]
    return made(x, x), made.keywords


READING = (keywords_are_read, keywords_are_changed, both_leave, keywords_are_emptied)


@pytest.mark.parametrize("program", READING, ids=lambda each: each.__name__)
def test_keywords_of_a_new_partial(program: Callable[[Tensor], Any]) -> None:
    compiled = stator.compile(program, backend="eager", fullgraph=True)
    assert_same(program, compiled, lambda: (torch.ones(2),))


def test_parts_that_leave_before_their_partial() -> None:
    compiled = stator.compile(keywords_leave_first, backend="eager")
    assert_same(keywords_leave_first, compiled, lambda: (torch.ones(2),))


def test_keywords_of_an_existing_partial_are_changed() -> None:
    def program(x: Tensor, given: Any) -> Any:
        before = given(x, x), given.keywords["alpha"]
        given.keywords["alpha"] = 5
        return before, given(x, x), given.keywords

    compiled = stator.compile(program, backend="eager")
    assert_same(program, compiled, lambda: (torch.ones(2), functools.partial(torch.add, alpha=2)))
