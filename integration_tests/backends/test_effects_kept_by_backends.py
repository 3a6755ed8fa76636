"""Numbers that nobody uses are drawn; tensors without a fake of their kind stay outside; hooks hang
on real nodes."""

from __future__ import annotations

import contextlib
import enum
from collections.abc import Callable
from typing import Any

import pytest
import stator
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from integration_tests.support.oracle import EXACT, Tolerance, assert_same

DRAWING: dict[str, Callable[[Tensor], Any]] = {}
BACKENDS = ("eager", "aot_eager", "aot_eager_decomp_partition")


def drawing(fn: Callable[[Tensor], Any]) -> Callable[[Tensor], Any]:
    DRAWING[fn.__name__.replace("_", " ")] = fn
    return fn


@drawing
def numbers_that_nobody_uses(x: Tensor) -> Any:
    torch.rand(3)
    return x + torch.rand(2), torch.rand(1)


@drawing
def numbers_that_are_overwritten(x: Tensor) -> Any:
    made = x.new_empty(2).normal_()
    torch.mul(x, 2, out=made)
    return made, x.new_empty(2).normal_()


@drawing
def dropout_of_what_is_not_returned(x: Tensor) -> Any:
    F.dropout(x, 0.5)
    x.new_empty(3).uniform_()
    return F.dropout(x * 2, 0.5)


@drawing
def numbers_before_and_after_a_break(x: Tensor) -> Any:
    torch.randn(3)
    stator.graph_break()
    torch.randint(5, (2,))
    return x * torch.rand(2)


@drawing
def permutation_and_bernoulli(x: Tensor) -> Any:
    torch.randperm(4)
    torch.bernoulli(torch.full((2,), 0.5))
    return (x * torch.rand(2)).sum()


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("wanted", [False, True])
@pytest.mark.parametrize("name", DRAWING)
def test_numbers_drawn_for_nothing_are_drawn(name: str, wanted: bool, backend: str) -> None:
    tolerance = EXACT if backend == "eager" else Tolerance(1e-5, 1e-6, strides=False)
    compiled = stator.compile(DRAWING[name], backend=backend)
    assert_same(
        DRAWING[name], compiled, lambda: (torch.ones(2, requires_grad=wanted),), tolerance=tolerance
    )


@pytest.mark.parametrize("backend", BACKENDS[:2])
def test_tensor_laid_out_for_mkldnn_is_no_input(backend: str) -> None:
    def there_and_back(x: Tensor) -> Any:
        inside = (x + 1).to_mkldnn()
        return inside.to_dense() * 2, inside.layout, inside.is_mkldnn, (inside + inside).to_dense()

    assert_same(
        there_and_back, stator.compile(there_and_back, backend=backend), lambda: (torch.ones(2, 3),)
    )


@pytest.mark.parametrize("backend", BACKENDS[:2])
def test_nested_tensor_is_no_input(backend: str) -> None:
    def padded(x: Tensor) -> Any:
        nested = torch.nested.nested_tensor([x[0], x[1, :2]])
        sizes = nested.size(0), nested.is_nested, nested.dim()
        return (
            torch.nested.to_padded_tensor(nested, 0.0) + 1,
            sizes,
            [part * 2 for part in nested.unbind()],
        )

    assert_same(padded, stator.compile(padded, backend=backend), lambda: (torch.ones(2, 3),))


# -- hooks -----------------------------------------------------------------------------------------
def _hooked(x: Tensor, mode: Any) -> Any:
    """Hooks for gradients of a module hang on the node that it makes, which is none of a compiled
    graph."""
    torch.manual_seed(0)
    model, seen = nn.Sequential(nn.Linear(2, 3), nn.Tanh()), []
    first: Any = model[0]
    first.register_full_backward_pre_hook(lambda module, given: (given[0] * 3,))
    first.register_full_backward_hook(lambda module, made, given: seen.append((made[0], given[0])))
    with mode():
        y = model(x * 1)
    if y.requires_grad:
        y.sum().backward()
    return y.detach(), seen, x.grad, first.weight.grad


@pytest.mark.parametrize("mode", [contextlib.nullcontext, torch.no_grad])
@pytest.mark.parametrize("wanted", [False, True])
@pytest.mark.parametrize("backend", BACKENDS[:2])
def test_hooks_for_gradients_of_a_module(backend: str, wanted: bool, mode: Any) -> None:
    def make() -> Any:
        return torch.ones(2, 2, requires_grad=wanted), mode

    assert_same(_hooked, stator.compile(_hooked, backend=backend), make, gradients=False)


class Quiet(enum.IntEnum):
    FOUR = 4

    def __repr__(self) -> str:
        raise AssertionError("nobody wants to read it")

    __str__ = __repr__


@torch.compiler.nested_compile_region
def scaled(x: Tensor, n: int) -> Any:
    return x * n


@pytest.mark.parametrize("backend", ["eager", lambda gm, inputs: gm, "aot_eager"])
def test_nobody_asks_members_for_their_texts(backend: Any) -> None:
    def fn(x: Tensor) -> Any:
        return scaled(x, Quiet.FOUR) + scaled(x, Quiet.FOUR).sum(0) + x.reshape(Quiet.FOUR, -1)

    assert_same(
        fn, stator.compile(fn, backend=backend, fullgraph=True), lambda: (torch.ones(4, 2),)
    )
