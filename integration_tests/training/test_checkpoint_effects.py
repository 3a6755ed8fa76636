"""Effects of a checkpointed function: captured in one graph, and repeated when it is computed
again."""

# mypy: disable-error-code="no-untyped-call"

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import stator
import torch
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

from integration_tests.support.counting import Counting


class Counter(nn.Module):
    """Counts its calls, and notes what it computed."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.linear = nn.Linear(3, 3)
        self.calls = 0
        self.seen: list[Any] = []

    def forward(self, x: Tensor, scale: float = 1.0) -> Tensor:
        self.calls += 1
        y: Tensor = self.linear(x).sin()
        self.seen.append(y.sum())
        self.seen.append(("scale", scale))
        return (y * scale).exp()


def _of_a_module(net: Counter, x: Tensor) -> Tensor:
    result: Tensor = checkpoint(net, x, scale=2.0, use_reentrant=False)
    return result * 2


def _of_a_closure(net: Counter, x: Tensor) -> Tensor:
    notes = net.seen

    def body(value: Tensor) -> Tensor:
        notes.append("body")
        result: Tensor = net.linear(value * x).cos()
        return result * value

    result: Tensor = checkpoint(body, x.sin(), use_reentrant=False)
    return result.tanh()


def _twice(net: Counter, x: Tensor) -> Tensor:
    return _of_a_module(net, x) + _of_a_module(net, x.cos())


def _not_stopped(net: Counter, x: Tensor) -> Tensor:
    result: Tensor = checkpoint(net, x, use_reentrant=False, early_stop=False)
    return result


def _with_dropout(net: Counter, x: Tensor) -> Tensor:
    def body(value: Tensor) -> Tensor:
        net.calls += 1
        return nn.functional.dropout(net.linear(value), 0.5).sin()

    result: Tensor = checkpoint(body, x, use_reentrant=False)
    return result


PROGRAMS = (_of_a_module, _of_a_closure, _twice, _not_stopped, _with_dropout)


def _outcome(step: Callable[..., Tensor], calls: int = 3) -> list[Any]:
    net = Counter()
    found: list[Any] = []
    for i in range(calls):
        torch.manual_seed(i)
        x = torch.randn(2, 3, requires_grad=True)
        result = step(net, x)
        found.append((net.calls, len(net.seen)))
        result.sum().backward()
        found += [result, x.grad, net.linear.weight.grad, net.calls]
    return [*found, *net.seen]


def _same(one: Any, other: Any) -> bool:
    if isinstance(one, Tensor):
        return torch.equal(one, other)
    return bool(one == other)


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.__name__.strip("_"))
def test_effects_are_repeated_as_in_eager_autograd(
    program: Callable[..., Tensor], backend: str
) -> None:
    expected = _outcome(program)
    found = _outcome(stator.compile(program, backend=backend))
    assert len(found) == len(expected)
    assert all(map(_same, found, expected))


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.__name__.strip("_"))
def test_a_checkpoint_with_effects_is_in_one_graph(program: Callable[..., Tensor]) -> None:
    counting = Counting()
    options = {"uncompiled": "allow"}
    compiled: Any = stator.compile(program, backend=counting, fullgraph=True, options=options)
    net = Counter()
    for _ in range(2):  # the first call makes its own guards fail, and compiles nothing
        compiled(net, torch.randn(2, 3, requires_grad=True))
    (reason,) = {each.reason for each in compiled.report.uncompiled}
    assert "which backward repeats" in reason


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
def test_an_option_leaves_effects_out_of_the_recomputation(backend: str) -> None:
    options = {"repeat_effects": False}
    net, x = Counter(), torch.randn(2, 3, requires_grad=True)
    stator.compile(_of_a_module, backend=backend, options=options)(net, x).sum().backward()
    assert (net.calls, len(net.seen)) == (1, 2)
