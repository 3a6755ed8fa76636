"""Programs around an optimizer, compiled beside eager: schedules, parameters that are frozen later,
scaled gradients, clipping, closures, averages, and state that moves between optimizers."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any

import pytest
import stator
import torch
import torch.nn.functional as F
from torch import Tensor, nn, optim
from torch.nn.utils import clip_grad_norm_, clip_grad_value_
from torch.optim import lr_scheduler, swa_utils

from .optimizer_pair import assert_equal, contents, small_model, stepping_as_compiled

Compile = Callable[[Callable[..., Any]], Callable[..., Any]]
Program = Callable[[nn.Module, Compile, ExitStack], Iterator[Any]]
STEPS = 8


def batch(number: int) -> Tensor:
    return torch.randn(5, 4, generator=torch.Generator().manual_seed(number))


def loss_of(model: nn.Module, x: Tensor) -> Tensor:
    loss: Tensor = model(x).square().mean()
    return loss


def chained_schedules(model: nn.Module, compile: Compile, stack: ExitStack) -> Iterator[Any]:
    optimizer = optim.AdamW(model.parameters(), lr=0.01, amsgrad=True)
    warm = lr_scheduler.LinearLR(optimizer, 0.1, total_iters=3)
    cosine = lr_scheduler.CosineAnnealingLR(optimizer, 5)
    schedule = lr_scheduler.SequentialLR(optimizer, [warm, cosine], milestones=[3])
    stack.enter_context(stepping_as_compiled(optimizer))
    step = compile(optimizer.step)
    for number in range(STEPS):
        loss_of(model, batch(number)).backward()  # type: ignore[no-untyped-call]
        step()
        optimizer.zero_grad()
        schedule.step()
        yield contents(model, optimizer)


def cyclic_momentum(model: nn.Module, compile: Compile, stack: ExitStack) -> Iterator[Any]:
    """A schedule that writes rate and momentum."""
    optimizer = optim.SGD(model.parameters(), lr=0.01, momentum=0.9, nesterov=True, foreach=True)
    schedule = lr_scheduler.OneCycleLR(optimizer, 0.1, total_steps=STEPS + 1)

    def step(x: Tensor) -> Tensor:
        optimizer.zero_grad(set_to_none=False)
        loss = loss_of(model, x)
        loss.backward()  # type: ignore[no-untyped-call]
        optimizer.step()
        return loss.detach()

    compiled = compile(step)
    for number in range(STEPS):
        loss = compiled(batch(number))
        schedule.step()
        yield loss, contents(model, optimizer)


def frozen_later(model: nn.Module, compile: Compile, stack: ExitStack) -> Iterator[Any]:
    """Layers are frozen and thawed while the state stays; a group joins."""
    optimizer = optim.Adam(model.parameters(), lr=0.01, weight_decay=0.1)
    stack.enter_context(stepping_as_compiled(optimizer))
    first = next(model.parameters())

    def step(x: Tensor) -> None:
        loss_of(model, x).backward()  # type: ignore[no-untyped-call]
        optimizer.step()
        optimizer.zero_grad()

    compiled = compile(step)
    for number in range(STEPS):
        if number in (2, 5):
            first.requires_grad_(number == 5)
        if number == 4:
            extra = nn.Parameter(torch.ones(2))
            extra.grad = torch.full((2,), 0.5)
            optimizer.add_param_group({"params": [extra], "lr": 0.1, "weight_decay": 0.0})
        compiled(batch(number))
        yield contents(model, optimizer)


def scaled_and_clipped(model: nn.Module, compile: Compile, stack: ExitStack) -> Iterator[Any]:
    """The gradients of one step are infinite: the scaler skips it."""
    optimizer = optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
    scaler = torch.amp.GradScaler("cpu", init_scale=16.0, growth_interval=2)

    def step(x: Tensor) -> Tensor:
        optimizer.zero_grad()
        scaler.scale(loss_of(model, x)).backward()  # type: ignore[no-untyped-call]
        scaler.unscale_(optimizer)
        norm = clip_grad_norm_(model.parameters(), 0.5)
        scaler.step(optimizer)
        scaler.update()
        return norm

    compiled = compile(step)
    for number in range(STEPS):
        norm = compiled(batch(number) * (torch.inf if number == 3 else 1.0))
        yield norm.isfinite(), scaler.state_dict(), contents(model, optimizer)


def closures(model: nn.Module, compile: Compile, stack: ExitStack) -> Iterator[Any]:
    optimizer = optim.LBFGS(
        model.parameters(), lr=0.5, max_iter=4, history_size=3, line_search_fn="strong_wolfe"
    )

    def step(x: Tensor) -> Any:
        def closure() -> Tensor:
            optimizer.zero_grad()
            loss = loss_of(model, x)
            loss.backward()  # type: ignore[no-untyped-call]
            return loss

        return optimizer.step(closure)  # type: ignore[no-untyped-call]

    compiled = compile(step)
    for _ in range(4):
        loss = compiled(batch(0))
        yield loss.detach(), [*model.parameters()]


def two_optimizers(model: nn.Module, compile: Compile, stack: ExitStack) -> Iterator[Any]:
    """One with groups and values clipped, one with a tensor as rate, which is written to."""
    weights = [each for each in model.parameters() if each.dim() > 1]
    biases = [each for each in model.parameters() if each.dim() == 1]
    rate = torch.tensor(0.01)
    one = optim.RMSprop(weights, lr=0.01, centered=True, momentum=0.5)
    other = optim.NAdam(biases, lr=rate, decoupled_weight_decay=True, capturable=False)
    stack.enter_context(stepping_as_compiled(one))
    stack.enter_context(stepping_as_compiled(other))

    def step(x: Tensor) -> Tensor:
        loss = loss_of(model, x)
        loss.backward()  # type: ignore[no-untyped-call]
        clip_grad_value_(model.parameters(), 0.01)
        one.step()
        other.step()
        one.zero_grad()
        other.zero_grad()
        return loss.detach()

    compiled = compile(step)
    for number in range(STEPS):
        loss = compiled(batch(number))
        rate.mul_(0.9)
        yield loss, contents(model, one), contents(model, other)


def averaged(model: nn.Module, compile: Compile, stack: ExitStack) -> Iterator[Any]:
    """Training with an average of the weights, by a distilled loss and hooks of the step."""
    optimizer = optim.Adagrad(model.parameters(), lr=0.1)
    mean = swa_utils.AveragedModel(model, multi_avg_fn=swa_utils.get_ema_multi_avg_fn(0.5))  # type: ignore[no-untyped-call]
    seen: list[float] = []
    optimizer.register_step_post_hook(lambda *_: seen.append(optimizer.param_groups[0]["lr"]))
    stack.enter_context(stepping_as_compiled(optimizer))

    def step(x: Tensor) -> Tensor:
        with torch.no_grad():
            target = mean(x)
        loss = F.mse_loss(model(x), target) + loss_of(model, x)
        loss.backward()  # type: ignore[no-untyped-call]
        optimizer.step()
        optimizer.zero_grad()
        mean.update_parameters(model)
        return loss.detach()

    compiled = compile(step)
    for number in range(STEPS):
        loss = compiled(batch(number))
        state = [each.detach() for each in mean.state_dict().values()]
        yield loss, state, list(seen), contents(model, optimizer)


def moved_state(model: nn.Module, compile: Compile, stack: ExitStack) -> Iterator[Any]:
    """The state goes through another optimizer, which goes on with other options."""
    optimizer = optim.Adamax(model.parameters(), lr=0.01)
    stack.enter_context(stepping_as_compiled(optimizer))
    held = [optimizer]

    def step() -> None:
        held[0].step()

    compiled = compile(step)
    for number in range(STEPS):
        if number == 4:
            other = optim.Adamax(model.parameters(), lr=0.5, maximize=True)
            other.load_state_dict(copy.deepcopy(optimizer.state_dict()))
            other.param_groups[0]["maximize"] = True
            stack.enter_context(stepping_as_compiled(other))
            held[0] = other
        loss_of(model, batch(number)).backward()  # type: ignore[no-untyped-call]
        compiled()
        held[0].zero_grad()
        yield contents(model, held[0])


PROGRAMS: list[Program] = [
    *(chained_schedules, cyclic_momentum, frozen_later, scaled_and_clipped),
    *(closures, two_optimizers, averaged, moved_state),
]


@pytest.mark.parametrize("program", PROGRAMS)
def test_program_is_that_of_eager(program: Program) -> None:
    with ExitStack() as stack:
        found = program(small_model(), lambda function: function, stack)
        expected = [copy.deepcopy(each) for each in found]

    def compiled(function: Callable[..., Any]) -> Callable[..., Any]:
        made: Callable[..., Any] = stator.compile(function, backend="eager")
        return made

    with ExitStack() as unused:
        unused.enter_context(pytest.MonkeyPatch.context()).setattr(
            "integration_tests.training.test_optimizer_programs.stepping_as_compiled", _as_it_is
        )
        actual = program(small_model(), compiled, unused)
        for one, other in zip(expected, actual, strict=True):
            assert_equal(one, other)


def _as_it_is(optimizer: object) -> ExitStack:
    return ExitStack()
