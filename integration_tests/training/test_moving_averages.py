"""Moving averages of weights in a region with the forward pass: one compiled graph, where backward
does not need the averages."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import pytest
import stator
import torch
from torch import Tensor, nn, optim
from torch.optim import swa_utils

Program = Callable[[nn.Module, nn.Module, Tensor], Any]


def _update(student: nn.Module, teacher: nn.Module) -> None:
    with torch.no_grad():
        for mean, parameter in zip(teacher.parameters(), student.parameters(), strict=True):
            mean.mul_(0.9).add_(parameter, alpha=0.1)
        for kept, buffer in zip(teacher.buffers(), student.buffers(), strict=True):
            kept.copy_(buffer)


def after_forward(student: nn.Module, teacher: nn.Module, x: Tensor) -> Any:
    loss = student(x).square().sum()
    _update(student, teacher)
    return loss


def before_forward(student: nn.Module, teacher: nn.Module, x: Tensor) -> Any:
    _update(student, teacher)
    with torch.no_grad():
        target = teacher(x)
    return (student(x) - target).square().sum()


def between_forwards(student: nn.Module, teacher: nn.Module, x: Tensor) -> Any:
    with torch.no_grad():
        before = teacher(x)
    _update(student, teacher)
    with torch.no_grad():
        after = teacher(x)
    return (student(x) * (after - before)).sum()


def by_foreach(student: nn.Module, teacher: nn.Module, x: Tensor) -> Any:
    with torch.no_grad():
        torch._foreach_lerp_([*teacher.parameters()], [*student.parameters()], 0.1)
    return student(x).square().sum()


def with_the_average(student: nn.Module, teacher: nn.Module, x: Tensor) -> Any:
    _update(student, teacher)
    return student(x).square().sum(), next(iter(teacher.parameters()))


def through_the_average(student: nn.Module, teacher: nn.Module, x: Tensor) -> Any:
    _update(student, teacher)
    return (student(x) * teacher(x)).sum()


def before_the_write(student: nn.Module, teacher: nn.Module, x: Tensor) -> Any:
    penalty = next(iter(teacher.parameters())).sum()  # whose backward needs no weight
    _update(student, teacher)
    return student(x).square().sum() + penalty


IN_ONE_GRAPH = [after_forward, before_forward, between_forwards, by_foreach, with_the_average]
PROGRAMS = [*IN_ONE_GRAPH, through_the_average, before_the_write]


def _trained(program: Program, run: Program) -> list[Any]:
    torch.manual_seed(0)
    student = nn.Sequential(nn.Linear(4, 4), nn.BatchNorm1d(4), nn.Tanh(), nn.Linear(4, 2))
    teacher = copy.deepcopy(student)
    optimizer = optim.SGD(student.parameters(), lr=0.1)
    found: list[Any] = []
    for number in range(4):
        x = torch.randn(5, 4, generator=torch.Generator().manual_seed(number))
        result = run(student, teacher, x)
        loss = result[0] if isinstance(result, tuple) else result
        loss.backward()
        optimizer.step()
        found += [loss.detach(), *(each.grad for each in teacher.parameters())]
        optimizer.zero_grad()
        teacher.zero_grad()
        if isinstance(result, tuple):
            assert result[1] is next(teacher.parameters())
        for model in (student, teacher):
            found += [value.clone() for value in model.state_dict().values()]
    return found


@pytest.mark.parametrize(
    "backend", ["eager", "aot_eager", pytest.param("inductor", marks=[pytest.mark.slow])]
)
@pytest.mark.parametrize("program", PROGRAMS)
def test_average_in_a_region_is_that_of_eager(program: Program, backend: str) -> None:
    compiled: Any = stator.compile(program, backend=backend)
    expected, found = _trained(program, program), _trained(program, compiled)
    torch.testing.assert_close(found, expected)
    entries = compiled.report.entries
    assert len(entries) == 1
    is_compiled = not any(entry.uncompiled for entry in entries)
    assert is_compiled or program not in IN_ONE_GRAPH


AVERAGES: dict[str, Callable[[], dict[str, Any]]] = {
    "default": dict,
    "default, buffers": lambda: {"use_buffers": True},
    "ema": lambda: {"multi_avg_fn": swa_utils.get_ema_multi_avg_fn(0.9)},  # type: ignore[no-untyped-call]
    "ema, buffers": lambda: {
        "multi_avg_fn": swa_utils.get_ema_multi_avg_fn(0.9),  # type: ignore[no-untyped-call]
        "use_buffers": True,
    },
    "ema of each": lambda: {"avg_fn": swa_utils.get_ema_avg_fn(0.9)},  # type: ignore[no-untyped-call]
    "swa": lambda: {"multi_avg_fn": swa_utils.get_swa_multi_avg_fn()},  # type: ignore[no-untyped-call]
    "swa of each": lambda: {"avg_fn": swa_utils.get_swa_avg_fn()},  # type: ignore[no-untyped-call]
}


@pytest.mark.parametrize("kind", AVERAGES)
def test_averaged_model_is_captured_around_its_two_branches(kind: str) -> None:
    """The number of updates is a tensor, and decides what is done: two breaks."""
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4), nn.Linear(4, 2))
    options = AVERAGES[kind]()
    plain, captured = (swa_utils.AveragedModel(model, **options) for _ in range(2))

    def update(averaged: swa_utils.AveragedModel) -> None:
        averaged.update_parameters(model)

    compiled: Any = stator.compile(update, backend="eager")
    for _ in range(6):
        with torch.no_grad():
            for value in model.state_dict().values():
                value.add_(1)
        update(plain)
        compiled(captured)
        states = zip(plain.state_dict().values(), captured.state_dict().values(), strict=True)
        assert all(torch.equal(one, other) for one, other in states)
    assert compiled.report.graph_count == 5
    reasons = {each.reason.reason for each in compiled.report.entries if each.reason is not None}
    assert reasons == {"data-dependent-branch"}
