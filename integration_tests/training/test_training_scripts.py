"""Training loops in the style of libraries: a compiled step does what the step does, with no more
graphs than torch.compile."""

from __future__ import annotations

import copy
from collections.abc import Callable
from contextlib import ExitStack
from typing import Any

import pytest
import stator
import torch

from .optimizer_pair import assert_equal, stepping_as_compiled
from .scripts import SCRIPTS, Script
from .training_script_counts import STEPS, counts, recorded, run

FAULTS_OF_INDUCTOR = {
    "contrastive learning": "a pattern of torch 2.13 fails on `x[torch.randperm(n)]`",
}
"""Scripts that inductor does not compile, under torch.compile either."""

ROUNDED = {"transformers Trainer": 2e-2}
"""Relative tolerances of scripts under autocast, whose casts AOTAutograd moves; torch.compile has
the same results."""


def marks(name: str, backend: str) -> list[pytest.MarkDecorator]:
    """Return the marks of a run in the nightly tier."""
    fault = FAULTS_OF_INDUCTOR.get(name) if backend == "inductor" else None
    if fault is None:
        return [pytest.mark.slow]
    expected = pytest.mark.xfail(reason=fault, raises=stator.errors.BackendFailed, strict=True)
    return [pytest.mark.slow, expected]


def compiled_by(backend: str) -> Callable[[Script], Callable[..., Any]]:
    return lambda script: stator.compile(script.step, backend=backend)


@pytest.mark.parametrize("name", SCRIPTS)
def test_script_is_that_of_eager(name: str) -> None:
    with ExitStack() as stack:

        def plainly(script: Script) -> Callable[..., Any]:
            for optimizer in script.optimizers():
                stack.enter_context(stepping_as_compiled(optimizer))
            return script.step

        steps = 20 if name == "GPT" else STEPS
        expected = [copy.deepcopy(step) for step in run(name, plainly, steps)]
    for each, actual in zip(expected, run(name, compiled_by("eager"), steps), strict=True):
        assert_equal(each, actual)


@pytest.mark.parametrize(
    ("name", "backend"),
    [
        pytest.param(name, backend, marks=[] if is_quick else marks(name, backend))
        for backend in ("aot_eager", "inductor")
        for name in SCRIPTS
        for is_quick in [backend == "aot_eager" and "GAN" in name]
    ],
)
def test_script_with_a_backend_that_compiles(name: str, backend: str) -> None:
    """Random numbers of inductor are its own, so that only the run is tested there."""
    expected = [copy.deepcopy(result) for result, _ in run(name, lambda script: script.step)]
    actual = [copy.deepcopy(result) for result, _ in run(name, compiled_by(backend))]
    if backend == "aot_eager":
        rtol = ROUNDED.get(name, 1e-3)
        torch.testing.assert_close(actual, expected, rtol=rtol, atol=1e-3)


@pytest.mark.parametrize("name", SCRIPTS)
def test_script_takes_no_more_graphs_than_torch_compile(name: str) -> None:
    ours, theirs = recorded()[name]
    found = counts(name, "stator")
    assert found.graphs == ours.graphs
    if theirs is not None:  # torch.compile raises
        assert ours.graphs[-1] <= theirs.graphs[-1]


def test_page_has_every_script_and_no_other() -> None:
    assert [*recorded()] == [*SCRIPTS]
