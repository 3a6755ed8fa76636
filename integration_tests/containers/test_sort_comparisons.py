"""Which comparisons a sort makes, and what one that raises leaves of the list
(Objects/listobject.c)."""

from __future__ import annotations

from typing import Any

import pytest
import stator
import torch
from torch import Tensor

from integration_tests.support.oracle import assert_same


class Grade:
    """Compares by its number; 4 cannot be compared."""

    def __init__(self, number: int) -> None:
        self.number = number

    def __lt__(self, other: Grade) -> bool:
        if 4 in (self.number, other.number):
            raise TypeError(self.number)
        return self.number < other.number


def grades(*numbers: int) -> list[Any]:
    return [Grade(number) for number in numbers]


LISTS: dict[str, Any] = {
    "an ordered start": lambda: [1, 2, "a", 0],
    "a start that descends": lambda: [3, 2, 1, "a", 0],
    "some inserted": lambda: [3, 1, 2, 0, "a", -1],
    "the first": lambda: ["a", 2, 1],
    "objects": lambda: grades(7, 3, 5, 2, 4, 1),
    "objects that descend": lambda: grades(7, 5, 3, 4, 1),
    "objects, none raising": lambda: grades(7, 3, 5, 2),
}


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("name", LISTS)
def test_a_sort_that_raises_leaves_what_is_sorted_so_far(name: str, reverse: bool) -> None:
    def fn(x: Tensor) -> Any:
        items = LISTS[name]()
        going = iter(items)
        try:
            items.sort(reverse=reverse)
        except TypeError as error:
            return x + 1, items, [*going], str(error)
        return x + 1, items, [*going]

    assert_same(fn, stator.compile(fn, backend="eager"), lambda: (torch.ones(2),), calls=2)


def test_a_list_from_outside_is_left_so_too() -> None:
    def fn(x: Tensor, items: list[Any]) -> Any:
        try:
            items.sort()
        except TypeError:
            items.append("failed")
        return x + len(items)

    assert_same(
        fn, stator.compile(fn, backend="eager"), lambda: (torch.ones(2), [3, 1, 2, "a"]), calls=2
    )


@pytest.mark.parametrize("reverse", [False, True])
def test_a_key_that_raises_leaves_the_list_as_it_was(reverse: bool) -> None:
    def fn(x: Tensor) -> Any:
        items = [3, 2, 1]
        try:
            items.sort(key=lambda item: 1 / (item - 2), reverse=reverse)
        except ZeroDivisionError as error:
            return x + 1, items, str(error)
        return x + 1, items

    assert_same(fn, stator.compile(fn, backend="eager"), lambda: (torch.ones(2),), calls=2)


RUNS = {
    "an ordered start": (1, 2, 3, 0, 2),
    "equal at the start, then less": (2, 2, 2, 1, 1, 0, 3),
    "that descends with equals": (5, 4, 4, 4, 3, 1, 1, 0),
    "that descends once": (3, 1, 2),
    "one": (1,),
}


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("consistent", [False, True])
@pytest.mark.parametrize("name", RUNS)
def test_a_sort_makes_the_comparisons_that_this_cpython_makes(
    name: str, consistent: bool, reverse: bool
) -> None:
    def fn(x: Tensor) -> Any:
        made: list[Any] = []

        class Noting(Grade):
            def __lt__(self, other: Grade) -> bool:
                made.append((self.number, other.number))
                return self.number < other.number if consistent else len(made) % 3 == 0

        return (
            x + 1,
            [item.number for item in sorted(map(Noting, RUNS[name]), reverse=reverse)],
            made,
        )

    assert_same(fn, stator.compile(fn, backend="eager"), lambda: (torch.ones(2),), calls=2)
