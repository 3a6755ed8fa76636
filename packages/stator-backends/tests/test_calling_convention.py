"""Compiled graphs as functions of a list that they empty."""

from __future__ import annotations

import weakref
from typing import Any

import pytest
import torch
from stator_backends import aot_eager, boxed


class TwoExponentials(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor]:
        return (x.exp().exp(),)


def test_inputs_are_released_before_the_end() -> None:
    alive: list[bool] = []

    def compiled(*inputs: Any) -> Any:
        return [inputs[0] + 1]

    given = [torch.ones(3)]
    assert torch.equal(boxed(compiled)(given)[0], torch.full((3,), 2.0))
    assert not given

    graph = torch.fx.symbolic_trace(TwoExponentials())
    x = torch.ones(3)
    with torch.no_grad():
        call = boxed(aot_eager(graph, [x]))
        weakref.finalize(x, alive.append, True)
        taken = [x]
        del x
        result = call(taken)
    assert not taken
    assert alive == [True]
    assert torch.equal(result[0], torch.ones(3).exp().exp())


@pytest.mark.parametrize("wrapped", [False, True])
def test_a_wrapped_function_is_found(wrapped: bool) -> None:
    graph = torch.fx.symbolic_trace(TwoExponentials())
    with torch.no_grad():
        compiled: Any = aot_eager(graph, [torch.ones(3)])
        outer = torch.no_grad()(compiled) if wrapped else compiled
        taken = [torch.ones(3)]
        boxed(outer)(taken)
    assert not taken
