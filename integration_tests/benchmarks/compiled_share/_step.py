"""Programs as their users run them: a model's forward, a loss and its backward, a whole step.

What a call returns is everything that is compared with eager execution.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn

from integration_tests.benchmarks.real_models._workload import Program, always

Compiled = Callable[..., Any]


def forward(module: nn.Module, *args: Any, **kwargs: Any) -> Program:
    """Return a program that calls ``module`` in evaluation mode."""
    return Program(module.eval(), always(*args, **kwargs))


def training(module: nn.Module, *args: Any, **kwargs: Any) -> Program:
    """Return a program that calls ``module`` in training mode and runs backward from its loss."""
    return loss_of(module.train(), [module], *args, **kwargs)


def loss_of(fn: Compiled, modules: list[nn.Module], *args: Any, **kwargs: Any) -> Program:
    """Return a program that calls ``fn`` and runs backward; gradients are those of ``modules``."""
    parameters = [each for module in modules for each in module.parameters()]

    def driver(compiled: Compiled) -> Compiled:
        def step(*args: Any, **kwargs: Any) -> Any:
            for parameter in parameters:
                parameter.grad = None
            loss = loss_in(compiled(*args, **kwargs))
            loss.backward()
            return loss.detach(), [parameter.grad for parameter in parameters]

        return step

    return Program(fn, always(*args, **kwargs), driver)


def loss_in(result: Any) -> Any:
    """Return the loss of a model's output, or the mean of a tensor."""
    if hasattr(result, "loss") and result.loss is not None:
        result = result.loss
    if isinstance(result, tuple | list):
        result = result[0]
    return result if result.ndim == 0 else result.square().mean()


def whole_step(fn: Compiled, modules: list[nn.Module], *args: Any, **kwargs: Any) -> Program:
    """Return a program whose compiled part is a whole training step, backward and optimizer too."""
    parameters = [each for module in modules for each in module.parameters()]

    def driver(compiled: Compiled) -> Compiled:
        return lambda *args, **kwargs: (compiled(*args, **kwargs), parameters)

    return Program(fn, always(*args, **kwargs), driver)


def classifier(module: nn.Module) -> Callable[[Tensor, Tensor], Tensor]:
    """Return a function of a batch and its classes that computes the loss of ``module``."""

    def loss(x: Tensor, wanted: Tensor) -> Tensor:
        return nn.functional.cross_entropy(module(x), wanted)

    return loss


def classes(batch: int, number: int = 4) -> Tensor:
    return torch.arange(batch) % number
