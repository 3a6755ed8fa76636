"""Two equal models with an optimizer each: one steps as it is, the other compiled.

torch.optim branches on ``torch.compiler.is_compiling()``, and a compiler calls its functions with
``capturable``. The plain step does the same (``as_a_compiler_sees``), so that both have to agree
bit by bit.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import wraps
from typing import Any, cast

import attrs
import pytest
import stator
import torch
from torch import Tensor, nn
from torch.optim import Optimizer

from integration_tests.support.counting import Counting

Step = Callable[[nn.Module, Optimizer], object]
Make = Callable[[nn.Module], Optimizer]
Change = Callable[[nn.Module, Optimizer, int], object]


def step(model: nn.Module, optimizer: Optimizer) -> object:
    return optimizer.step()


def unchanged(model: nn.Module, optimizer: Optimizer, number: int) -> None:
    """Change nothing between two steps."""


def small_model() -> nn.Sequential:
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(4, 3), nn.Tanh(), nn.Linear(3, 4), nn.Linear(4, 2))


@contextmanager
def as_a_compiler_sees(optimizer: Optimizer) -> Iterator[None]:
    """Let torch.optim take the branches that it takes while a compiler traces it."""
    groups = [group for group in optimizer.param_groups if "capturable" in group]
    before = [group["capturable"] for group in groups]
    for group in groups:
        group["capturable"] = True
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(torch.compiler, "is_compiling", lambda: True)
        yield
    for group, value in zip(groups, before, strict=True):
        group["capturable"] = value


@contextmanager
def stepping_as_compiled(optimizer: Optimizer) -> Iterator[None]:
    """Let the steps alone take the branches for compilers; the forward pass takes its own."""
    original = optimizer.step

    @wraps(original)  # with the mark of a scheduler
    def step(*args: Any, **kwargs: Any) -> Any:
        with as_a_compiler_sees(optimizer):
            return original(*args, **kwargs)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(optimizer, "step", step)
        yield


def write_gradients(model: nn.Module, number: int, layout: torch.layout = torch.strided) -> None:
    """Give each trained parameter a gradient that depends on the number of the step alone."""
    generator = torch.Generator().manual_seed(number)
    for parameter in model.parameters():
        if parameter.requires_grad:
            gradient = torch.randn(parameter.shape, generator=generator)
            is_sparse = layout is torch.sparse_coo
            parameter.grad = gradient.to_sparse() if is_sparse else gradient


def contents(model: nn.Module, optimizer: Optimizer) -> list[Any]:
    """All that a step may change."""
    found: list[Any] = [*model.parameters()]
    found += [parameter.grad for parameter in model.parameters()]
    for group in optimizer.param_groups:
        found.append({key: value for key, value in group.items() if key != "params"})
        found += [optimizer.state.get(parameter, {}) for parameter in group["params"]]
    return [*found, len(optimizer.state)]


def assert_equal(one: Any, other: Any) -> None:
    """Compare bit by bit, types and order of keys included."""
    assert type(one) is type(other)
    if isinstance(one, Tensor):
        assert one.requires_grad is other.requires_grad
        torch.testing.assert_close(one, other, rtol=0, atol=0, equal_nan=True)
    elif isinstance(one, list | tuple):
        assert len(one) == len(other)
        for mine, its in zip(one, other, strict=True):
            assert_equal(mine, its)
    elif isinstance(one, dict):
        assert [*one] == [*other]
        assert_equal([*one.values()], [*other.values()])
    else:
        assert one == other


@attrs.define(eq=False)
class OptimizerPair:
    """A model with its optimizer, and the same again, which `compiled` steps."""

    make: Make
    do: Step = step
    model: Callable[[], nn.Module] = small_model
    layout: torch.layout = torch.strided
    backend: Any = attrs.field(factory=Counting)
    plain: tuple[nn.Module, Optimizer] = attrs.field(init=False)
    traced: tuple[nn.Module, Optimizer] = attrs.field(init=False)
    compiled: Any = attrs.field(init=False)

    def __attrs_post_init__(self) -> None:
        models = [self.model(), self.model()]
        self.plain, self.traced = ((model, self.make(model)) for model in models)
        model, optimizer = self.traced
        self.compiled = stator.compile(lambda: self.do(model, optimizer), backend=self.backend)

    def run(self, steps: int, change: Change = unchanged) -> list[int]:
        """Step both, compare all after each, and return the numbers of graphs by then."""
        return [self._compared(number, change) for number in range(steps)]

    def _compared(self, number: int, change: Change) -> int:
        for model, optimizer in (self.plain, self.traced):
            write_gradients(model, number, self.layout)
            change(model, optimizer, number)
        with as_a_compiler_sees(self.plain[1]):
            expected = self.do(*self.plain)
        assert_equal(expected, self.compiled())
        assert_equal(contents(*self.plain), contents(*self.traced))
        return cast(int, self.compiled.report.graph_count)

    @property
    def reasons(self) -> set[str]:
        """Why graphs ended."""
        return {reason.reason for reason in self.compiled.report.breaks}
