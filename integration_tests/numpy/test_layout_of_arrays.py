"""Fields that say how an array lies in memory, of arrays that the region made."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import stator
import torch
from torch import Tensor

from integration_tests.support.oracle import assert_same

MADE: dict[str, Callable[[Tensor], Any]] = {
    "of a tensor": lambda x: x.numpy(),
    "transposed": lambda x: x.numpy().T,
    "a part": lambda x: x.numpy()[:, ::2],
    "backwards": lambda x: x.numpy()[:, ::-1],
    "computed": lambda x: x.numpy() * 2,
    "of another dtype": lambda x: x.numpy() > 0,
    "made of a size": lambda x: np.zeros((x.shape[0], 2)),
}


@pytest.mark.parametrize("title", MADE)
def test_strides_and_bytes(title: str) -> None:
    def program(x: Tensor) -> Any:
        array = MADE[title](x)
        return array.strides, array.nbytes, x + array.strides[0]

    compiled = stator.compile(program, backend="eager", fullgraph=True)
    for rows in (2, 3, 5):
        assert_same(program, compiled, lambda: (torch.ones(rows, 4),))  # noqa: B023


@pytest.mark.parametrize("rows", [0, 1])
def test_strides_of_short_arrays(rows: int) -> None:
    def program(x: Tensor) -> Any:
        return x + 1, (x.numpy() * 2).strides, x.numpy().nbytes

    assert_same(program, stator.compile(program, backend="eager"), lambda: (torch.ones(rows, 4),))
