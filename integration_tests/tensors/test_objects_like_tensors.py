"""Objects that are no tensors, of classes with `__torch_function__`: functions and methods of torch
are theirs, wherever they stand among the arguments."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import stator
import torch
import torch.nn.functional as F
from torch import Tensor

from integration_tests.support.oracle import assert_same

HEARD: list[Any] = []
untyped: Any = torch
graph_break: Any = stator.graph_break


class Quantity:
    """A tensor with a unit."""

    def __init__(self, data: Any, unit: str = "m") -> None:
        self.data = data
        self.unit = unit

    @classmethod
    def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        HEARD.append((func.__name__, [each.__name__ for each in types], kwargs and sorted(kwargs)))
        if func is torch.cos:
            return NotImplemented
        named = {name: bare(value) for name, value in (kwargs or {}).items()}
        return cls(func(*map(bare, args), **named), "of " + func.__name__)


class Length(Quantity):
    """A class below: its override is first."""


class Declining:
    @classmethod
    def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        HEARD.append(("declined", func.__name__))
        return NotImplemented


class Without:
    __torch_function__: Any = torch._C._disabled_torch_function_impl


def bare(value: Any) -> Any:
    if isinstance(value, list | tuple):
        return type(value)(map(bare, value))
    return value.data if isinstance(value, Quantity) else value


def without_overrides(x: Tensor, q: Any) -> Any:
    with torch._C.DisableTorchFunctionSubclass():
        return torch.add(x, q)


def in_a_module(x: Tensor, q: Any) -> Any:
    return torch.nn.functional.layer_norm(q, (3,)), torch.nn.ReLU()(q)


CAPTURED: dict[str, Callable[[Any, Any], Any]] = {
    "a function": torch.add,
    "a keyword": lambda x, q: torch.clamp(x, min=q),
    "a method of a tensor": lambda x, q: x.add(q),
    "an operator": lambda x, q: x * q,
    "a reflected operator": lambda x, q: q - x,
    "a comparison": lambda x, q: x < q,
    "a method in place": lambda x, q: x.clone().add_(q),
    "in a list": lambda x, q: torch.stack([x, q], dim=0),
    "in a tuple by name": lambda x, q: torch.cat(tensors=(q, q)),
    "a function in Python": lambda x, q: F.relu(q),
    "one that C has": lambda x, q: F.linear(q, x),
    "einsum": lambda x, q: torch.einsum("ij,kj->ik", q, x),
    "no operand": lambda x, q: torch.zeros_like(q),
    "a new one": lambda x, q: untyped.mul(Quantity(x * 2), 3),
    "the class below first": lambda x, q: untyped.add(q, Length(x)),
    "chained": lambda x, q: torch.sum(torch.stack([torch.mul(q, 2), x]), dim=0),
    "in a module": in_a_module,
    "a query": lambda x, q: (torch.is_tensor(q), torch.overrides.has_torch_function((x, q))),
}
OTHERS: dict[str, Callable[[Any, Any], Any]] = {
    "one declines, the other cannot": lambda x, q: untyped.stack([Declining(), q]),
    "none implements it": lambda x, q: torch.cos(q),
    "switched off": lambda x, q: untyped.mul(Without(), x),
    "an index": lambda x, q: x[q],
    "disabled by hand": without_overrides,
}


def given() -> tuple[Tensor, Quantity]:
    x = torch.linspace(-1, 1, 6).reshape(2, 3)
    return x, Quantity(x + 1)


def heard(program: Callable[..., Any]) -> Callable[..., Any]:
    """The program, with what the overrides heard."""

    def run(x: Tensor, q: Any) -> Any:
        HEARD.clear()
        return program(x, q), list(HEARD)

    return run


@pytest.mark.parametrize("title", CAPTURED)
def test_overrides_are_captured(title: str) -> None:
    program = heard(CAPTURED[title])
    program(*given())  # none of them raises
    assert_same(program, stator.compile(program, backend="eager", fullgraph=True), given)


@pytest.mark.parametrize("title", CAPTURED)
def test_overrides_are_heard_over_a_break(title: str) -> None:
    def program(x: Tensor, q: Any) -> Any:
        graph_break()
        return CAPTURED[title](x, q), graph_break()

    program = heard(program)
    assert_same(program, stator.compile(program, backend="eager"), given)


@pytest.mark.parametrize("title", OTHERS)
def test_what_is_not_captured_is_right(title: str) -> None:
    program = heard(OTHERS[title])
    assert_same(program, stator.compile(program, backend="eager"), given)


def test_an_override_that_is_replaced_is_noticed() -> None:
    class Replaced(Quantity):
        pass

    replaced: Any = Replaced
    program = heard(lambda x, q: torch.add(x, replaced(q.data)))
    compiled = stator.compile(program, backend="eager", fullgraph=True)
    assert_same(program, compiled, given)

    replaced.__torch_function__ = classmethod(lambda cls, *rest: 3)
    assert_same(program, compiled, given)


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
def test_operators_below_an_override_are_in_the_graph(backend: str) -> None:
    program = heard(lambda x, q: torch.stack([torch.mul(q, 2), x]).data.sum())
    compiled: Any = stator.compile(program, backend=backend, fullgraph=True)
    assert_same(program, compiled, given)
    assert compiled.report.entries[0].op_count == 3
