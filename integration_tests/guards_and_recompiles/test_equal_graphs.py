"""Entries of one region whose graphs are equal run the same compiled code.

They differ in guards and side effects: a table that the first call fills, the second reads. A graph
is another one when an operator, a constant, the metadata of an input or a mode differs.
"""

# mypy: ignore-errors

from __future__ import annotations

import traceback
from typing import Any

import pytest
import stator
import torch
import torch.utils.checkpoint
from torch import Tensor

from integration_tests.support.counting import Counting

X = torch.linspace(-1.0, 1.0, 3)


def graphs_of(program: Any, calls: list[tuple[Any, ...]]) -> int:
    counting = Counting()
    compiled = stator.compile(program, backend=counting)
    for number, args in enumerate(calls):
        torch.testing.assert_close(compiled(*args), program(*args), msg=f"call {number}")
    return counting.count


def by_flag(x: Tensor, flag: Any) -> Tensor:
    return x * 2 if flag else x + x.sin() * 0


def test_configuration_that_no_operator_depends_on_is_no_other_graph() -> None:
    calls = [(X, flag) for flag in (True, 1, "a", [0], False, (), None)]
    assert graphs_of(by_flag, calls) == 2


def test_constants_of_other_types_and_signs_are_other_graphs() -> None:
    constants = {"a": 1, "b": 1.0, "c": True, "d": -0.0, "e": 0.0}

    def program(x: Tensor, kind: str) -> Tensor:
        return torch.full_like(x, constants[kind])

    assert graphs_of(program, [(X, kind) for kind in "abcde"]) == 5


def test_other_inputs_are_other_graphs() -> None:
    square = torch.ones(3, 3)
    inputs = [square, square.t(), square.double(), torch.nn.Parameter(square), square.clone()]
    program = lambda x, name: x * 2  # noqa: E731
    assert graphs_of(program, [(x, str(i)) for i, x in enumerate(inputs)]) >= 3


def test_inputs_that_share_memory_are_another_graph() -> None:
    def program(x: Tensor, y: Tensor, name: str) -> Tensor:
        x.add_(1)
        return y * 2

    counting = Counting()
    compiled = stator.compile(program, backend=counting)
    for name in ("a", "b"):
        x, y = X.clone(), X.clone()
        assert compiled(x, y, name).equal(X * 2)
        assert compiled(x, x, name).equal((X + 2) * 2)
    assert counting.count == 2


def test_modes_are_other_graphs() -> None:
    program = lambda x, flag: x * 2  # noqa: E731
    counting = Counting()
    compiled = stator.compile(program, backend=counting)
    x = X.clone().requires_grad_()
    for flag in ("a", "b"):
        assert compiled(x, flag).requires_grad
        with torch.no_grad():
            assert not compiled(x, flag).requires_grad
    assert counting.count == 2


def test_gradients_go_through_a_graph_that_is_used_again() -> None:
    compiled = stator.compile(by_flag, backend="aot_eager")
    for flag in (True, 1, "a"):
        x = X.clone().requires_grad_()
        compiled(x, flag).sum().backward()
        assert x.grad.equal(torch.full((3,), 2.0))


def filling(x: Tensor, index: Tensor, memo: dict[str, Any], log: list[Any]) -> Tensor:
    if "a" not in memo:
        memo["a"] = 2
    log.append("before")
    try:
        y = x[index]
    except IndexError:
        log.append("caught")
        raise
    return y * 2


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
def test_an_operator_that_raises_in_a_graph_used_again_raises_at_its_line(backend: str) -> None:
    counting = Counting()
    compiled = stator.compile(filling, backend=counting if backend == "eager" else backend)
    memo: dict[str, Any] = {}
    fine, wrong = torch.tensor([0, 1]), torch.tensor([7])
    for _ in range(2):
        assert compiled(X, fine, memo, []).equal(X[fine] * 2)

    log: list[Any] = []
    with pytest.raises(IndexError) as raised:
        compiled(X, wrong[:1].expand(2).clone(), memo, log)
    assert log == ["before", "caught"]
    assert "y = x[index]" in "".join(traceback.format_exception(raised.value))
    assert memo == {"a": 2}
    assert counting.count <= 1


def test_reset_forgets_graphs() -> None:
    counting = Counting()
    compiled = stator.compile(by_flag, backend=counting)
    compiled(X, True)
    stator.reset()
    compiled(X, True)
    assert counting.count == 2


@pytest.mark.parametrize(("other", "graphs"), [("same", 1), ("constant", 2), ("operator", 2)])
def test_bodies_of_operators_are_compared(other: str, graphs: int) -> None:
    def body(x: Tensor, kind: str) -> Tensor:
        if kind == "operator":
            return x.cos()
        return x.sin() + (2 if kind == "constant" else 1)

    def program(x: Tensor, kind: str) -> Tensor:
        return torch.utils.checkpoint.checkpoint(body, x, kind, use_reentrant=False) * 2

    assert graphs_of(program, [(X.requires_grad_(), kind) for kind in ("first", other)]) == graphs


def layers(x: Tensor, first: Tensor, second: Tensor) -> Tensor:
    y = (x * first).sin()
    stator.graph_break()
    z = (y * second).sin()
    stator.graph_break()
    return (z * first).sin()


def test_equal_graphs_of_other_places_and_inputs_are_compiled_once() -> None:
    given = X.detach().clone(), torch.full((3,), 2.0), torch.full((3,), 0.5)
    assert graphs_of(layers, [given]) == 1


def test_equal_graphs_of_other_places_have_gradients_of_their_own_inputs() -> None:
    compiled = stator.compile(layers, backend="aot_eager")
    given = [X.detach(), torch.full((3,), 2.0), torch.full((3,), 0.5)]
    ours, plain = ([x.clone().requires_grad_() for x in given] for _ in range(2))
    compiled(*ours).sum().backward()
    layers(*plain).sum().backward()
    for one, other in zip(ours, plain, strict=True):
        torch.testing.assert_close(one.grad, other.grad)


@pytest.mark.parametrize("backend", ["eager", "aot_eager", Counting()])
def test_operator_that_raises_in_an_equal_graph_of_another_place(backend: Any) -> None:
    def program(x: Tensor, index: Tensor, other: Tensor, log: list[str]) -> Tensor:
        y = x[index] * 2
        log.append("first")
        stator.graph_break()
        try:
            z = y[other] * 2
        except IndexError:
            log.append("caught")
            return y
        return z

    compiled, fine, wrong = stator.compile(program, backend=backend), [0, 1, 2], [7, 7, 7]
    for first, second in ((fine, fine), (fine, wrong), (wrong, fine), (fine, fine)):
        results = []
        for each in (compiled, program):
            log: list[str] = []
            try:
                result = each(X, torch.tensor(first), torch.tensor(second), log).tolist()
            except IndexError as error:
                result = str(error)
            results.append((result, log))
        assert results[0] == results[1]


def test_equal_graphs_that_write_to_inputs_of_other_places() -> None:
    def program(x: Tensor, y: Tensor) -> Tensor:
        x.mul_(2)
        stator.graph_break()
        y.mul_(2)
        stator.graph_break()
        return x + y

    for same in (False, True):
        compiled = stator.compile(program, backend="aot_eager")
        x, y = X.detach().clone(), X.detach().clone()
        a, b = x.clone(), y.clone()
        assert compiled(x, x if same else y).equal(program(a, a if same else b))
        assert x.equal(a)
        assert y.equal(b)
