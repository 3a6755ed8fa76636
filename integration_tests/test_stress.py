"""Breaks hold everywhere: programs and models give what plain Python gives, wherever they are broken."""

from __future__ import annotations

from typing import Any

import pytest
import stator
import torch

from integration_tests.broken import CUT, EXPLODES
from integration_tests.models import ZOO, Call
from integration_tests.oracle import assert_same
from integration_tests.programs import PROGRAMS, Bag
from integration_tests.test_breaks import explode, make_args

MODES: dict[str, dict[str, Any]] = {
    "as it is": {},
    "calls": {"break_everywhere": "calls"},
    "operations": {"break_everywhere": "operations"},
    "instructions": {"break_everywhere": "instructions"},
    "every second": {"break_everywhere": 2},
    "every third": {"break_everywhere": 3},
    "every seventh": {"break_everywhere": 7},
    "one entry": {"recompile_limit": 1},
}


def make_program_args() -> Call:
    return Call((torch.linspace(-1, 1, 6).reshape(2, 3).requires_grad_(), Bag()))


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("title", PROGRAMS)
def test_program_gives_what_plain_python_gives(title: str, mode: str) -> None:
    program = PROGRAMS[title]
    assert_same(program, stator.compile(program, backend="eager", options=MODES[mode]), make_program_args)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("title", CUT)
def test_broken_function_gives_what_plain_python_gives(title: str, mode: str) -> None:
    compiled = stator.compile(CUT[title], backend="eager", options=MODES[mode])
    assert_same(CUT[title], compiled, lambda: make_args(stator.graph_break))


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("title", EXPLODES)
def test_exception_of_a_broken_call_meets_its_handlers(title: str, mode: str) -> None:
    compiled = stator.compile(EXPLODES[title], backend="eager", options=MODES[mode])
    assert_same(EXPLODES[title], compiled, lambda: make_args(explode))
