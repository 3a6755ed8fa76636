"""A compiled step of an optimizer does what the step does: parameters, state, graphs.

The state is made when the first step is traced, and one graph serves all steps; in between the
state is loaded, a group is added, parameters are frozen.
"""

from __future__ import annotations

import copy
import itertools
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest
import stator
import torch
from torch import nn, optim
from torch.nn.utils import clip_grad_norm_, clip_grad_value_
from torch.optim import Optimizer

from .optimizer_pair import (
    OptimizerPair,
    assert_equal,
    small_model,
    step,
    unchanged,
    write_gradients,
)

FORMS: dict[str, dict[str, Any]] = {
    "Adadelta": {"maximize": True, "weight_decay": 0.1},
    "Adafactor": {"weight_decay": 0.1},
    "Adagrad": {"lr_decay": 0.1, "weight_decay": 0.1},
    "Adam": {"amsgrad": True, "maximize": True, "weight_decay": 0.1},
    "AdamW": {"amsgrad": True, "betas": (0.8, 0.9)},
    "Adamax": {"weight_decay": 0.1, "maximize": True},
    "ASGD": {"lambd": 0.1, "t0": 2, "weight_decay": 0.1},
    "NAdam": {"decoupled_weight_decay": True, "weight_decay": 0.1},
    "RAdam": {"decoupled_weight_decay": True, "weight_decay": 0.1},
    "RMSprop": {"centered": True, "momentum": 0.1, "weight_decay": 0.1},
    "Rprop": {"etas": (0.4, 1.3)},
    "SGD": {"momentum": 0.9, "nesterov": True, "weight_decay": 0.1},
}
"""A form with many of the branches of each optimizer; its plain form is the other one."""


def make(name: str, options: dict[str, Any], model: nn.Module) -> Optimizer:
    made: Optimizer = getattr(optim, name)(model.parameters(), **copy.deepcopy(options))
    return made


def in_two_groups(name: str, options: dict[str, Any], model: nn.Module) -> Optimizer:
    first, *others = model.parameters()
    groups = [{"params": [first], "lr": 0.002}, {"params": others, "weight_decay": 0.05}]
    made: Optimizer = getattr(optim, name)(groups, **options)
    return made


WITHOUT_CAPTURABLE = ("Adafactor", "Adagrad", "SGD")


# -- the matrix: optimizer x option x (first step, later step, loaded state, new group) ------------
def load_and_add(model: nn.Module, optimizer: Optimizer, number: int) -> None:
    """Load the state before step 2, and add a group before step 3."""
    if number == 2:
        optimizer.load_state_dict(copy.deepcopy(optimizer.state_dict()))
    if number == 3:
        added = nn.Linear(2, 2)
        for parameter in added.parameters():
            nn.init.constant_(parameter, 0.5)
            parameter.grad = torch.ones_like(parameter)
        optimizer.add_param_group({"params": [*added.parameters()], "lr": 0.005})


CASES = [
    pytest.param(name, options, id=f"{name}-{label}", marks=marks)
    for name, form in FORMS.items()
    for label, options, marks in (
        ("plain", {}, [pytest.mark.slow]),
        ("form", form, []),
        ("form-foreach", {**form, "foreach": True}, [pytest.mark.slow]),
        ("form-capturable", {**form, "capturable": True}, [pytest.mark.slow]),
        ("lr-tensor", {**form, "lr": torch.tensor(0.01)}, [pytest.mark.slow]),
    )
    if label != "form-capturable" or name not in WITHOUT_CAPTURABLE
]


@pytest.mark.parametrize(("name", "options"), CASES)
def test_step_loaded_state_and_new_group(name: str, options: dict[str, Any]) -> None:
    pair = OptimizerPair(partial(make, name, options))
    graphs = pair.run(5, load_and_add)
    # the buffer of SGD is the first gradient, not zeros
    makes_in_graph = name == "SGD" and "momentum" in options
    if name == "Adafactor" and "lr" in options:  # the lesser of a tensor and a number
        assert graphs[:3] == [2, 2, 2]
        assert pair.reasons == {"data-dependent-branch"}
        return
    # loading needs no graph; that of the step which makes the buffers is not kept
    assert graphs[:3] == [1, 1, 1]
    assert graphs[4] <= 2 * graphs[2] + makes_in_graph  # with the new group
    assert not pair.reasons


@pytest.mark.parametrize("name", ["Adam", "SGD", "RMSprop"])
def test_options_of_each_group(name: str) -> None:
    pair = OptimizerPair(partial(in_two_groups, name, FORMS[name]))
    assert pair.run(3) == [1, 1, 1]


