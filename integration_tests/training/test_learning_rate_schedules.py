"""A learning rate that a scheduler writes as a float is an input of the graph from its second value
on."""

from __future__ import annotations

import copy
import warnings
from collections.abc import Callable
from typing import Any

import pytest
import stator
import torch
from torch import nn, optim
from torch.optim import lr_scheduler as schedulers
from torch.optim.swa_utils import SWALR

from .optimizer_pair import (
    OptimizerPair,
    as_a_compiler_sees,
    assert_equal,
    small_model,
    write_gradients,
)

MOST_COMPILATIONS = 3

SCHEDULES: dict[str, Callable[[Any], Any]] = {
    "constant": schedulers.ConstantLR,
    "linear": schedulers.LinearLR,
    "lambda": lambda made: schedulers.LambdaLR(made, lambda step: 0.95**step),
    "multiplicative": lambda made: schedulers.MultiplicativeLR(made, lambda step: 0.95),
    "steps": lambda made: schedulers.StepLR(made, 5),
    "milestones": lambda made: schedulers.MultiStepLR(made, [4, 9, 13]),
    "exponential": lambda made: schedulers.ExponentialLR(made, 0.97),
    "polynomial": lambda made: schedulers.PolynomialLR(made, 100),
    "cosine": lambda made: schedulers.CosineAnnealingLR(made, 100),
    "restarts": lambda made: schedulers.CosineAnnealingWarmRestarts(made, 6),
    "cyclic": lambda made: schedulers.CyclicLR(made, 0.001, 0.1, 4),
    "one-cycle": lambda made: schedulers.OneCycleLR(made, 0.1, 110),
    "swa": lambda made: SWALR(made, 0.01),
    "chained": lambda made: schedulers.ChainedScheduler(
        [schedulers.ConstantLR(made), schedulers.ExponentialLR(made, 0.9)]
    ),
    "sequential": lambda made: schedulers.SequentialLR(
        made, [schedulers.ConstantLR(made), schedulers.ExponentialLR(made, 0.9)], [7]
    ),
    "plateau": lambda made: schedulers.ReduceLROnPlateau(made, patience=3),
}
OPTIMIZERS: dict[str, dict[str, Any]] = {
    "SGD": {"momentum": 0.9},
    "Adam": {},
    "Adam-tensor": {"lr": torch.tensor(0.01)},
    "AdamW-fused": {"fused": True},
    "AdamW-foreach": {"foreach": True},
}
CASES = [
    pytest.param(name, schedule, marks=[] if is_sampled else [pytest.mark.slow])
    for at, schedule in enumerate(SCHEDULES)
    for i, name in enumerate(OPTIMIZERS)
    for is_sampled in [(at + i) % 8 == 0]
]


def stepped(optimizer: Any, schedule: Any) -> None:
    given = (1.0,) if isinstance(schedule, schedulers.ReduceLROnPlateau) else ()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of schedules that others contain
        schedule.step(*given)


def run(name: str, schedule: str, steps: int) -> int:
    """Return how often the step was compiled."""
    options = {"lr": 0.05, **OPTIMIZERS[name]}
    cls = getattr(optim, name.partition("-")[0])
    pair = OptimizerPair(lambda model: cls(model.parameters(), **copy.deepcopy(options)))
    made = [SCHEDULES[schedule](optimizer) for _, optimizer in (pair.plain, pair.traced)]
    both = dict(zip((id(pair.plain[1]), id(pair.traced[1])), made, strict=True))

    def change(model: nn.Module, optimizer: Any, number: int) -> None:
        if number:
            stepped(optimizer, both[id(optimizer)])

    pair.run(steps, change)
    return int(pair.compiled.report.entry_count)


@pytest.mark.parametrize(("name", "schedule"), CASES)
def test_schedule(name: str, schedule: str) -> None:
    assert run(name, schedule, 20) <= MOST_COMPILATIONS


@pytest.mark.slow
@pytest.mark.parametrize("schedule", SCHEDULES)
def test_hundred_steps(schedule: str) -> None:
    assert run("Adam", schedule, 100) <= MOST_COMPILATIONS


@pytest.mark.parametrize("name", ["SGD", "Adam-foreach"])
def test_compiler_that_specializes_on_floats(name: str) -> None:
    """AOTAutograd would specialise on `alpha=-lr`; it gets a number without a hint."""
    model, other = small_model(), small_model()
    options = {"foreach": True} if "foreach" in name else {}
    cls = getattr(optim, name.partition("-")[0])
    plain = cls(model.parameters(), lr=0.1, **options)
    traced = cls(other.parameters(), lr=0.1, **options)
    compiled = stator.compile(traced.step, backend="aot_eager")
    for number in range(5):
        for layers, optimizer in ((model, plain), (other, traced)):
            write_gradients(layers, number)
            optimizer.param_groups[0]["lr"] = 0.1 * 0.9**number
        with as_a_compiler_sees(plain):
            plain.step()
        compiled()
        torch.testing.assert_close([*model.parameters()], [*other.parameters()])
    assert compiled.report.entry_count == 2
    assert not [entry.uncompiled for entry in compiled.report.entries if entry.uncompiled]


def test_schedule_inside_of_the_region() -> None:
    """The step of a schedule runs natively, which is one break; the rate is an input from the first
    step on."""
    model, other = small_model(), small_model()
    mine, its = optim.SGD(model.parameters(), lr=0.1), optim.SGD(other.parameters(), lr=0.1)
    plans = [schedulers.ExponentialLR(each, 0.9) for each in (mine, its)]

    def both(optimizer: Any, schedule: Any) -> None:
        optimizer.step()
        schedule.step()

    compiled = stator.compile(both, backend="eager")
    for number in range(5):
        write_gradients(model, number)
        write_gradients(other, number)
        both(mine, plans[0])
        compiled(its, plans[1])
        assert_equal([*model.parameters()], [*other.parameters()])
        assert plans[0].get_last_lr() == plans[1].get_last_lr()
    assert len(compiled.report.breaks) == compiled.report.graph_count == 1


def test_every_schedule_of_torch_is_in_the_table() -> None:
    pair = OptimizerPair(lambda model: optim.SGD(model.parameters(), lr=0.1, momentum=0.9))
    tried = {type(make(pair.plain[1])) for make in SCHEDULES.values()}
    known = {getattr(schedulers, name) for name in schedulers.__all__}
    assert known <= tried | {schedulers.LRScheduler}
