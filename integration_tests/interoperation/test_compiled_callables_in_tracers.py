"""Compiled callables under the tracers of torch, and in operators that run Dynamo in eager code."""

from __future__ import annotations

import copy
import functools
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest
import stator
import torch
from torch._higher_order_ops.scan import scan
from torch._higher_order_ops.while_loop import while_loop as untyped_while_loop
from torch.fx.experimental.proxy_tensor import make_fx
from torch.nn.attention.flex_attention import flex_attention

X = torch.linspace(-1.0, 2.0, 4).reshape(2, 2)
Unary = Callable[[torch.Tensor], torch.Tensor]


def plus(x: torch.Tensor, shift: float = 1.0) -> torch.Tensor:
    return x.sin() + shift


class Shift:
    def __init__(self) -> None:
        self.shift = 3.0

    def method(self, x: torch.Tensor) -> torch.Tensor:
        return x.sin() + self.shift

    def __call__(self, x: torch.Tensor) -> torch.Tensor:
        return x.cos() + self.shift


class Layer(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.linear = torch.nn.Linear(2, 2)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y: torch.Tensor = self.linear(x)
        return y.sin() + 1


class Doubled(torch.nn.Module):
    def __init__(self, inner: Unary) -> None:
        super().__init__()
        self.inner = inner

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.inner(x) * 2


def subjects() -> dict[str, tuple[Any, Unary]]:
    """Return each kind of compiled callable with its original."""
    shift, layer = Shift(), Layer()
    partial = functools.partial(plus, shift=2.0)
    return {
        "function": (stator.compile(plus, backend="eager"), plus),
        "method": (stator.compile(shift.method, backend="eager"), shift.method),
        "callable": (stator.compile(shift, backend="eager"), shift),
        "partial": (stator.compile(partial, backend="eager"), partial),
        "module": (stator.compile(copy.deepcopy(layer), backend="eager"), layer),
        "in place": (stator.compile_in_place(copy.deepcopy(layer), backend="eager"), layer),
    }


def scalar(g: Unary, score: torch.Tensor) -> torch.Tensor:
    return score * g(torch.ones(2, 2)).sum()


QUERY = torch.linspace(0, 1, 8).reshape(1, 1, 4, 2)

while_loop: Any = untyped_while_loop
jit: Any = torch.jit

USES: dict[str, Callable[[Unary], Any]] = {
    "cond": lambda g: torch.cond(X.sum() > 0, lambda x: g(x) + 1, lambda x: x * 2, (X,)),
    "cond, given as a branch": lambda g: torch.cond(X.sum() > 0, g, lambda x: x * 2, (X,)),
    "while_loop": lambda g: while_loop(
        lambda i, x: i < 3, lambda i, x: (i + 1, g(x)), (torch.tensor(0), X)
    )[1],
    "scan": lambda g: scan(lambda c, x: (g(c + x), c.clone()), X, torch.ones(3, 2, 2))[0],
    "flex_attention": lambda g: flex_attention(
        QUERY, QUERY, QUERY, score_mod=lambda score, b, h, q, k: scalar(g, score)
    ),
    "inside torch.compile": lambda g: torch.compile(
        lambda x: g(x) * 2, backend="eager", fullgraph=True
    )(X),
    "given to torch.compile": lambda g: torch.compile(g, backend="eager", fullgraph=True)(X),
    "strict export": lambda g: torch.export.export(Doubled(g), (X,), strict=True).module()(X),
    "export": lambda g: torch.export.export(Doubled(g), (X,), strict=False).module()(X),
    "make_fx": lambda g: make_fx(lambda x: g(x) + 1)(X)(X),
    "symbolic_trace": lambda g: torch.fx.symbolic_trace(Doubled(g))(X),
    "vmap": lambda g: torch.vmap(g)(X),
    "compiled vmap": lambda g: torch.compile(torch.vmap(g), backend="eager")(X),
    "compiled grad": lambda g: torch.compile(
        torch.func.grad(lambda x: g(x).sum()), backend="eager"
    )(X),
    "inside stator.compile": lambda g: stator.compile(
        lambda x: g(x) * 2, backend="eager", fullgraph=True
    )(X),
}


@contextmanager
def warnings_of_tracers_ignored() -> Iterator[None]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


def assert_as_original(use: str, name: str, *, is_warm: bool) -> None:
    compiled, original = subjects()[name]
    with warnings_of_tracers_ignored():
        torch.compiler.reset()
        expected = USES[use](original)
        torch.compiler.reset()
        if is_warm:
            compiled(X)
        assert torch.equal(USES[use](compiled), expected)
        assert torch.equal(compiled(X), original(X))
        torch.compiler.reset()


@pytest.mark.parametrize("use", USES)
def test_result_is_that_of_the_original(use: str) -> None:
    for name in ("function", "module"):
        assert_as_original(use, name, is_warm=True)


@pytest.mark.slow
@pytest.mark.parametrize("use", USES)
@pytest.mark.parametrize("name", subjects())
def test_result_of_each_kind_is_that_of_the_original(use: str, name: str) -> None:
    assert_as_original(use, name, is_warm=False)
    assert_as_original(use, name, is_warm=True)


def test_jit_trace() -> None:
    linear = torch.nn.Linear(2, 2)
    for compiled in (
        stator.compile(plus, backend="eager"),
        stator.compile(linear, backend="eager"),
    ):
        expected = compiled(X)
        with warnings_of_tracers_ignored():
            traced: Any = jit.trace(compiled, (X,))
        assert torch.equal(traced(X), expected)


def test_exported_module_has_the_names_of_the_original() -> None:
    layers = [stator.compile(torch.nn.Linear(2, 2), backend="eager") for _ in range(2)]
    model = torch.nn.Sequential(layers[0], torch.nn.ReLU(), layers[1])
    batch = torch.export.Dim("batch")
    with warnings_of_tracers_ignored():
        exported = torch.export.export(
            model, (torch.ones(4, 2),), dynamic_shapes=({0: batch},), strict=True
        )
    assert list(exported.state_dict) == list(model.state_dict())
    assert torch.equal(exported.module()(torch.ones(7, 2)), model(torch.ones(7, 2)))


def breaking(x: torch.Tensor, seen: list[int], *, k: float = 2.0) -> torch.Tensor:
    y = x * k
    print(end="")
    seen.append(len(seen))
    return y + 1


class Hooked(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.linear = torch.nn.Linear(2, 2)
        self.register_forward_hook(lambda module, args, result: result * 3)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y: torch.Tensor = self.linear(x)
        print(end="")
        return y.sin()


def test_break_in_the_original_under_torch_compile() -> None:
    compiled = stator.compile(breaking, backend="eager")
    for _ in range(2):
        torch.compiler.reset()
        seen: list[int] = []
        outer = torch.compile(lambda x, seen: compiled(x, seen, k=3.0) * 2, backend="eager")
        for round_number in range(3):
            assert torch.equal(outer(X, seen), (X * 3 + 1) * 2)
            assert seen == list(range(round_number + 1))
        compiled(X, [])


@pytest.mark.parametrize("make", [stator.compile, stator.compile_in_place])
def test_break_in_a_module_with_hooks_under_torch_compile(make: Any) -> None:
    model = Hooked()
    compiled = make(copy.deepcopy(model), backend="eager")
    expected = gradient_after(model)
    for _ in range(2):
        torch.compiler.reset()
        outer: Any = torch.compile(compiled, backend="eager")
        for _ in range(2):
            assert torch.equal(gradient_after(outer), expected)
            assert torch.equal(gradient_after(compiled), expected)


def gradient_after(model: Any) -> torch.Tensor:
    """Return the gradient of the weight after one call."""
    model.zero_grad()
    model(X).sum().backward()
    gradient: torch.Tensor = model.linear.weight.grad
    return gradient


def test_function_around_a_wrapper_is_not_replaced_by_the_original() -> None:
    """`functools.wraps` copies attributes, and Dynamo finds the original by attributes."""
    compiled = stator.compile(plus, backend="eager")

    @functools.wraps(compiled)
    def doubled(x: torch.Tensor) -> torch.Tensor:
        y: torch.Tensor = compiled(x)
        return y * 2

    torch.compiler.reset()
    assert torch.equal(torch.compile(doubled, backend="eager")(X), plus(X) * 2)
    inside = torch.compile(lambda x: doubled(x) + 1, backend="eager")
    assert torch.equal(inside(X), plus(X) * 2 + 1)
    assert torch.equal(torch.cond(X.sum() > 0, doubled, lambda x: x.sin(), (X,)), plus(X) * 2)


def test_code_compiled_by_torch_compile_in_a_region() -> None:
    torch.compiler.reset()
    inner: Any = torch.compile(plus, backend="eager")
    linear = torch.nn.Linear(2, 2)
    compiled_linear: Any = torch.compile(copy.deepcopy(linear), backend="eager")
    outer = stator.compile(lambda x: inner(x) + compiled_linear(x), backend="eager")
    for _ in range(2):
        assert torch.equal(outer(X), plus(X) + linear(X))
