"""Assertions about tensors in training: they are checked once, where the program has them, and no
backward pass repeats them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pytest
import stator
import torch
from torch import Tensor
from torch._functorch import config
from torch._functorch._aot_autograd.utils import make_boxed_func
from torch._functorch.aot_autograd import aot_module_simplified
from torch.fx import GraphModule


class Compiler:
    """AOTAutograd around the functions of the graphs; keeps the number of assertions in each."""

    def __init__(self) -> None:
        self.assertions: list[int] = []

    def __call__(self, gm: GraphModule, inputs: Sequence[Any]) -> Any:
        def keep(graph: GraphModule, given: Sequence[Any]) -> Any:
            names = [str(node.target) for node in graph.graph.nodes]
            self.assertions.append(sum("_assert_async" in name for name in names))
            return make_boxed_func(graph.forward)

        compiler: Any = keep
        return aot_module_simplified(gm, inputs, fw_compiler=compiler, bw_compiler=compiler)


def of_results(x: Any, w: Any) -> Any:
    low, high = (x * w).unbind(-1)
    y = torch.stack([low, high + 1], -1)
    if not (y[:, :1] < y[:, 1:] * 0 + 9).all():
        raise ValueError("of the program")
    return y.square().sum()


def about_an_input(x: Any, w: Any) -> Any:
    if not (x < 9).all():
        raise ValueError("of the program")
    return (x * w).sin().sum()


def of_torch(x: Any, w: Any) -> Any:
    y = x * w
    torch._assert_async((y < 9).all(), "of the program")
    return y.square().sum()


def outcome(fn: Any, scale: float) -> list[Any]:
    """Return the result and a gradient, or the error."""
    x, w = torch.full((3, 2), scale), torch.ones(3, 2, requires_grad=True)
    try:
        result: Tensor = fn(x, w)
    except (ValueError, RuntimeError) as error:
        return [type(error).__name__, str(error)]
    x.data.mul_(9)  # which backward sees, and does not check
    torch.autograd.backward([result])
    return [result.detach(), w.grad]


def compare(program: Callable[..., Any], compiled: Any) -> None:
    for scale in (1.0, 10.0, 1.0):
        for found, expected in zip(outcome(compiled, scale), outcome(program, scale), strict=True):
            if isinstance(expected, str):
                assert found == expected
            else:
                torch.testing.assert_close(found, expected)


SAMPLE = [
    of_results,
    *(pytest.param(each, marks=pytest.mark.slow) for each in (about_an_input, of_torch)),
]


@pytest.mark.parametrize("program", SAMPLE)
def test_backward_repeats_no_assertion(program: Any) -> None:
    compiler = Compiler()
    compare(program, stator.compile(program, backend=compiler))
    assert sorted(compiler.assertions)[-2:] == [0, 1]


@pytest.mark.slow
def test_a_pass_of_the_user_for_joint_graphs_runs_as_well() -> None:
    seen = []

    def note(joint: GraphModule, inputs: Sequence[Any]) -> GraphModule:
        seen.append(len(joint.graph.nodes))
        return joint

    settings: Any = config
    with settings.patch(joint_custom_pass=note):
        compiler = Compiler()
        compare(of_results, stator.compile(of_results, backend=compiler))
    assert len(seen) == 1
    assert compiler.assertions == [1, 0]
