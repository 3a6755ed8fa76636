"""Steps on random streams in entries: the lines, and the states that are saved ahead of the
graph."""

from __future__ import annotations

import random
from typing import Any

import pytest
import stator
import torch
from torch import Tensor


def entry_source(fn: Any, backend: str) -> str:
    compiled = stator.compile(fn, backend=backend)
    compiled(torch.ones(3), random.Random(1), torch.tensor([1]))
    (entry,) = compiled.report.entries
    return str(entry.source)


def drawing(x: Tensor, rng: random.Random, index: Tensor) -> Any:
    return x * rng.random()


def drawing_before_an_index(x: Tensor, rng: random.Random, index: Tensor) -> Any:
    return x[index] * rng.random() if x.dim() > 1 else (x * rng.random())[index]


def drawing_behind_an_index(x: Tensor, rng: random.Random, index: Tensor) -> Any:
    return x[index] * rng.random()


@pytest.mark.parametrize(
    ("fn", "backend", "saves"),
    [
        (drawing, "eager", False),
        (drawing, "aot_eager", False),
        (drawing_before_an_index, "eager", False),
        (drawing_before_an_index, "aot_eager", True),
        (drawing_behind_an_index, "eager", True),
        (drawing_behind_an_index, "aot_eager", True),
    ],
)
def test_the_state_is_saved_where_it_may_have_to_be_put_back(
    fn: Any, backend: str, saves: bool
) -> None:
    assert ("objects=(rng, )" in entry_source(fn, backend)) is saves


def test_a_step_is_a_line_ahead_of_the_graph() -> None:
    lines = [line.strip() for line in entry_source(drawing, "eager").splitlines()]
    assert lines.index("drawn0 = random_0(rng)") < lines.index("try:")


def test_a_step_on_torchs_own_generators_follows_a_graph_that_draws() -> None:
    def fn(x: Tensor, rng: Any, index: Tensor) -> Any:
        first = torch.get_rng_state()
        x = x * torch.rand(3)
        torch.set_rng_state(first)
        return x

    text = entry_source(fn, "eager")
    assert text.index("get_rng_state") < text.index("graph_") < text.index("set_rng_state")
