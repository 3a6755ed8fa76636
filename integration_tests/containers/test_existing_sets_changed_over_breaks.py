"""A set that was there before the entry, is changed in it, and gone through over breaks: the
iterator is made late."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import stator
import torch
from torch import Tensor

from integration_tests.support.oracle import assert_same


class Member:
    def __init__(self, number: int) -> None:
        self.number = number

    def __hash__(self) -> int:
        return self.number % 3

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Member) and self.number == other.number

    def __repr__(self) -> str:
        return f"Member {self.number}"


def adds(group: set[Any]) -> None:
    group.add(7)
    group |= {1, 12, 3}


def removes(group: set[Any]) -> None:
    group.discard(8)
    group -= {16, 2}


def adds_and_removes(group: set[Any]) -> None:
    for number in range(9):
        group.add(number * 8)
    for number in range(0, 9, 2):
        group.discard(number * 8)


def adds_members(group: set[Any]) -> None:
    group |= {Member(number) for number in (1, 4, 7)}
    group.discard(Member(4))


def clears(group: set[Any]) -> None:
    group.clear()
    group.add("a")


@pytest.mark.parametrize("change", [adds, removes, adds_and_removes, adds_members, clears])
@pytest.mark.parametrize("made", ["here", "outside"])
@pytest.mark.parametrize("leaves", [False, True])
def test_a_changed_set_is_gone_through_over_breaks(
    change: Callable[[set[Any]], None], made: str, leaves: bool
) -> None:
    def run(x: Tensor, given: set[Any]) -> Any:
        group = given if made == "outside" else {8, 16, 2, 40}
        stator.graph_break()
        change(group)
        seen = []
        it = iter(group)
        for item in it:
            seen.append(getattr(item, "number", item))
            if leaves and len(seen) > 1:
                break
            stator.graph_break()
        return x + len(seen), seen, len([*it])

    assert_same(run, stator.compile(run, backend="eager"), lambda: (torch.ones(2), {8, 16, 2}))


def test_one_added_in_a_continuation_leaves_nothing_plain() -> None:
    def run(x: Tensor, name: str) -> Any:
        names = set[str]()
        stator.graph_break()
        names.add(name)
        for each in names:
            stator.graph_break()
            x = x + len(each)
        return x

    compiled = stator.compile(run, backend="eager")
    assert_same(run, compiled, lambda: (torch.ones(2), "ab"))
    assert "plainly" not in str(compiled.report)
