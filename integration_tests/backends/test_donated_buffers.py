"""What a compiled graph saves for backward is written over by the backward that needs it last, and
kept by all others."""

from __future__ import annotations

import pathlib
from collections.abc import Callable
from typing import Any

import pytest
import stator
import torch
from torch import Tensor
from torch._functorch import config as functorch_config
from torch._inductor.utils import fresh_cache
from torch.autograd.graph import save_on_cpu, saved_tensors_hooks

BACKENDS = ["aot_eager", pytest.param("inductor", marks=pytest.mark.slow)]


def program(x: Tensor) -> Any:
    y = x.sin() * 3
    z = (y @ y).relu()
    return (z.exp() * y).sum()


def two_results(x: Tensor) -> tuple[Tensor, Tensor]:
    y = (x @ x).sin()
    return (y * 2).exp().sum(), (y * y.cos()).sum()


def given(size: int = 4) -> Tensor:
    torch.manual_seed(0)
    return (torch.randn(size, size) / 4).requires_grad_()


def retained(run: Callable[..., Any], retains: list[bool]) -> list[Tensor]:
    """Return the gradient after each backward; a graph that is not retained is followed by a new
    one."""
    x, found, loss = given(), list[Tensor](), None
    for retain in retains:
        loss = run(x) if loss is None else loss
        (gradient,) = torch.autograd.grad(loss, x, retain_graph=retain)
        found.append(gradient)
        loss = loss if retain else None
    return found


@pytest.mark.parametrize("dynamic", [False, True])
@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize(
    "retains",
    [
        [True, True, False],
        [False, True, True, False],
        [True, False, False, True, False],
        [False, False, True],
    ],
    ids=str,
)
def test_graph_may_be_retained_in_any_order(
    retains: list[bool], backend: str, dynamic: bool
) -> None:
    compiled = stator.compile(program, backend=backend, dynamic=dynamic)
    for actual, expected in zip(
        retained(compiled, retains), retained(program, retains), strict=True
    ):
        torch.testing.assert_close(actual, expected)


@pytest.mark.parametrize("backend", BACKENDS)
def test_code_from_a_cache_may_be_retained(backend: str, tmp_path: pathlib.Path) -> None:
    """Inductor gives it the same key whether it writes over what was saved or not."""
    with fresh_cache(dir=str(tmp_path)):
        for retains in ([False], [True, True, False], [False, True, False]):
            compiled: Any = stator.compile(program, backend=backend)
            found = retained(compiled, retains)
            stator.reset()
            for actual, expected in zip(found, retained(program, retains), strict=True):
                torch.testing.assert_close(actual, expected)


@pytest.mark.parametrize("backend", BACKENDS)
def test_results_are_differentiated_one_after_the_other(backend: str) -> None:
    found = []
    compiled: Any = stator.compile(two_results, backend=backend)
    for run in (two_results, compiled):
        x = given()
        for _ in range(2):
            first, second = run(x)
            first.backward(retain_graph=True)
            second.backward()
        found.append(x.grad)
    torch.testing.assert_close(found[1], found[0])


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("is_first", [True, False])
def test_tensors_that_a_hook_keeps_stay_what_they_are(backend: str, is_first: bool) -> None:
    compiled = stator.compile(program, backend=backend)
    if not is_first:
        compiled(given()).backward()
    x, kept = given(), list[Tensor]()

    def keep(tensor: Tensor) -> Tensor:
        kept.append(tensor)
        return tensor

    with saved_tensors_hooks(keep, lambda tensor: tensor):
        loss = compiled(x)
    before = [tensor.clone() for tensor in kept]
    loss.backward()
    assert kept
    assert all(map(torch.equal, kept, before))
    expected = given()
    program(expected).backward()
    torch.testing.assert_close(x.grad, expected.grad)


@pytest.mark.parametrize("backend", BACKENDS)
def test_saved_tensors_may_wait_in_other_memory(backend: str) -> None:
    compiled = stator.compile(program, backend=backend)
    found = []
    for run in (program, compiled, compiled):
        x = given()
        with save_on_cpu():
            loss = run(x)
        loss.backward()
        found.append(x.grad)
    for each in found[1:]:
        torch.testing.assert_close(each, found[0])


def test_setting_of_the_process_stays_as_it_is() -> None:
    before = functorch_config.donated_buffer
    stator.compile(program, backend="aot_eager")(given()).backward()
    assert functorch_config.donated_buffer is before is True


@pytest.mark.slow
def test_backward_that_is_the_last_writes_over_what_was_saved() -> None:
    """As under torch.compile: its code takes over memory instead of allocating some."""

    def memory_used(retain: bool) -> int:
        stator.reset()
        compiled = stator.compile(program, backend="inductor")
        peak = 0
        for _ in range(3):
            loss = compiled(given(64))
            with torch.profiler.profile(profile_memory=True) as profile:
                loss.backward(retain_graph=retain)
            sizes = [event.cpu_memory_usage for event in profile.key_averages()]
            peak = sum(size for size in sizes if size > 0)
        return peak

    assert memory_used(retain=False) < memory_used(retain=True)
