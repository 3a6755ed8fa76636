"""What the zoo hands out: one call of one model, and how the model is made."""

from __future__ import annotations

import copy
from collections.abc import Callable

import attrs
import torch

from integration_tests.support.arguments import Call


@attrs.frozen
class Item:
    """One entry of the zoo. ``build(depth)`` makes the model, ``call(batch)`` its arguments for
    that batch size."""

    name: str
    build: Callable[[int], torch.nn.Module]
    call: Callable[[int], Call]
    depth: int = 12
    """Layers of the architecture as it was published, and of its shallow form, which still repeats
    what repeats."""
    shallow: int = 2

    def make(self) -> tuple[torch.nn.Module, Call, Call]:
        """The model, inputs for it, and inputs with another batch size; the same on every call."""
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(20)
            model = self.build(self.depth).eval()
            return model, self.call(2), self.call(3)

    def make_twins(self) -> tuple[torch.nn.Module, torch.nn.Module, Call, Call]:
        """Two equal models that share nothing. Both are copies: a copied module is not in all
        details its original."""
        model, call, other = self.make()
        return copy.deepcopy(model), copy.deepcopy(model), call, other

    def in_shallow(self) -> Item:
        """The same with few layers, for what takes long per layer and tells nothing new of the
        seventh."""
        return attrs.evolve(self, depth=self.shallow)


def tokens(batch: int, length: int = 16, vocabulary: int = 99) -> torch.Tensor:
    return torch.randint(3, vocabulary, (batch, length))


def unmasked(batch: int, length: int = 16) -> torch.Tensor:
    """An attention mask whose last row has padding at the end, so that masking is not a no-op."""
    mask = torch.ones(batch, length, dtype=torch.long)
    mask[-1, length - 3 :] = 0
    return mask
