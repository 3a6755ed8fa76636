"""Symbolic ints about as long as a machine word: Python's have no end, those of `torch.Size.numel`
wrap around."""

from __future__ import annotations

import functools
import math
from typing import Any

import pytest
import stator
import torch

from integration_tests.support.oracle import assert_same

VALUES = (3, 5, 2**61, 2**62 - 1, 2**62, 2**63 - 1, -(2**63), 7)


@pytest.mark.parametrize(
    "text",
    [
        "f(n, 2)",
        "f(n, n)",
        "f(n, 2) + 1",
        "f(n, 4) > 2**62",
        "f(n)",
        "n * 2",
        "f(n, 2) == n * 2",
        "f(n * 4, n - 3)",
        "f(n - 3, 2**70)",
    ],
)
def test_elements_of_a_size_are_counted_in_a_word(text: str) -> None:
    def f(*sizes: int) -> int | str:
        try:
            return torch.Size(sizes).numel()
        except (RuntimeError, ValueError, OverflowError) as error:
            return str(error)

    for middle in ("", "stator.graph_break() or "):
        names: dict[str, Any] = {"f": f, "stator": stator}
        plain = eval(f"lambda n: ({text}, {middle}{text})", names)
        remaining = iter([(value,) for value in VALUES])
        assert_same(
            plain,
            stator.compile(plain, backend="eager"),
            functools.partial(next, remaining),
            len(VALUES),
        )


WHOLE = (
    "int(y)",
    "y.__int__()",
    "y.__trunc__()",
    "y.__floor__()",
    "y.__ceil__()",
    "math.floor(y)",
    "round(y)",
)


@pytest.mark.parametrize("text", WHOLE)
def test_whole_number_of_a_symbolic_float_stays_symbolic(text: str) -> None:
    plain = eval(f"lambda x, y: (x * 2, {text}, {text} + 1)", {"math": math})
    remaining = iter([1.5, 2.5, -3.7, 9.2, 1e20, 12.7])
    compiled = stator.compile(plain, backend="eager")
    assert_same(plain, compiled, lambda: (torch.ones(2), next(remaining)), 6)
    assert compiled.report.entry_count == 2
