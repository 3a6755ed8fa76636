"""The first call of a whole training step: its graph serves all later calls, and `zero_grad` leaves
no gradient while that runs."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest
import stator
import torch
from torch import Tensor, nn, optim

from .test_captured_backward import (
    Step,
    World,
    accumulated,
    adamw,
    compared,
    data,
    loss_of,
    plainly,
)


def by_module(world: World, x: Tensor, y: Tensor) -> object:
    world.model.zero_grad()
    loss = loss_of(world, x, y)
    loss.backward()
    world.optimizer.step()
    return loss


def behind_forward(world: World, x: Tensor, y: Tensor) -> object:
    loss = loss_of(world, x, y)
    world.optimizer.zero_grad(set_to_none=True)
    loss.backward()
    world.optimizer.step()
    return loss


def read_before(world: World, x: Tensor, y: Tensor) -> object:
    """Look at gradients before they go."""
    before = [None if each.grad is None else each.grad.sum() for each in world.parameters]
    return before, plainly(world, x, y)


def gone_at_end(world: World, x: Tensor, y: Tensor) -> object:
    loss = accumulated(world, x, y)
    world.model.zero_grad()
    return loss, [each.grad for each in world.parameters]


def only_dropped(world: World, x: Tensor, y: Tensor) -> object:
    """Nothing takes the place of the gradients."""
    world.optimizer.zero_grad()
    return x + 1


def optimizers() -> dict[str, Callable[..., optim.Optimizer]]:
    return {
        "adamw": adamw,
        "amsgrad": lambda model: optim.Adam(model.parameters(), amsgrad=True, foreach=True),
        "radam": lambda model: optim.RAdam(model.parameters()),
        "nadam": lambda model: optim.NAdam(model.parameters()),
        "rmsprop": lambda model: optim.RMSprop(model.parameters(), momentum=0.9, centered=True),
        "adagrad": lambda model: optim.Adagrad(model.parameters()),
        "adadelta": lambda model: optim.Adadelta(model.parameters()),
        "rprop": lambda model: optim.Rprop(model.parameters()),
    }


@pytest.mark.parametrize("step", [plainly, by_module, behind_forward, gone_at_end, only_dropped])
@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
def test_one_graph_from_the_first_call_on(step: Step, backend: str) -> None:
    report = compared(step, partial(World.of, optimizer=adamw), backend)
    assert not report.breaks
    assert report.graph_count == 1


@pytest.mark.parametrize("optimizer", optimizers())
def test_state_is_made_for_gradients_of_the_graph(optimizer: str) -> None:
    report = compared(plainly, partial(World.of, optimizer=optimizers()[optimizer]), "eager")
    assert report.graph_count == 1


def test_gradients_that_the_program_reads_before_they_go() -> None:
    report = compared(read_before, partial(World.of, optimizer=adamw), "eager")
    assert report.graph_count == 2


@pytest.mark.parametrize("step", [plainly, by_module])
def test_memory_of_old_gradients_is_free_when_the_graph_runs(step: Step) -> None:
    world, alive = World.of(optimizer=adamw), []
    old: list[weakref.ref[Tensor]] = []

    def backend(graph: torch.fx.GraphModule, inputs: list[Any]) -> Any:
        def run(*arguments: Any) -> Any:
            alive.append(sum(each() is not None for each in old))
            return graph(*arguments)

        return run

    compiled = stator.compile(partial(step, world), backend=backend)
    x, y = torch.ones(4, 6), torch.zeros(4, 6)
    for _ in range(3):
        old = [weakref.ref(each.grad) for each in world.parameters if each.grad is not None]
        gc.collect()
        compiled(x, y)
    assert alive == [0, 0, 0]
    assert len(old) == len(world.parameters)


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
def test_operator_that_raises_behind_zero_grad(backend: str) -> None:
    """Gradients are gone, as they are when the program itself raises there."""

    def step(world: World, x: Tensor, index: Tensor) -> object:
        world.optimizer.zero_grad()
        return world.model(x)[:, index]

    plain, traced = World.of(), World.of()
    compiled = stator.compile(partial(step, traced), backend=backend)
    x, inside, outside = torch.ones(4, 6), torch.tensor([0, 1]), torch.tensor([9])
    compiled(x, inside)
    for world, run in ((plain, partial(step, plain)), (traced, compiled)):
        loss_of(world, x, x).backward()
        with pytest.raises(IndexError, match="out of bounds"):
            run(x, outside)
        assert [each.grad for each in world.parameters] == [None] * 4


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
def test_operator_that_raises_ahead_of_zero_grad(backend: str) -> None:
    """Gradients stay, as they do when the program itself raises there."""

    def step(world: World, x: Tensor, index: Tensor) -> None:
        loss = world.model(x)[:, index].sum()
        world.optimizer.zero_grad()
        loss.backward()
        world.optimizer.step()

    world = World.of()
    compiled = stator.compile(partial(step, world), backend=backend)
    x = torch.ones(4, 6)
    compiled(x, torch.tensor([0, 1]))
    before = [each.grad for each in world.parameters]
    with pytest.raises(IndexError, match="out of bounds"):
        compiled(x, torch.tensor([9]))
    assert all(each.grad is old for each, old in zip(world.parameters, before, strict=True))
    assert None not in before


def test_error_ahead_of_zero_grad_that_the_program_catches() -> None:
    def step(world: World, x: Tensor, index: Tensor) -> object:
        try:
            loss: Any = world.model(x)[:, index].sum()
        except IndexError:
            return [each.grad for each in world.parameters]
        world.optimizer.zero_grad()
        loss.backward()
        return None

    world = World.of()
    compiled = stator.compile(partial(step, world), backend="eager")
    x = torch.ones(4, 6)
    compiled(x, torch.tensor([0, 1]))
    before = [each.grad for each in world.parameters]
    kept: Any = compiled(x, torch.tensor([9]))
    assert [id(each) for each in kept] == [id(each) for each in before]


def test_dropped_gradients_are_side_effects_of_a_captured_program() -> None:
    world = World.of()

    def program(x: Tensor) -> Any:
        world.optimizer.zero_grad()
        return world.model(x)

    loss_of(world, torch.ones(4, 6), torch.zeros(4, 6)).backward()
    captured = stator.capture(program, (torch.ones(4, 6),))
    assert len(captured.side_effects) == len(world.parameters)


def test_hook_that_drops_gradients_under_compiled_autograd() -> None:
    world, layer = World.of(), nn.Linear(6, 6)

    def drop(gradient: Tensor) -> Tensor:
        world.optimizer.zero_grad()
        return gradient * 2

    for _ in range(3):
        loss_of(world, torch.ones(4, 6), torch.zeros(4, 6)).backward()
        hidden: Any = layer(torch.ones(4, 6))
        hidden.register_hook(drop)
        with stator.compiled_autograd(backend="eager"):
            hidden.sum().backward()
        assert [each.grad for each in world.parameters] == [None] * 4


def embedded(optimizer: Any) -> World:
    """A model that has gradients of 0: for rows that are not looked up."""
    torch.manual_seed(0)
    model = nn.Sequential(nn.Embedding(9, 6), nn.Linear(6, 6))
    return World(model, optimizer(model))


def of_rows(world: World, x: Tensor, y: Tensor) -> object:
    return plainly(world, x.abs().long()[:, 0] % 7, y)


@pytest.mark.parametrize(
    "backend", ["eager", "aot_eager", pytest.param("inductor", marks=pytest.mark.slow)]
)
@pytest.mark.parametrize(("first", "graphs"), [(1, 1), (0, 2)])
@pytest.mark.parametrize("optimizer", ["adamw", "amsgrad", "rmsprop"])
def test_rate_of_a_schedule_is_an_input_of_the_first_graph(
    optimizer: str, first: int, graphs: int, backend: str
) -> None:
    """A warm-up from 0 divides nothing by the rate."""
    worlds = [embedded(optimizers()[optimizer]) for _ in range(2)]
    schedules = [
        optim.lr_scheduler.LambdaLR(world.optimizer, lambda number: (number + first) / 9)
        for world in worlds
    ]
    compiled: Any = stator.compile(partial(of_rows, worlds[1]), backend=backend)
    for number in range(6):
        expected, found = of_rows(worlds[0], *data(number)), compiled(*data(number))
        torch.testing.assert_close(found, expected, rtol=1e-4, atol=1e-5)
        for schedule in schedules:
            schedule.step()
    torch.testing.assert_close(worlds[1].parameters, worlds[0].parameters, rtol=1e-4, atol=1e-5)
    assert compiled.report.graph_count == (1 if optimizer == "rmsprop" else graphs)


def test_rate_that_becomes_0_again() -> None:
    worlds = [embedded(adamw) for _ in range(2)]
    compiled: Any = stator.compile(partial(of_rows, worlds[1]), backend="eager")
    for number, rate in enumerate([0.1, 0.2, 0.3, 0.0, 0.4, 0.0]):
        for world in worlds:
            world.optimizer.param_groups[0]["lr"] = rate
        of_rows(worlds[0], *data(number))
        compiled(*data(number))
    torch.testing.assert_close(worlds[1].parameters, worlds[0].parameters, rtol=1e-4, atol=1e-5)
    assert compiled.report.graph_count == 3


def test_rate_that_the_region_computes_becomes_0() -> None:
    def step(world: World, x: Tensor, y: Tensor, progress: float) -> object:
        world.optimizer.param_groups[0]["lr"] = 0.1 * (1 - progress)
        return of_rows(world, x, y)

    worlds = [embedded(adamw) for _ in range(2)]
    compiled = stator.compile(partial(step, worlds[1]), backend="eager")
    for number, progress in enumerate([0.25, 0.5, 0.75, 1.0]):
        step(worlds[0], *data(number), progress)
        compiled(*data(number), progress)
    torch.testing.assert_close(worlds[1].parameters, worlds[0].parameters, rtol=1e-4, atol=1e-5)
