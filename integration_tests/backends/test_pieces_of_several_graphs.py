"""Pieces that graphs of one region have in common are compiled once, and calls do what plain Python
does: the graphs before and behind a break, or of the rounds of a loop."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
import stator
import torch
from stator_backends import BackendSpec, aot_eager, spec_of
from torch.fx import GraphModule


class Compiler:
    """AOTAutograd around the function of the graph; keeps the names of the functions in each."""

    def __init__(self) -> None:
        self.graphs: list[list[str]] = []
        self.spec: BackendSpec = spec_of(aot_eager)

    def __call__(self, gm: GraphModule, inputs: Sequence[Any]) -> Any:
        calls = [node for node in gm.graph.nodes if node.op.startswith("call_")]
        self.graphs.append([str(getattr(node.target, "__name__", node.target)) for node in calls])
        return aot_eager(gm, inputs)


def layer(x: Any, weight: Any, factor: float = 2.0) -> Any:
    """Two pieces, around what no compiler takes."""
    y = (x @ weight).relu() * factor
    z = (y.to_sparse() * 2).to_dense()
    return (z.sin() @ weight).tanh()


def rounds(x: Any, weights: Any, flags: Any) -> Any:
    x = x.exp()
    for number, weight in enumerate(weights):
        x = layer(x, weight)
        if flags[number]:  # a break
            x = x + number
    return x.cos()


def with_other_constants(x: Any, weights: Any, flags: Any) -> Any:
    for number, weight in enumerate(weights):
        x = layer(x, weight, number + 1.5)
        if flags[number]:
            x = x + number
    return x


def in_other_modes(x: Any, weights: Any, flags: Any) -> Any:
    for number, weight in enumerate(weights):
        with torch.set_grad_enabled(number == 1):
            x = layer(x, weight)
        if flags[number]:
            x = x + number
    return x


def of_one_input(x: Any, weights: Any, flags: Any) -> Any:
    """In the second round, both inputs of a piece are one tensor."""
    for number, weight in enumerate(weights):
        x = layer(weight if number else x, weight)
        if flags[number]:
            x = x + number
    return x


def compare(program: Any, compiled: Any) -> None:
    for given in ([1, 1], [0, 1]):
        found = []
        for each in (program, compiled):
            x = torch.linspace(-1, 1, 9).reshape(3, 3).requires_grad_()
            weights = [(torch.eye(3) * (i + 1)).requires_grad_() for i in range(2)]
            result = each(x, weights, [torch.tensor(flag) for flag in given])
            result.sum().backward()
            found.append([result.detach(), x.grad, [weight.grad for weight in weights]])
        torch.testing.assert_close(found[1], found[0])


def compile_by(compiler: Any, program: Any) -> Any:
    return stator.compile(program, backend=compiler, options={"uncompiled": "allow"})


PROGRAMS = (rounds, with_other_constants, in_other_modes, of_one_input)


@pytest.mark.slow
@pytest.mark.parametrize("program", PROGRAMS)
def test_calls_are_those_of_plain_python(program: Any) -> None:
    compare(program, compile_by(Compiler(), program))


@pytest.mark.slow
@pytest.mark.parametrize("program", PROGRAMS)
def test_calls_under_inductor_are_those_of_plain_python(program: Any) -> None:
    compare(program, compile_by("inductor", program))


def test_equal_pieces_of_different_graphs_are_compiled_once() -> None:
    compiler = Compiler()
    compare(rounds, compile_by(compiler, rounds))
    assert compiler.graphs.count(["sin", "matmul", "tanh"]) == 1


@pytest.mark.slow
def test_pieces_with_other_constants_are_compiled_by_themselves() -> None:
    compiler = Compiler()
    compare(with_other_constants, compile_by(compiler, with_other_constants))
    assert compiler.graphs.count(["matmul", "relu", "mul"]) == 2


@pytest.mark.slow
def test_pieces_are_released_with_their_region() -> None:
    compiler = Compiler()
    compiled = compile_by(compiler, rounds)
    compare(rounds, compiled)
    count = len(compiler.graphs)
    stator.reset()
    compare(rounds, compiled)
    assert len(compiler.graphs) == 2 * count
