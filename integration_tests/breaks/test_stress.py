"""Breaks hold everywhere: programs and models give what plain Python gives, wherever they are
broken.

`PROGRAMS` and the functions of `broken.py` run as they are and under the stress modes; under a
limit of one entry, what comes after the first call of each place runs natively, from the middle of
the program on.
"""

from __future__ import annotations

import collections
import itertools
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import stator
import torch
from torch import Tensor

from integration_tests.breaks.broken_holders import CUT, EXPLODES
from integration_tests.breaks.test_breaks import explode, make_args
from integration_tests.corpora.models import SHALLOW, Call
from integration_tests.support.oracle import assert_same
from integration_tests.support.programs import PROGRAMS, Bag

MODES: dict[str, dict[str, Any]] = {
    "as it is": {},
    "calls": {"break_everywhere": True},
    "operations": {"break_everywhere": "operations"},
    "instructions": {"break_everywhere": "instructions"},
    "every second": {"break_everywhere": 2},
    "every third": {"break_everywhere": 3},
    "every fifth": {"break_everywhere": 5},
    "every seventh": {"break_everywhere": 7},
}
LIMITED: dict[str, dict[str, Any]] = {
    "one entry": {"recompile_limit": 1},
    "one entry, calls": {"recompile_limit": 1, "break_everywhere": True},
    "one entry, every third": {"recompile_limit": 1, "break_everywhere": 3},
}
FEW = ("as it is", "calls", "every third", *LIMITED)
MODELS = [
    *(
        (name, mode)
        for name in ("encoder", "resnet", "recurrent", "distilbert")
        for mode in ("calls", "every seventh")
    ),
    *((name, "operations") for name in ("encoder", "resnet", "recurrent")),
    pytest.param("distilbert", "operations", marks=pytest.mark.slow),
]


def make_program_args() -> Call:
    return Call((torch.linspace(-1, 1, 6).reshape(2, 3).requires_grad_(), Bag()))


def changing_args() -> Callable[[], Call]:
    """Arguments that differ from call to call in what entries are guarded on: shapes, types,
    lengths, contents."""
    numbers: Iterator[int] = itertools.count()

    def make() -> Call:
        number = next(numbers) % 3
        x = torch.linspace(-1, 1, 6 + 3 * number).reshape(-1, 3).requires_grad_(number != 1)
        bag = Bag(numbers=[3, 1, 2, 7, 4][: 3 + number], names={"a": 1, "b": 2.5 if number else 2})
        bag.recent = collections.deque([1, 2], maxlen=3 + number)
        return Call((x, bag))

    return make


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("title", PROGRAMS)
def test_program_gives_what_plain_python_gives(title: str, mode: str) -> None:
    program = PROGRAMS[title]
    assert_same(
        program, stator.compile(program, backend="eager", options=MODES[mode]), make_program_args, 2
    )


@pytest.mark.parametrize(
    "mode",
    [
        name if name in FEW else pytest.param(name, marks=pytest.mark.slow)
        for name in (*MODES, *LIMITED)
    ],
)
@pytest.mark.parametrize("title", PROGRAMS)
def test_program_gives_what_plain_python_gives_whatever_changes(title: str, mode: str) -> None:
    program = PROGRAMS[title]
    compiled = stator.compile(program, backend="eager", options=(MODES | LIMITED)[mode])
    assert_same(program, compiled, changing_args(), 4)


@pytest.mark.parametrize("mode", [*MODES, *LIMITED])
@pytest.mark.parametrize("title", CUT)
def test_broken_function_gives_what_plain_python_gives(title: str, mode: str) -> None:
    compiled = stator.compile(CUT[title], backend="eager", options=(MODES | LIMITED)[mode])
    assert_same(CUT[title], compiled, lambda: make_args(stator.graph_break))


@pytest.mark.parametrize("mode", [*MODES, *LIMITED])
@pytest.mark.parametrize("title", EXPLODES)
def test_exception_of_a_broken_call_meets_its_handlers(title: str, mode: str) -> None:
    compiled = stator.compile(EXPLODES[title], backend="eager", options=(MODES | LIMITED)[mode])
    assert_same(EXPLODES[title], compiled, lambda: make_args(explode))


@pytest.mark.parametrize(("name", "mode"), MODELS)
def test_model_gives_what_plain_python_gives(name: str, mode: str) -> None:
    ours, theirs, call, _ = SHALLOW[name].make_twins()
    compiled = stator.compile(theirs, backend="eager", options=MODES[mode])
    assert_same(ours, compiled, lambda: call, calls=2, owners=(ours, theirs))


def counts_from_what_was_summed(x: Tensor, owner: object) -> Any:
    counted = itertools.islice(itertools.count(x.sum().item()), 2)
    return owner.missing(x), counted  # type: ignore[attr-defined]


@pytest.mark.parametrize("every", range(3, 12))
def test_a_number_that_is_met_only_as_its_frame_ends_is_as_good_as_another(every: int) -> None:
    """It has become a symbol; nothing is executed that it could be said to be of."""
    options = {"break_everywhere": every}
    compiled = stator.compile(counts_from_what_was_summed, backend="eager", options=options)
    numbers = iter((1.0, 3.5, 4.25))
    assert_same(
        counts_from_what_was_summed,
        compiled,
        lambda: Call((torch.ones(2) * next(numbers), object())),
        3,
    )


@pytest.mark.parametrize("mode", ["every day", -1, 2.0])
def test_unknown_stress_mode_is_refused(mode: Any) -> None:
    with pytest.raises(stator.StatorError, match="break_everywhere"):
        stator.compile(PROGRAMS["recursion"], options={"break_everywhere": mode})
