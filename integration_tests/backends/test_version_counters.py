"""Version counters of inputs that a compiled graph writes to, over many calls."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import stator
import torch
from torch import Tensor
from torch.fx import GraphModule

CALLS = 12
CHANGES_AT = 6
Counts = tuple[int, ...]


def write(a: Tensor, b: Tensor, c: Tensor) -> Tensor:
    """One write to `a`, two to `b`, none to `c`."""
    a.add_(1)
    b.mul_(2)
    b.add_(1)
    return (a + b).sum() + c.sum()


def versions(tensors: list[Tensor]) -> list[int]:
    return [tensor._version for tensor in tensors]


def uncounted(graph: GraphModule, after: int) -> Callable[..., Any]:
    """The graph, whose writes are not counted from a call on, as in a replay of recorded
    kernels."""
    calls = 0

    def run(*inputs: Tensor) -> Any:
        nonlocal calls
        calls += 1
        before: Counts = tuple(tensor._version for tensor in inputs)
        results = graph.forward(*inputs)
        if calls > after:
            torch._C._autograd._unsafe_set_version_counter(inputs, before)
        return results

    return run


BACKENDS: dict[str, Any] = {
    "aot_eager": "aot_eager",
    "inductor": "inductor",
    "all writes counted": lambda graph, inputs: graph.forward,
    "no write counted": lambda graph, inputs: uncounted(graph, 0),
    "counted at first": lambda graph, inputs: uncounted(graph, CHANGES_AT),
}


@pytest.mark.parametrize("name", BACKENDS)
def test_counters_are_those_of_the_program_in_each_call(name: str) -> None:
    given = [torch.arange(3.0) + i for i in range(3)]
    expected = [tensor.clone() for tensor in given]
    compiled = stator.compile(write, backend=BACKENDS[name])

    for _ in range(CALLS):
        assert torch.equal(compiled(*given), write(*expected))
        assert versions(given) == versions(expected)


@pytest.mark.parametrize("name", BACKENDS)
def test_views_that_share_a_counter(name: str) -> None:
    """Both counters are one, which the graph increases for either."""
    memory, other = torch.zeros(6), torch.zeros(6)
    given, expected = ([each[:3], each[3:], torch.ones(3)] for each in (memory, other))
    compiled = stator.compile(write, backend=BACKENDS[name])
    for _ in range(CALLS):
        assert torch.equal(compiled(*given), write(*expected))
    assert torch.equal(memory, other)
    assert memory._version >= 2 * CALLS


@pytest.mark.parametrize("name", BACKENDS)
def test_backward_notices_a_write_in_a_later_call(name: str) -> None:
    saved = torch.ones(3)
    compiled = stator.compile(write, backend=BACKENDS[name])
    for _ in range(CALLS):
        leaf = torch.ones(3, requires_grad=True)
        product = (leaf * saved).sum()
        compiled(torch.zeros(3), saved, torch.zeros(3))
        with pytest.raises(RuntimeError, match="modified by an inplace operation"):
            product.backward()  # type: ignore[no-untyped-call]
