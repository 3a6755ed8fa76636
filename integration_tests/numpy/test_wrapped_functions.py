"""`torch.compiler.wrap_numpy`: a function of arrays that takes tensors, in one graph. What plain
torch refuses, gradients, is what torch.compile makes of it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import stator
import torch
from torch import Tensor
from torch.utils._pytree import tree_leaves

from integration_tests.support.counting import Counting
from integration_tests.support.description import Tolerance
from integration_tests.support.oracle import assert_same

wrap_numpy: Any = torch.compiler.wrap_numpy
CLOSE = Tolerance(1e-5, 1e-6)
FUNCTIONS: dict[str, Callable[..., Any]] = {
    "a product": lambda a, b: np.multiply(a, b + 1),
    "a reduction": lambda a, b: (a * b).sum(axis=0),
    "a number": lambda a, b: np.sum(a * a),
    "an operand": lambda a, b: a,
    "several results": lambda a, b: {"one": a @ b.T, "rest": [np.sin(a), 3]},
    "a number in between": lambda a, b: a * np.mean(b) + np.float32(2),
}
"""Functions of two arrays."""


def tensors(*, gradients: bool = False) -> tuple[Tensor, Tensor]:
    first = torch.linspace(-1, 1, 6).reshape(2, 3).requires_grad_(gradients)
    return first, torch.linspace(0, 2, 6).reshape(2, 3)


@pytest.mark.parametrize("function", FUNCTIONS.values(), ids=FUNCTIONS)
def test_a_wrapped_function_is_called_in_a_region(function: Callable[..., Any]) -> None:
    wrapped = wrap_numpy(function)

    def program(x: Tensor, y: Tensor) -> Any:
        return wrapped(x * 2, y), x + 1

    backend = Counting()
    compiled = stator.compile(program, backend=backend, fullgraph=True)
    assert_same(program, compiled, tensors, tolerance=CLOSE)
    assert backend.count == 1


@pytest.mark.parametrize("function", FUNCTIONS.values(), ids=FUNCTIONS)
def test_a_wrapped_function_is_compiled(function: Callable[..., Any]) -> None:
    compiled = stator.compile(wrap_numpy(function), backend="eager", fullgraph=True)
    assert_same(wrap_numpy(function), compiled, tensors, tolerance=CLOSE)


def test_a_function_that_is_wrapped_in_the_region() -> None:
    def program(x: Tensor, y: Tensor) -> Any:
        return wrap_numpy(lambda a, b, *, scale: a * b * scale)(x, y, scale=3)

    assert_same(program, stator.compile(program, backend="eager", fullgraph=True), tensors)


def test_a_result_has_gradients() -> None:
    def norm(array: Any) -> Any:
        return np.sum(array * array)

    compiled: Any = stator.compile(wrap_numpy(norm), backend="eager", fullgraph=True)
    x, _ = tensors(gradients=True)
    compiled(x).backward()
    assert x.grad is not None
    assert torch.equal(x.grad, x.detach() * 2)


@pytest.mark.slow  # torch.compile
@pytest.mark.parametrize("function", FUNCTIONS.values(), ids=FUNCTIONS)
def test_results_have_gradients_as_under_torch_compile(function: Callable[..., Any]) -> None:
    found = []
    for compiling in (torch.compile, stator.compile):
        torch.compiler.reset()
        compiled: Any = compiling(wrap_numpy(function), backend="aot_eager", fullgraph=True)
        x, y = tensors(gradients=True)
        results = [leaf for leaf in tree_leaves(compiled(x, y)) if isinstance(leaf, Tensor)]
        total: Any = sum((result.sum() for result in results), torch.zeros(()))
        total.backward()
        found.append([*results, x.grad])
    torch.testing.assert_close(found[1], found[0])


def test_an_array_with_gradients_does_not_leave_the_wrapped_function() -> None:
    kept: list[Any] = []

    def keeping(array: Any) -> Any:
        kept.append(array * 2)
        return array

    compiled = stator.compile(wrap_numpy(keeping), backend="eager", fullgraph=True)
    with pytest.raises(stator.Unsupported, match="ndarray"):
        compiled(torch.ones(2, requires_grad=True))


def test_other_code_gets_no_array_of_a_tensor_with_gradients() -> None:
    def program(x: Tensor) -> Any:
        return x.numpy() * 2

    compiled = stator.compile(program, backend="eager")
    assert_same(program, compiled, lambda: (torch.ones(2, requires_grad=True),))
