"""`requires_grad_()` of tensors that a region makes, and `torch.func.stack_module_state`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import stator
import torch
from torch import Tensor, nn
from torch.func import functional_call, stack_module_state, vmap
from torch.utils._pytree import tree_leaves

Program = Callable[[Tensor], Any]


def used_and_returned(x: Tensor) -> Any:
    y = (x * 2).detach().requires_grad_()
    return y, (y.sin() * x).sum(), y.is_leaf, y.requires_grad, y.grad is None


def identity(x: Tensor) -> Any:
    y = x.detach() * 2
    held = [y]
    z = y.requires_grad_(True)
    return z is y, held, z * 3


def from_nothing(x: Tensor) -> Any:
    w = torch.empty(3, 3).fill_(0.5).requires_grad_()
    return (x @ w + 1).sum(), w


def shared_memory(x: Tensor) -> Any:
    y = x.detach().clone().requires_grad_()
    z = y.detach()
    z.add_(1)
    return y, z


def used_before(x: Tensor) -> Any:
    y = x.detach() * 2
    total = (y * x).sum()
    y.requires_grad_()
    return total + (y * x).sum(), y


def made_without_gradients(x: Tensor) -> Any:
    with torch.no_grad():
        y = (x * 2).requires_grad_()
        z = y * 2
    return y, z, y * 3


def twice(x: Tensor) -> Any:
    y = (x * 2).detach().requires_grad_().requires_grad_()
    return y, y * 2


def over_an_input(x: Tensor) -> Any:
    y = x.detach().requires_grad_()
    return (y * 2).sum(), y


def with_a_view(x: Tensor) -> Any:
    y = (x * 2).detach()
    row = y[0]
    parts = y.split(1)  # type: ignore[no-untyped-call]
    y.requires_grad_()
    return y, row, row.requires_grad, parts[0].requires_grad, y[0] * x[0]


def taken_back(x: Tensor) -> Any:
    y = (x * 2).detach().requires_grad_()
    z = y * 3
    y.requires_grad_(False)
    return y, z


def of_integers(x: Tensor) -> Any:
    try:
        return (x > 0).requires_grad_()
    except RuntimeError as error:
        return str(error)


def written_to(x: Tensor) -> Any:
    y = (x * 2).detach().requires_grad_()
    try:
        return y.mul_(2)
    except RuntimeError as error:
        return str(error), y


CAPTURED = [
    *(used_and_returned, identity, from_nothing, shared_memory, used_before),
    *(made_without_gradients, twice),
]
BROKEN = [over_an_input, with_a_view, taken_back, of_integers, written_to]


def outcome(run: Program, *, has_gradients: bool) -> list[Any]:
    """Return results, flags and gradients after a backward of all results."""
    x = torch.arange(9.0).view(3, 3).requires_grad_(has_gradients)
    leaves = [*tree_leaves(run(x)), x]
    tensors = [leaf for leaf in leaves if isinstance(leaf, Tensor)]
    roots = [leaf.sum() for leaf in tensors[:-1] if leaf.requires_grad]
    if roots:
        torch.stack(roots).sum().backward()  # type: ignore[no-untyped-call]
    found: list[Any] = [leaf for leaf in leaves if not isinstance(leaf, Tensor)]
    for leaf in tensors:
        storage = leaf.untyped_storage()._cdata
        found.append([storage == each.untyped_storage()._cdata for each in tensors])
        found += [leaf.requires_grad, leaf.is_leaf, type(leaf), leaf.detach().tolist()]
        found.append(leaf.grad.tolist() if leaf.is_leaf and leaf.grad is not None else None)
    return found


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
@pytest.mark.parametrize("has_gradients", [True, False])
@pytest.mark.parametrize("program", [*CAPTURED, *BROKEN])
def test_leaf_is_that_of_eager(program: Program, has_gradients: bool, backend: str) -> None:
    compiled = stator.compile(program, backend=backend)
    for _ in range(2):
        expected = outcome(program, has_gradients=has_gradients)
        assert outcome(compiled, has_gradients=has_gradients) == expected
    is_captured = [entry.reason for entry in compiled.report.entries] == [None]
    assert is_captured is (program in CAPTURED)


def test_stacked_modules_are_one_graph() -> None:
    models = [nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4), nn.Linear(4, 2)) for _ in range(3)]
    for model in models:
        model.eval()

    def ensemble(x: Tensor) -> Any:
        parameters, buffers = stack_module_state(models)

        def call(parameters: Any, buffers: Any) -> Any:
            return functional_call(models[0], (parameters, buffers), (x,))

        return parameters, buffers, vmap(call)(parameters, buffers)

    compiled = stator.compile(ensemble, backend="eager")
    x = torch.randn(5, 3)
    for _ in range(2):
        (parameters, buffers, result), (others, kept, found) = ensemble(x), compiled(x)
        assert torch.equal(result, found)
        assert all(torch.equal(buffers[name], kept[name]) for name in buffers)
        result.sum().backward()
        found.sum().backward()
        for name, parameter in parameters.items():
            other = others[name]
            assert other.is_leaf
            assert other.requires_grad
            assert torch.equal(parameter, other)
            torch.testing.assert_close(parameter.grad, other.grad)
    assert compiled.report.graph_count == 1
    assert [entry.reason for entry in compiled.report.entries] == [None]
