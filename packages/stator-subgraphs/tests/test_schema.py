"""Arguments as schemas describe them: where an operator takes nothing but a number."""

from __future__ import annotations

import operator
from typing import Any

import pytest
import torch
from stator_subgraphs._schema import computes_by_elements, takes_number


@pytest.mark.parametrize(
    ("target", "key", "expected"),
    [
        ("addcdiv_", "value", True),
        ("add_", "alpha", True),
        ("add_", 1, False),  # a number in one overload, a tensor in another
        ("lerp_", 2, False),
        (torch.norm, "p", True),
        (torch.ops.aten.addcmul.default, 3, True),
        (operator.add, 1, False),
        ("no_such_operator", 0, False),
    ],
)
def test_takes_number(target: Any, key: int | str, expected: bool) -> None:
    assert takes_number(target, key) is expected


@pytest.mark.parametrize(
    ("name", "expected"),
    [("mul", True), ("lerp_", True), ("_fused_adamw_", True), ("matmul", False), ("", False)],
)
def test_computes_by_elements(name: str, expected: bool) -> None:
    assert computes_by_elements(name) is expected
