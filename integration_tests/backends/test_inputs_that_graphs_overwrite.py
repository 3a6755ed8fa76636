"""Graphs with gradients that read inputs which they overwrite: each backward sees the value that
its forward read, whatever later calls wrote."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import stator
import torch
from torch import Tensor, nn
from torch._dynamo.backends.common import aot_autograd
from torch._functorch._aot_autograd.utils import make_boxed_func

Program = Callable[[Tensor, Tensor], Tensor]


def by_out(x: Tensor, kept: Tensor) -> Tensor:
    with torch.no_grad():
        torch.add(x.detach() * 2, 1, out=kept)
    return x.sin() * (kept.clone() * 3)


def by_copy(x: Tensor, kept: Tensor) -> Tensor:
    with torch.no_grad():
        kept.copy_(x.detach().exp())
    return x.sin() * (kept.clone() * 3)


def by_fill(x: Tensor, kept: Tensor) -> Tensor:
    factor = kept.clone() * 2
    with torch.no_grad():
        kept.fill_(4.0)
    return x * factor * (kept.clone() + 1)


def of_itself_by_out(x: Tensor, kept: Tensor) -> Tensor:
    with torch.no_grad():
        torch.mul(kept, 2, out=kept)
    return x.sin() * (kept.clone() * 3)


def of_itself_by_copy(x: Tensor, kept: Tensor) -> Tensor:
    with torch.no_grad():
        kept.copy_(kept * 2 + 1)
    return x.sin() * (kept.clone() * 3)


def in_part(x: Tensor, kept: Tensor) -> Tensor:
    with torch.no_grad():
        kept[:2].copy_(x.detach()[:2] * 3)
    return x.sin() * (kept.clone() * 3)


def then_in_part(x: Tensor, kept: Tensor) -> Tensor:
    with torch.no_grad():
        kept.copy_(x.detach().cos())
        kept[:2].mul_(2)
    return x.sin() * (kept.clone() * 3)


def read_before(x: Tensor, kept: Tensor) -> Tensor:
    before = x * (kept.clone() * 2)
    with torch.no_grad():
        torch.add(kept, x.detach(), out=kept)
    return before * (kept.clone() * 3)


def reversed_by_itself(x: Tensor, kept: Tensor) -> Tensor:
    with torch.no_grad():
        kept.copy_(kept.flip(0))
    return x.sin() * (kept.clone() * 3)


def counting(graphs: list[Any]) -> Any:
    def compile(graph: Any, inputs: Any) -> Any:
        graphs.append(graph)
        return make_boxed_func(graph.forward)

    return aot_autograd(fw_compiler=compile, bw_compiler=compile)


PROGRAMS = (
    by_out,
    by_copy,
    by_fill,
    of_itself_by_out,
    of_itself_by_copy,
    in_part,
    then_in_part,
    read_before,
    reversed_by_itself,
)


def gradients(fn: Program) -> list[Tensor]:
    """Return the gradients of three calls, computed when all have run, and what was written."""
    kept = torch.arange(1.0, 5.0)
    leaves = [torch.full((4,), float(number), requires_grad=True) for number in (1, 2, 3)]
    results = [fn(leaf, kept) for leaf in leaves]
    found = [kept.clone()]
    kept.zero_()
    for leaf, result in zip(leaves, results, strict=True):
        result.sum().backward()  # type: ignore[no-untyped-call]
        assert leaf.grad is not None
        found += [result.detach(), leaf.grad]
    return found


@pytest.mark.parametrize("backend", ["aot_eager", pytest.param("counting", marks=pytest.mark.slow)])
@pytest.mark.parametrize("fn", PROGRAMS, ids=lambda fn: fn.__name__)
def test_each_backward_has_what_its_forward_read(fn: Program, backend: str) -> None:
    compiled = stator.compile(fn, backend=backend if backend == "aot_eager" else counting([]))
    torch.testing.assert_close(gradients(compiled), gradients(fn), rtol=0, atol=0)


@pytest.mark.slow
@pytest.mark.parametrize("fn", PROGRAMS, ids=lambda fn: fn.__name__)
def test_each_backward_of_inductor_has_what_its_forward_read(fn: Program) -> None:
    compiled = stator.compile(fn, backend="inductor")
    torch.testing.assert_close(gradients(compiled), gradients(fn))


@pytest.mark.parametrize("fn", [by_out, by_copy], ids=lambda fn: fn.__name__)
def test_what_was_overwritten_as_a_whole_is_read_without_a_copy(fn: Program) -> None:
    graphs: list[Any] = []
    gradients(stator.compile(fn, backend=counting(graphs)))
    assert len(graphs) == 2


def test_spectral_norm_in_training_is_one_graph() -> None:
    graphs: list[Any] = []
    layers = [nn.utils.parametrizations.spectral_norm(nn.Linear(4, 4)) for _ in range(2)]
    model = nn.Sequential(*layers).train()
    stator.compile(model, backend=counting(graphs))(torch.ones(2, 4)).sum().backward()
    assert len(graphs) == 2
