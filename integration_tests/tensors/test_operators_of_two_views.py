"""An operator of two views of one tensor is captured: it is no mutation, whatever the name of its
function ends in."""

from __future__ import annotations

import copy
import operator
from collections.abc import Callable
from typing import Any

import pytest
import stator
import torch
from torch import Tensor

from integration_tests.support.counting import Counting

BINARY = {
    getattr(torch.Tensor, name).__name__: getattr(operator, name)
    for name in (
        *("__and__", "__or__", "__xor__", "__lshift__", "__rshift__"),
        *("__eq__", "__ne__", "__lt__", "__le__", "__gt__", "__ge__"),
        *("__add__", "__sub__", "__mul__", "__matmul__", "__truediv__", "__floordiv__"),
    )
}
IN_PLACE = {
    name: getattr(operator, name)
    for name in ("iadd", "isub", "imul", "iand", "ior", "ixor", "ilshift", "irshift")
}


def captured(fn: Callable[..., Any], *args: Any, fullgraph: bool = True) -> tuple[Any, int]:
    """Return the result of the compiled function and the number of its graphs, and compare with the
    plain one."""
    counting = Counting()
    plain = copy.deepcopy(args)
    expected = fn(*plain)
    found = stator.compile(fn, backend=counting, fullgraph=fullgraph)(*args)
    assert torch.equal(found, expected)
    assert found.dtype == expected.dtype
    assert all(map(torch.equal, args, plain))
    return found, counting.count


@pytest.mark.parametrize("name", BINARY)
def test_two_views_of_one_tensor_are_operands_of_one_graph(name: str) -> None:
    apply = BINARY[name]
    _, graphs = captured(lambda x: apply(x, x.t()) + 1, torch.arange(1, 10).reshape(3, 3))
    assert graphs == 1


@pytest.mark.parametrize("name", ["__and__", "__or__", "__xor__"])
def test_a_mask_is_made_of_two_views_of_the_tokens(name: str) -> None:
    apply = BINARY[name]
    tokens = torch.tensor([[True, False, True], [False, False, True]])
    _, graphs = captured(lambda ids: apply(ids[:, :, None], ids[:, None]).sum(), tokens)
    assert graphs == 1


@pytest.mark.parametrize("name", ["__and__", "__or__", "__xor__"])
def test_the_special_method_is_captured_like_its_operator(name: str) -> None:
    _, graphs = captured(lambda x: getattr(x, name)(x.t()), torch.arange(4).reshape(2, 2))
    assert graphs == 1


@pytest.mark.parametrize("name", IN_PLACE)
def test_an_augmented_assignment_reads_what_it_has_written_as_natively(name: str) -> None:
    """Real kernels refuse such a write, or read partly new values: it runs natively."""
    apply = IN_PLACE[name]

    def fn(x: Tensor) -> Tensor:
        try:
            apply(x, x.t())
        except RuntimeError:
            return x + 100
        return x + 1

    captured(fn, torch.arange(9).reshape(3, 3), fullgraph=False)


@pytest.mark.parametrize("name", ["__iadd__", "__ior__"])
def test_the_special_method_of_an_augmented_assignment_runs_natively(name: str) -> None:
    def fn(x: Tensor) -> Tensor:
        try:
            getattr(x, name)(x.t())
        except RuntimeError:
            return x + 100
        return x + 1

    captured(fn, torch.arange(9).reshape(3, 3), fullgraph=False)


def test_a_write_to_one_view_is_visible_in_the_other() -> None:
    def fn(x: Tensor) -> Tensor:
        rows, columns = x[:1], x[1:]
        rows |= 4
        return (rows | columns) + x.sum()

    _, graphs = captured(fn, torch.arange(6).reshape(2, 3))
    assert graphs == 1
