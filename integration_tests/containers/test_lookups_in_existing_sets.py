"""Look-ups in existing sets of composed values: tuples, sizes, ranges, frozen dataclasses and the
like."""

from __future__ import annotations

import collections
import dataclasses
import itertools
from collections.abc import Callable
from typing import Any

import pytest
import stator
import torch
from torch import Tensor

from integration_tests.support.counting import Counting
from integration_tests.support.oracle import assert_same

Pair = collections.namedtuple("Pair", "first second")
NAN = float("nan")


@dataclasses.dataclass(frozen=True)
class Place:
    row: int
    name: str = "a"


class Counted:
    """A member whose hash and equality are computed in Python."""

    def __init__(self, number: int) -> None:
        self.number = number

    def __hash__(self) -> int:
        return hash(self.number)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Counted) and other.number == self.number

    def __repr__(self) -> str:
        return f"Counted({self.number})"


MEMBERS: dict[str, tuple[Callable[[], Any], Callable[[], Any]]] = {
    "tuples": (lambda: {(1, 2), (3, 4)}, lambda: (1, 2)),
    "nested tuples": (lambda: {("a", (1, torch.int8)), ("b", ())}, lambda: ("a", (1, torch.int8))),
    "sizes": (lambda: {torch.Size([1, 2]), torch.Size([3])}, lambda: torch.Size([3])),
    "devices": (lambda: {torch.device("cpu"), torch.device("meta")}, lambda: torch.device("cpu")),
    "dtypes": (lambda: {torch.int8, torch.float32}, lambda: torch.int8),
    "ranges": (lambda: {range(3), range(1, 3)}, lambda: range(3)),
    "frozensets": (lambda: {frozenset({1}), frozenset({2, 3})}, lambda: frozenset({3, 2})),
    "named tuples": (lambda: {Pair(1, 2), Pair(3, 4)}, lambda: Pair(3, 4)),
    "frozen dataclasses": (lambda: {Place(1), Place(2)}, lambda: Place(2)),
    "objects": (lambda: {Counted(1), Counted(5)}, lambda: Counted(5)),
    "several kinds": (lambda: {1, None, "a", (1, 2), int, 2.5, (int, 1)}, lambda: (int, 1)),
}
COMPARED_IN_PYTHON = ("frozen dataclasses", "objects")


def looked_up(x: Tensor, members: Any, key: Any) -> Tensor:
    return x + 1 if key in members else x - 1


def listed(x: Tensor, members: Any, key: Any) -> Any:
    found = [member for member in members if member == key]
    return x * len(members), found, members <= {key}, members == {key}


def combined(x: Tensor, members: Any, key: Any) -> Any:
    return x, members | {key}, members - {key}, members & {key}, members ^ {key}


@pytest.mark.parametrize("fn", [looked_up, listed])
@pytest.mark.parametrize("kind", [frozenset, set])
@pytest.mark.parametrize("name", MEMBERS)
def test_members_are_found_in_one_graph(fn: Any, kind: Any, name: str) -> None:
    make, key = MEMBERS[name]
    compiled = stator.compile(fn, backend="eager", fullgraph=True)
    assert_same(fn, compiled, lambda: (torch.ones(2), kind(make()), key()), 3)
    assert_same(fn, compiled, lambda: (torch.ones(2), kind(make()), 7), 2)
    assert_same(fn, compiled, lambda: (torch.ones(2), kind([key()]), key()), 2)


@pytest.mark.parametrize("fn", [looked_up, listed])
@pytest.mark.parametrize(
    "key", [(True, 2.0), (NAN,), (), (1, 2, 3)], ids=["equal number", "NaN", "empty", "longer"]
)
def test_keys_are_compared_as_python_compares_them(fn: Any, key: Any) -> None:
    members = frozenset({(1, 2), (3.0, 4), (NAN,)})
    compiled = stator.compile(fn, backend="eager", fullgraph=True)
    for _ in range(2):
        wanted, found = fn(torch.ones(2), members, key), compiled(torch.ones(2), members, key)
        assert repr(wanted) == repr(found)


