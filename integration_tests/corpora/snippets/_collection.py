"""What a snippet is: a small function of everyday code, with the inputs that it is called on.

A collection is filled by a decorator whose argument makes the inputs of one call from a ``Draw``:
seeded by the number of the call, so that values change every time, and with one more row in the
last call, so that a shape does.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import attrs
import torch

CALLS = 3


@attrs.frozen
class Draw:
    """Random inputs of call number ``call``, counted from 0."""

    call: int
    generator: torch.Generator

    @classmethod
    def of(cls, call: int) -> Draw:
        return cls(call, torch.Generator().manual_seed(100 + call))

    @property
    def batch(self) -> int:
        return 4 if self.call < CALLS - 1 else 5

    def normal(self, *shape: int) -> torch.Tensor:
        return torch.randn(*shape, generator=self.generator)

    def leaf(self, *shape: int) -> torch.Tensor:
        return self.normal(*shape).requires_grad_()

    def uniform(self, *shape: int) -> torch.Tensor:
        return torch.rand(*shape, generator=self.generator)

    def integers(self, high: int, *shape: int) -> torch.Tensor:
        return torch.randint(high, shape, generator=self.generator)

    def mask(self, *shape: int) -> torch.Tensor:
        return self.uniform(*shape) > 0.4

    def module(self, make: Callable[[], torch.nn.Module]) -> torch.nn.Module:
        """A module with the same weights in every call."""
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(7)
            return make()


@attrs.frozen
class Snippet:
    name: str
    group: str
    function: Callable[..., Any]
    inputs: Callable[[Draw], tuple[Any, ...]]

    def numbered(self) -> Callable[[], tuple[Any, ...]]:
        """What ``assert_same`` asks for the arguments of one call after another."""
        calls = iter(range(CALLS))
        return lambda: self.inputs(Draw.of(next(calls)))


@attrs.frozen
class Collection:
    """The snippets of one file."""

    group: str
    snippets: list[Snippet] = attrs.field(factory=list)

    def add(
        self, inputs: Callable[[Draw], tuple[Any, ...]]
    ) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
        def keep(function: Callable[..., Any]) -> Callable[..., Any]:
            self.snippets.append(Snippet(function.__name__, self.group, function, inputs))
            return function

        return keep