def test_fused_form() -> None:
    pair = OptimizerPair(partial(make, "AdamW", {"fused": True}))
    assert pair.run(3) == [1, 1, 1]


def test_lbfgs_with_its_closure() -> None:
    def closure(model: nn.Module, optimizer: Optimizer) -> object:
        def loss() -> Any:
            optimizer.zero_grad()
            result = model(torch.ones(2, 4)).pow(2).sum()
            result.backward()
            return result

        return optimizer.step(loss)

    pair = OptimizerPair(lambda model: optim.LBFGS(model.parameters(), lr=0.1, max_iter=3), closure)
    pair.run(3)


# -- around a step ---------------------------------------------------------------------------------
def clip_norm(model: nn.Module, optimizer: Optimizer) -> object:
    norm = clip_grad_norm_(model.parameters(), 0.5)
    optimizer.step()
    return norm


def clip_value(model: nn.Module, optimizer: Optimizer) -> None:
    clip_grad_value_(model.parameters(), 0.1)
    optimizer.step()


def clear(model: nn.Module, optimizer: Optimizer) -> None:
    optimizer.step()
    optimizer.zero_grad()


def clear_to_zeros(model: nn.Module, optimizer: Optimizer) -> None:
    optimizer.step()
    optimizer.zero_grad(set_to_none=False)


@pytest.mark.parametrize("do", [clip_norm, clip_value, clear, clear_to_zeros])
def test_what_is_done_around_a_step(do: Callable[..., Any]) -> None:
    pair = OptimizerPair(partial(make, "Adam", {}), do)
    assert pair.run(3) == [1, 1, 1]
    assert not pair.reasons


def test_hooks_run_around_each_step() -> None:
    seen: list[str] = []

    def with_hooks(model: nn.Module) -> Optimizer:
        made = optim.SGD(model.parameters(), lr=0.1)
        made.register_step_pre_hook(lambda *given: seen.append("before"))
        made.register_step_post_hook(lambda *given: seen.append("after"))
        return made

    assert OptimizerPair(with_hooks).run(3)[-1] == 1
    assert seen == ["before", "after"] * 6


# -- between steps ---------------------------------------------------------------------------------
def freeze(model: nn.Module, optimizer: Optimizer, number: int) -> None:
    if number == 2:
        next(model.parameters()).requires_grad_(False).grad = None


def drop_gradient(model: nn.Module, optimizer: Optimizer, number: int) -> None:
    if number % 2:
        next(model.parameters()).grad = None


@pytest.mark.parametrize("change", [freeze, drop_gradient])
def test_parameters_without_gradients(change: Callable[..., Any]) -> None:
    pair = OptimizerPair(partial(make, "Adam", {}))
    graphs = pair.run(5, change)
    assert graphs[-1] <= 4
    assert graphs[-2:] == graphs[-1:] * 2


def test_optimizer_that_is_replaced() -> None:
    model = small_model()
    compiled = stator.compile(lambda made: made.step(), backend="eager")
    for _ in range(3):
        other = copy.deepcopy(model)
        mine, its = optim.SGD(model.parameters(), lr=0.1), optim.SGD(other.parameters(), lr=0.1)
        for one, two in zip(model.parameters(), other.parameters(), strict=True):
            one.grad = two.grad = torch.ones_like(one)
        mine.step()
        compiled(its)
        assert_equal([*model.parameters()], [*other.parameters()])


def test_gradients_that_share_memory_with_a_parameter() -> None:
    """An entry for separate tensors does not serve a gradient over the memory of a parameter."""
    model, other = nn.Linear(2, 2), nn.Linear(2, 2)
    other.load_state_dict(model.state_dict())
    mine, its = optim.SGD(model.parameters(), lr=0.1), optim.SGD(other.parameters(), lr=0.1)
    compiled = stator.compile(its.step, backend="eager")
    for shared in (False, True):
        for layer in (model, other):
            for parameter in layer.parameters():
                apart = torch.ones_like(parameter)
                parameter.grad = parameter.detach() if shared else apart
        mine.step()
        compiled()
        assert_equal([*model.parameters()], [*other.parameters()])


def test_twenty_steps_need_one_graph() -> None:
    pair = OptimizerPair(partial(make, "AdamW", {}))
    assert pair.run(20, unchanged)[-1] == 1


# -- what the region does before the step ----------------------------------------------------------
def count_states(model: nn.Module, optimizer: Optimizer) -> object:
    before = len(optimizer.state)
    optimizer.step()
    return before, len(optimizer.state)


