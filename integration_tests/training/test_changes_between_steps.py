"""What a program does to gradients, their memory and their hooks between the calls of a compiled
step: noticed by the entry, whose guards on all parameters are a few."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import attrs
import pytest
import stator
import torch
from torch import Tensor, nn, optim

from .optimizer_pair import as_a_compiler_sees

COUNT = 50
FEW = 8
SIZE = 4
Make = Callable[[list[nn.Parameter]], optim.Optimizer]


def do_nothing(graph: Any, inputs: object) -> Any:
    return graph.forward


BACKENDS: dict[str, Any] = {"aot_eager": "aot_eager", "do nothing": do_nothing}
OPTIMIZERS: dict[str, Make] = {
    "sgd": lambda parameters: optim.SGD(parameters, lr=0.1, momentum=0.9, weight_decay=0.01),
    "adam": lambda parameters: optim.Adam(parameters, lr=0.1),
}


@attrs.define(eq=False)
class World:
    """Parameters, their optimizer, and what hooks have seen."""

    parameters: list[nn.Parameter]
    optimizer: optim.Optimizer
    log: list[object] = attrs.Factory(list)

    @classmethod
    def of(cls, make: Make, count: int) -> World:
        torch.manual_seed(0)
        parameters = [nn.Parameter(torch.randn(SIZE)) for _ in range(count)]
        return cls(parameters, make(parameters))

    def set_gradients(self, number: int) -> None:
        torch.manual_seed(number)
        for parameter in self.parameters:
            parameter.grad = torch.randn(SIZE)

    def step(self, x: Tensor) -> Tensor:
        loss = sum((parameter * x).sin().sum() for parameter in self.parameters)
        loss.backward()  # type: ignore[union-attr]
        nn.utils.clip_grad_norm_(self.parameters, 1.0)
        self.optimizer.step()
        self.optimizer.zero_grad(set_to_none=True)
        return loss.detach()  # type: ignore[union-attr]


def assert_equal(plain: World, compiled: World) -> None:
    for one, other in zip(plain.parameters, compiled.parameters, strict=True):
        assert torch.equal(one, other)
        assert (one.grad is None) is (other.grad is None)
        if one.grad is not None and other.grad is not None:
            assert torch.equal(one.grad, other.grad)
            assert one.grad._is_view() is other.grad._is_view()
    assert plain.log == compiled.log


# -- memory of gradients ---------------------------------------------------------------------------
Change = Callable[[World], None]


def overlap(world: World) -> None:
    """Two gradients are parts of one memory, and overlap."""
    memory = torch.arange(SIZE + 1.0)
    world.parameters[3].grad, world.parameters[6].grad = memory[:-1], memory[1:]


def be_neighbors(world: World) -> None:
    """All gradients are parts of one memory, as in buckets of `DistributedDataParallel`."""
    memory = torch.arange(float(SIZE * FEW)).sin()
    for parameter, part in zip(world.parameters, memory.view(FEW, SIZE), strict=True):
        parameter.grad = part


def be_one_object(world: World) -> None:
    world.parameters[4].grad = world.parameters[7].grad


def view_another(world: World) -> None:
    assert world.parameters[7].grad is not None
    world.parameters[4].grad = world.parameters[7].grad.view(SIZE)


def alias_its_parameter(world: World) -> None:
    world.parameters[5].grad = world.parameters[5].detach()


def alias_another_parameter(world: World) -> None:
    """A parameter that the step writes to."""
    world.parameters[5].grad = world.parameters[6].detach()


def alias_a_later_parameter_in_part(world: World) -> None:
    memory = torch.arange(SIZE + 2.0)
    world.parameters[7].data = memory[2:]
    world.parameters[0].grad = memory[:-2]


def alias_a_state(world: World) -> None:
    states = [*world.optimizer.state[world.parameters[2]].values()]
    world.parameters[4].grad = next(each for each in states if each.shape == (SIZE,))


CHANGES: tuple[Change, ...] = (
    *(overlap, be_neighbors, be_one_object, view_another, alias_its_parameter),
    *(alias_another_parameter, alias_a_later_parameter_in_part, alias_a_state),
)


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("optimizer", OPTIMIZERS)
@pytest.mark.parametrize("change", CHANGES, ids=lambda change: change.__name__)
def test_memory_that_gradients_begin_to_share(change: Change, optimizer: str, backend: str) -> None:
    plain, compiled = (World.of(OPTIMIZERS[optimizer], FEW) for _ in range(2))
    step = stator.compile(compiled.optimizer.step, backend=BACKENDS[backend])
    for number in range(8):
        for world in (plain, compiled):
            world.set_gradients(number)
            if number in (4, 5, 7):
                change(world)
        with as_a_compiler_sees(plain.optimizer):
            plain.optimizer.step()
        step()
        assert_equal(plain, compiled)


# -- hooks and gradients before a whole step -------------------------------------------------------
def registered(kind: str, world: World) -> Any:
    def hook(tensor: Tensor) -> None:
        world.log.append(float(tensor.sum()))

    return getattr(world.parameters[COUNT // 2], kind)(hook)


def run_both(plain: World, compiled: World, step: Any, calls: int = 3) -> None:
    x = torch.linspace(0, 1, SIZE)
    for _ in range(calls):
        with as_a_compiler_sees(plain.optimizer):
            expected = plain.step(x)
        assert torch.equal(step(compiled, x), expected)
        assert_equal(plain, compiled)


def worlds(count: int) -> tuple[World, World, Any]:
    plain, compiled = (World.of(OPTIMIZERS["sgd"], count) for _ in range(2))
    return plain, compiled, stator.compile(World.step, backend=do_nothing)


@pytest.mark.parametrize("kind", ["register_hook", "register_post_accumulate_grad_hook"])
def test_a_hook_on_one_of_many_parameters(kind: str) -> None:
    plain, compiled, step = worlds(COUNT)
    run_both(plain, compiled, step)
    for _ in range(2):  # the second time, there is a dict for hooks already
        handles = [registered(kind, world) for world in (plain, compiled)]
        run_both(plain, compiled, step)
        assert len(compiled.log) % 3 == 0 < len(compiled.log)
        for handle in handles:
            handle.remove()
        run_both(plain, compiled, step)


def test_a_gradient_that_one_of_the_parameters_has() -> None:
    """Each write of `.grad` counts: of a value, and of None where the step leaves none."""
    plain, compiled, step = worlds(FEW)
    for number in range(6):
        for world in (plain, compiled):
            if number % 2:
                world.parameters[number].grad = torch.full((SIZE,), float(number))
        run_both(plain, compiled, step, 2)