def test_a_look_up_relies_on_its_answer_alone() -> None:
    counting = Counting()
    compiled = stator.compile(looked_up, backend=counting)
    for number in range(8):
        x = torch.ones(2)
        assert torch.equal(compiled(x, {(1, 2), (number, 5)}, (1, 2)), x + 1)
        assert torch.equal(compiled(x, {(number, 5)}, (1, 2)), x - 1)
    assert counting.count == 2


@pytest.mark.parametrize("name", [name for name in MEMBERS if name not in COMPARED_IN_PYTHON])
def test_operators_keep_the_members(name: str) -> None:
    make, key = MEMBERS[name]
    compiled = stator.compile(combined, backend="eager", fullgraph=True)
    assert_same(combined, compiled, lambda: (torch.ones(2), make(), key()), 3)


def first_equal(x: Tensor, members: Any) -> Any:
    return x + 1, next(member for member in members if member == (1, 2))


def test_members_keep_their_identity() -> None:
    compiled = stator.compile(first_equal, backend="eager", fullgraph=True)
    for number in (2, 2, 2):
        pair = (1, number)
        members = {(3, 4), pair}
        assert compiled(torch.ones(2), members)[1] is pair


def ordered(x: Tensor, members: Any) -> Any:
    return x + 1, list(members)


def test_members_come_in_the_order_of_each_set() -> None:
    compiled = stator.compile(ordered, backend="eager", fullgraph=True)
    for number in (1, 8, 16, 24, 1):
        members = {(number, number), (0, 0), (number * 2, 1)}
        assert compiled(torch.ones(2), members)[1] == list(members)


def changed(x: Tensor, members: Any, key: Any) -> Any:
    if key in members:
        members.discard(key)
        return x - len(members)
    members.add(key)
    return x + len(members), (1, 2) in members, key in members


@pytest.mark.parametrize("name", MEMBERS)
def test_changes_of_the_set_are_kept(name: str) -> None:
    make, key = MEMBERS[name]
    compiled = stator.compile(changed, backend="eager", fullgraph=True)
    keys: Any = itertools.cycle([key, key, lambda: (5, 5)])
    assert_same(changed, compiled, lambda: (torch.ones(2), make(), next(keys)()), 6)


def owned(x: Tensor, members: Any, owner: Any) -> Tensor:
    return x + 1 if (owner, 1) in members else x - 1


def test_an_object_inside_a_key_is_told_from_another() -> None:
    owners = [object(), object(), object()]
    members = {(owners[0], 1), (owners[1], 1)}
    compiled = stator.compile(owned, backend="eager", fullgraph=True)
    for owner in (*owners, *owners):
        x = torch.ones(2)
        assert torch.equal(compiled(x, members, owner), owned(x, members, owner))


def test_a_member_that_was_changed_keeps_the_hash_it_was_added_with() -> None:
    compiled = stator.compile(looked_up, backend="eager")
    for change in (5, 6, 1):
        member = Counted(1)
        members = {member, Counted(9)}
        member.number = change
        for key in (Counted(1), Counted(5), Counted(9)):
            x = torch.ones(2)
            assert torch.equal(compiled(x, members, key), looked_up(x, members, key))


class Settings:
    """A configuration whose values are read through a check of their type, as OmegaConf does."""

    allowed = frozenset({(int, "plain"), (float, "plain"), (str, "text")})

    def __init__(self, **values: Any) -> None:
        self.__dict__["values"] = values

    def __getattr__(self, name: str) -> Any:
        value = self.values[name]
        kind = "text" if isinstance(value, str) else "plain"
        if (type(value), kind) not in self.allowed:
            raise AttributeError(name)
        return value


def configured(x: Tensor, settings: Settings) -> Tensor:
    return x * settings.scale + settings.width if settings.mode == "train" else x


def test_a_configuration_that_checks_its_values_is_read_in_one_graph() -> None:
    counting = Counting()
    compiled = stator.compile(configured, backend=counting, fullgraph=True)
    settings = Settings(scale=2.0, width=3, mode="train")
    for _ in range(4):
        x = torch.ones(2)
        assert torch.equal(compiled(x, settings), configured(x, settings))
    assert counting.count == 1