def assign_gradients(model: nn.Module, optimizer: Optimizer) -> None:
    first, *others = model.parameters()
    first.grad = None
    for parameter in others:
        parameter.grad = torch.ones_like(parameter)
    optimizer.step()


def freeze_one(model: nn.Module, optimizer: Optimizer) -> None:
    optimizer.param_groups[0]["params"] = [*model.parameters()][1:]
    optimizer.step()


def step_without_gradients(model: nn.Module, optimizer: Optimizer) -> object:
    optimizer.zero_grad()
    optimizer.step()
    return len(optimizer.state)


@pytest.mark.parametrize("name", ["Adam", "SGD", "RMSprop"])
@pytest.mark.parametrize("do", [count_states, assign_gradients, freeze_one, step_without_gradients])
def test_state_that_the_region_has_looked_at_or_changed(name: str, do: Callable[..., Any]) -> None:
    """The state is not made early where the program could observe it."""
    OptimizerPair(partial(make, name, FORMS[name]), do).run(3)


def test_sparse_gradients_that_are_refused() -> None:
    parameter = nn.Parameter(torch.ones(3))
    parameter.grad = torch.ones(3).to_sparse()
    compiled = stator.compile(optim.Adam([parameter]).step, backend="eager")
    for _ in range(2):
        with pytest.raises(RuntimeError, match="does not support sparse gradients"):
            compiled()


@pytest.mark.parametrize(
    "backend", ["aot_eager", pytest.param("inductor", marks=[pytest.mark.slow])]
)
def test_backends_that_compile(backend: str) -> None:
    model, other = small_model(), small_model()
    mine, its = optim.RMSprop(model.parameters()), optim.RMSprop(other.parameters())
    compiled = stator.compile(lambda: step(other, its), backend=backend)
    for number in itertools.repeat(0, 3):
        for one, two in zip(model.parameters(), other.parameters(), strict=True):
            one.grad = torch.full_like(one, 0.1 + number)
            two.grad = one.grad.clone()
        mine.step()
        compiled()
    torch.testing.assert_close([*model.parameters()], [*other.parameters()])
    assert not [entry.uncompiled for entry in compiled.report.entries if entry.uncompiled]


# -- steps that read data --------------------------------------------------------------------------
class ScaledByNorm(Optimizer):
    """Steps in the direction of each gradient, where it is long enough."""

    def __init__(self, parameters: Any) -> None:
        super().__init__(parameters, {"lr": 0.1})

    @torch.no_grad()
    def step(self, closure: Any = None) -> None:  # type: ignore[override]
        for group in self.param_groups:
            for parameter in group["params"]:
                state = self.state[parameter]
                state["step"] = state.get("step", 0) + 1
                if parameter.grad.norm() > 0.1:
                    parameter.add_(parameter.grad, alpha=-group["lr"] / state["step"])


def _adafactor(model: nn.Module) -> Optimizer:
    return optim.Adafactor(model.parameters(), lr=torch.tensor(0.01))


def _by_norm(model: nn.Module) -> Optimizer:
    return ScaledByNorm(model.parameters())


@pytest.mark.parametrize("make", [_adafactor, _by_norm])
def test_loop_over_parameters_that_reads_data_is_one_break(make: Callable[..., Any]) -> None:
    """The loop runs natively as a whole, and what is around it is captured."""

    def scaled(model: nn.Module, optimizer: Optimizer) -> object:
        clip_grad_norm_(model.parameters(), 0.5)
        optimizer.step()
        return [parameter.sum() for parameter in model.parameters()]

    pair = OptimizerPair(make, scaled, lambda: nn.Sequential(*[small_model() for _ in range(4)]))
    assert pair.run(4) == [2, 2, 2, 2]
    assert len(pair.compiled.report.breaks) == 1


@pytest.mark.parametrize(
    "backend", ["aot_eager", pytest.param("inductor", marks=[pytest.mark.slow])]
)
@pytest.mark.parametrize("clip", [clip_value, clip_norm])
def test_clipped_gradients_that_become_momentum(clip: Callable[..., Any], backend: str) -> None:
    """Gradients are written to as a list, and copied, in one compiled graph."""
    model, other = small_model(), small_model()
    mine = optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    its = optim.SGD(other.parameters(), lr=0.1, momentum=0.9)
    compiled = stator.compile(lambda: clip(other, its), backend=backend)
    for number in range(3):
        write_gradients(model, number)
        write_gradients(other, number)
        clip(model, mine)
        compiled()
        for one, two in zip(model.parameters(), other.parameters(), strict=True):
            torch.testing.assert_close((one, one.grad), (two, two.grad))
    assert not [entry.uncompiled for entry in compiled.report.entries if entry.uncompiled]
