"""Arguments with unusual names: keywords of Python, which only `**` can pass, and `self`."""

from __future__ import annotations

import functools
import string
from collections.abc import Callable
from typing import Any

import pytest
import stator
import torch
from torch import Tensor

from integration_tests.support.counting import Counting

UNIFORM: Any = Tensor.uniform_
DRAWS: dict[str, Callable[[Any], Any]] = {
    "both": lambda x: x.uniform_(**{"from": -1, "to": 1}),
    "the second first": lambda x: x.uniform_(**{"to": 4, "from": 3}),
    "one": lambda x: x.uniform_(**{"from": -1}),
    "beside another": lambda x: x.uniform_(to=3, **{"from": 2}),
    "with a generator": lambda x: x.uniform_(generator=None, **{"from": -2}),
    "integers": lambda x: x.random_(**{"from": 2, "to": 9}),
    "integers without an end": lambda x: x.random_(**{"from": 2, "to": None}),
    "operator": lambda x: torch.ops.aten.uniform(x, **{"from": -2.0}),
    "overload": lambda x: torch.ops.aten.uniform.default(x, **{"from": -2.0}),
    "unbound": lambda x: UNIFORM(x, **{"from": 2, "to": 3}),
    "partial": functools.partial(UNIFORM, **{"from": 2, "to": 3}),
}


@pytest.mark.parametrize("name", DRAWS)
def test_numbers_are_drawn_from_the_stream_as_eagerly(name: str) -> None:
    draw, counting = DRAWS[name], Counting()
    compiled = stator.compile(lambda x: draw(x) * 2, backend=counting, fullgraph=True)
    for _ in range(3):
        torch.manual_seed(3)
        plain = torch.zeros(4)
        expected = draw(plain) * 2
        torch.manual_seed(3)
        ours = torch.zeros(4)
        assert torch.equal(compiled(ours), expected)
        assert torch.equal(ours, plain)
    assert counting.count == 1
    assert "**" not in counting.graphs[0].code


@pytest.mark.parametrize("names", [{"from": 2}, {"class": 2}, {"from": 1, "class": 2}])
def test_an_unknown_argument_raises_as_eagerly(names: dict[str, Any]) -> None:
    def fn(x: Any) -> Any:
        return x.random_(**names) + 1

    with pytest.raises(TypeError) as plain:
        fn(torch.ones(3))
    with pytest.raises(TypeError) as ours:
        stator.compile(fn, backend="eager")(torch.ones(3))
    assert str(ours.value) == str(plain.value)


def scaled(*args: Any, **options: Any) -> Any:
    return args[0] * options["from"] + options["class"]


def given(x: Tensor) -> Any:
    options: dict[str, Any] = {"from": 2, "class": 3}
    return scaled(x, **options)


def bound(x: Tensor) -> Any:
    return functools.partial(scaled, **{"from": 2, "class": 3})(x)


def stored(x: Tensor) -> Any:
    return dict(**{"from": x + 1, "class": 3})


def formatted(x: Tensor) -> Any:
    return string.Template("$from").substitute(**{"from": 2}), "{from}".format(**{"from": 3}), x + 1


@pytest.mark.parametrize("fn", [given, bound, stored, formatted])
def test_functions_take_arguments_named_like_keywords(fn: Callable[[Tensor], Any]) -> None:
    x = torch.ones(3)
    found = stator.compile(fn, backend="eager", fullgraph=True)(x)
    assert str(found) == str(fn(x))


@functools.cache
def remembered(**options: Any) -> Any:
    return options["from"] + 1


def test_a_cached_function_takes_an_argument_named_like_a_keyword() -> None:
    def fn(x: Any) -> Any:
        return x + remembered(**{"from": 2})

    compiled = stator.compile(fn, backend="eager", fullgraph=True)
    remembered.cache_clear()
    for calls in range(1, 4):
        assert torch.equal(compiled(torch.ones(3)), torch.full((3,), 4.0))
        assert remembered.cache_info().hits == calls - 1


@pytest.mark.parametrize("name", ["from", "two words", "\N{LATIN SMALL LIGATURE FI}", "plain"])
def test_a_returned_partial_has_the_arguments_it_was_made_with(name: str) -> None:
    def fn(x: Tensor) -> Any:
        return functools.partial(dict, **{name: x + 1})

    made = stator.compile(fn, backend="eager", fullgraph=True)(torch.ones(2))
    assert list(made.keywords) == [name]
    assert torch.equal(made()[name], torch.full((2,), 2.0))


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
def test_a_tensor_parameter_named_self(backend: str) -> None:
    def fn(self: Tensor, other: Tensor) -> Tensor:
        return torch.where(other > 0, self, other) * 2

    x, y = torch.ones(3), torch.tensor([-1.0, 0.0, 1.0])
    compiled = stator.compile(fn, backend=backend, fullgraph=True)
    assert torch.equal(compiled(x, y), fn(x, y))
    assert torch.equal(compiled(other=x, self=y), fn(y, x))


@pytest.mark.parametrize("operator", [torch.ops.aten.sin, torch.ops.aten.sin.default, torch.sin])
def test_an_operator_is_compiled_as_a_call_of_it(operator: Any) -> None:
    counting = Counting()
    compiled = stator.compile(operator, backend=counting, fullgraph=True)
    assert torch.equal(compiled(torch.ones(3)), torch.ones(3).sin())
    assert counting.count == 1
