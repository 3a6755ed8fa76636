"""Whole numbers of symbolic floats stay symbolic, and are Python's, of any length."""

from __future__ import annotations

import math

import pytest
import stator
import torch

from integration_tests.oracle import assert_same

WHOLE = ("int(y)", "y.__int__()", "y.__trunc__()", "y.__floor__()", "y.__ceil__()", "math.floor(y)", "round(y)")


@pytest.mark.parametrize("text", WHOLE)
def test_whole_number_of_a_symbolic_float_stays_symbolic(text: str) -> None:
    plain = eval(f"lambda x, y: (x * 2, {text}, {text} + 1)", {"math": math})
    remaining = iter([1.5, 2.5, -3.7, 9.2, 1e20, 12.7])
    compiled = stator.compile(plain, backend="eager")
    assert_same(plain, compiled, lambda: (torch.ones(2), next(remaining)), 6)
    assert compiled.report.entry_count == 2
