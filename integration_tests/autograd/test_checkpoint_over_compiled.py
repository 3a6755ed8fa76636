"""Checkpointing over compiled functions, blocks and models gives what it gives over plain ones.

Recomputation ends early by an exception that a hook for saved tensors raises inside of a graph.
"""

from __future__ import annotations

import copy
import functools
from collections.abc import Callable
from typing import Any

import pytest
import stator
import torch
from torch import Tensor, nn
from torch.utils.checkpoint import (
    CheckpointPolicy,
    checkpoint,
    checkpoint_sequential,
    create_selective_checkpoint_contexts,
    set_checkpoint_early_stop,
)

CALLS = 3


class Block(nn.Module):
    """A residual block that counts its calls, with a graph break if `breaks`."""

    def __init__(self, width: int = 4, breaks: bool = False) -> None:
        super().__init__()
        self.first, self.second = nn.Linear(width, width), nn.Linear(width, width)
        self.breaks, self.counts = breaks, True
        self.calls = 0

    def forward(self, x: Tensor) -> Tensor:
        if self.counts:
            self.calls += 1
        y = torch.tanh(self.first(x))
        if self.breaks:
            stator.graph_break()
        found: Tensor = x + self.second(y).sin()
        return found


def _policy(ctx: Any, op: Any, *args: Any, **kwargs: Any) -> CheckpointPolicy:
    is_product = op in (torch.ops.aten.mm.default, torch.ops.aten.addmm.default)
    return CheckpointPolicy.MUST_SAVE if is_product else CheckpointPolicy.PREFER_RECOMPUTE


def reentrant(run: Callable[..., Any], x: Tensor) -> Any:
    return checkpoint(run, x, use_reentrant=True)


def stopped_early(run: Callable[..., Any], x: Tensor) -> Any:
    return checkpoint(run, x, use_reentrant=False)


def not_stopped_early(run: Callable[..., Any], x: Tensor) -> Any:
    with set_checkpoint_early_stop(False):
        return checkpoint(run, x, use_reentrant=False)


def selective(run: Callable[..., Any], x: Tensor) -> Any:
    contexts = functools.partial(create_selective_checkpoint_contexts, _policy)
    return checkpoint(run, x, use_reentrant=False, context_fn=contexts)


def nested(run: Callable[..., Any], x: Tensor) -> Any:
    return checkpoint(lambda y: stopped_early(run, y) * 2, x, use_reentrant=False)


def twice(run: Callable[..., Any], x: Tensor) -> Any:
    return stopped_early(run, stopped_early(run, x))


WAYS = [reentrant, stopped_early, not_stopped_early, selective, nested, twice]


def trained(make: Callable[[nn.Module], Any], way: Any, block: nn.Module) -> list[Any]:
    """Return losses and gradients of some steps, and how often the block was called."""
    block = copy.deepcopy(block)
    run = make(block)
    found: list[Any] = []
    for step in range(CALLS):
        x = torch.linspace(-1, 1, 8).reshape(2, 4).add(step).requires_grad_()
        loss = way(run, x).square().sum()
        loss.backward()
        found += [
            loss.detach(),
            x.grad,
            *(p.grad.clone() for p in block.parameters() if p.grad is not None),
        ]
    return [*found, getattr(block, "calls", 0)]


def check(make: Callable[[nn.Module], Any], way: Any, block: nn.Module, backend: str) -> None:
    """A compiler saves tensors at the end of its graph: ended there, a recomputation has no side
    effects."""
    *expected, calls = trained(lambda module: module, way, block)
    *found, found_calls = trained(make, way, block)
    for value, wanted in zip(found, expected, strict=True):
        torch.testing.assert_close(value, wanted)
    assert found_calls == calls or backend != "eager"


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
@pytest.mark.parametrize("breaks", [False, True], ids=["whole", "broken"])
@pytest.mark.parametrize("way", WAYS, ids=lambda way: way.__name__)
def test_checkpointed_block_is_trained_as_in_eager(way: Any, breaks: bool, backend: str) -> None:
    torch.manual_seed(0)
    check(functools.partial(stator.compile, backend=backend), way, Block(breaks=breaks), backend)


@pytest.mark.parametrize("way", WAYS, ids=lambda way: way.__name__)
def test_checkpointed_function_is_trained_as_in_eager(way: Any) -> None:
    def make(module: nn.Module) -> Any:
        return stator.compile(lambda x: module(x).cos(), backend="eager")

    def plain(module: nn.Module) -> Any:
        return lambda x: module(x).cos()

    torch.manual_seed(0)
    block = Block()
    for found, value in zip(trained(make, way, block), trained(plain, way, block), strict=True):
        torch.testing.assert_close(found, value)


def test_checkpointed_block_is_trained_as_in_eager_with_inductor() -> None:
    torch.manual_seed(0)
    check(functools.partial(stator.compile, backend="inductor"), stopped_early, Block(), "inductor")


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
def test_checkpointed_parts_of_a_sequence_are_trained_as_in_eager(backend: str) -> None:
    def make(module: nn.Module) -> Any:
        return nn.Sequential(*(stator.compile(each, backend=backend) for each in module.children()))

    def way(run: Any, x: Tensor) -> Any:
        return checkpoint_sequential(run, 2, x, use_reentrant=False)  # type: ignore[no-untyped-call]

    torch.manual_seed(0)
    check(make, way, nn.Sequential(*(Block() for _ in range(4))), backend)


def test_recomputation_compiles_once() -> None:
    """The hooks of each recomputation are other objects."""
    block: Any = stator.compile(Block(), backend="eager")
    block.counts = False
    for _ in range(12):
        x = torch.ones(2, 4, requires_grad=True)
        checkpoint(block, x, use_reentrant=False).sum().backward()
    assert block.report.compile_count == 1
