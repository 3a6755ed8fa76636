"""Arrays of NumPy under an index that changes: no more graphs than torch.compile has."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import stator
import torch

from integration_tests.support.counting import Counting
from integration_tests.support.description import EXACT, describe, differences

X = torch.linspace(-1.0, 2.0, 3)
TABLE = np.linspace(0, 1, 8, dtype=np.float32)
ROWS = np.arange(24, dtype=np.float32).reshape(8, 3)
INDICES = (0, 3, 2, 5, 1, 7, -1, -8, 4, -3)


def set_item(array: Any, k: int) -> Any:
    array[k] = 2.5
    return array


def set_to_its_index(array: Any, k: int) -> Any:
    array[k] = k
    return array


def row_written_to(array: Any, k: int) -> Any:
    row = array[k]
    row += 1
    return row, array


PROGRAMS: dict[str, tuple[Any, Callable[..., Any], int]] = {
    "number": (TABLE, lambda array, k: X * array[k], 4),
    "number that is given back": (TABLE, operator.getitem, 4),
    "row": (ROWS, lambda array, k: array[k] * 2, 4),
    "next ones": (ROWS, lambda array, k: array[k // 2] + array[k // 2 - 1], 6),
    "number by two indices": (ROWS, lambda array, k: array[k][1] * 2, 4),
    "global array": (ROWS, lambda array, k: (X * TABLE[k], array[k]), 4),
    "item that is set": (TABLE, set_item, 4),
    "item that is set to its index": (TABLE, set_to_its_index, 8),
    "row that is written to": (ROWS, row_written_to, 4),
}


@pytest.mark.filterwarnings("ignore::stator_guards.RecompileLimitWarning")
@pytest.mark.parametrize("name", PROGRAMS)
def test_index_that_changes_is_symbolic(name: str) -> None:
    """One graph for 0 and 1 each, one for what counts from the end."""
    array, fn, allowed = PROGRAMS[name]
    counting = Counting()
    compiled = stator.compile(fn, backend=counting)
    for k in INDICES:
        mine, theirs = array.copy(), array.copy()
        wanted = describe(result=fn(theirs, k), arguments=(theirs,))
        found = describe(result=compiled(mine, k), arguments=(mine,))
        assert not differences(wanted, found, EXACT), k
    assert counting.count <= allowed


@pytest.mark.parametrize("k", [8, -9])
def test_index_out_of_range_raises_as_in_eager_code(k: int) -> None:
    compiled = stator.compile(lambda array, k: X * array[k], backend="eager")
    for index in (2, 3, k, 4):
        if index == k:
            with pytest.raises(IndexError, match=f"index {k} is out of bounds for axis 0"):
                compiled(TABLE, index)
        else:
            assert torch.equal(compiled(TABLE, index), X * TABLE[index])


@pytest.mark.parametrize("attribute", ["dtype", "itemsize", "nbytes", "ndim", "size"])
def test_attribute_of_the_class_of_a_number_is_captured(attribute: str) -> None:
    read = operator.attrgetter(attribute)

    def fn(x: torch.Tensor, number: Any, k: int) -> Any:
        return x * TABLE[k] * number, read(TABLE[k]), read(TABLE.sum()), read(number)

    counting = Counting()
    compiled = stator.compile(fn, backend=counting, fullgraph=True)
    for k in range(8):
        wanted, *facts = fn(X, np.float32(k), k)
        found, *same = compiled(X, np.float32(k), k)
        assert torch.equal(found, wanted)
        assert facts == same
    assert counting.count <= 2
