"""Items that are read ahead of an existing iterator."""

# ruff: noqa
from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from stator_variables._objects._iterators._existing_iterator import AHEAD, ahead


class OwnItems(list[int]):
    """Reads its items in its own way, which its iterator does not."""

    def __getitem__(self, index: Any) -> Any:
        raise IndexError(index)

    def __len__(self) -> int:
        return 1000


SEQUENCES: list[Callable[[], Any]] = [
    *(
        lambda: iter([1, 2, 3]),
        lambda: iter((1, 2, 3)),
        lambda: iter(range(3)),
        lambda: iter(range(9, 1, -3)),
    ),
    *(
        lambda: iter("abc"),
        lambda: iter(b"abc"),
        lambda: iter(range(2**70, 2**70 + 3)),
        lambda: iter({1: 2, 3: 4}),
    ),
    *(
        lambda: reversed([1, 2, 3]),
        lambda: reversed((1, 2, 3)),
        lambda: reversed(range(3)),
        lambda: iter([]),
    ),
    lambda: iter(OwnItems([1, 2, 3])),
]


@pytest.mark.parametrize("make", SEQUENCES)
@pytest.mark.parametrize("steps", range(5))
def test_the_items_ahead_are_those_that_an_iterator_gives(
    make: Callable[[], Any], steps: int
) -> None:
    iterator, twin = make(), make()
    for _ in range(steps):
        assert next(iterator, None) == next(twin, None)
    assert [*ahead(iterator)] == [*twin]


def test_the_items_ahead_are_no_more_than_a_trace_looks_at() -> None:
    assert [*ahead(iter(range(10_000)))] == [*range(AHEAD)]
    assert [*ahead(reversed([*range(1000)]))] == [*range(999, 999 - AHEAD, -1)]


def test_items_ahead_of_a_reversed_one_near_the_limit() -> None:
    for size in (AHEAD - 1, AHEAD, AHEAD + 1, AHEAD + 2):
        assert [*ahead(reversed([*range(size)]))] == [*range(size)][::-1][:AHEAD]
