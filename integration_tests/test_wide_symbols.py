"""Symbolic ints about as long as a machine word: Python's have no end, those of `torch.Size.numel` wrap around."""

from __future__ import annotations

from typing import Any

import pytest
import stator
import torch

from integration_tests.oracle import assert_same

VALUES = (3, 5, 2**61, 2**62 - 1, 2**62, 2**63 - 1, -(2**62), -(2**63), 7)


@pytest.mark.parametrize(
    "text", ["f(n, 2)", "f(n, n)", "f(n, 2) + 1", "f(n, 4) > 2**62", "f(n)", "n * 2", "f(n, 2) == n * 2"]
)
def test_elements_of_a_size_are_counted_in_a_word(text: str) -> None:
    def f(*sizes: int) -> int:
        return torch.Size(sizes).numel()

    for middle in ("", "stator.graph_break() or "):
        names: dict[str, Any] = {"f": f, "stator": stator}
        plain = eval(f"lambda n: ({text}, {middle}{text})", names)
        remaining = iter(VALUES)
        assert_same(plain, stator.compile(plain, backend="eager"), lambda: (next(remaining),), len(VALUES))
