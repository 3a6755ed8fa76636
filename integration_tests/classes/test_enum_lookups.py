"""Members of enums looked up by value, and combinations of flags, in a class that nobody has asked
for them before."""

from __future__ import annotations

import enum
from collections.abc import Callable
from typing import Any

import pytest
import stator
import torch
from torch import Tensor

from integration_tests.support.counting import Counting


def color() -> Any:
    class Color(enum.Enum):
        RED = 1
        GREEN = "green"
        CRIMSON = 1

        @classmethod
        def _missing_(cls, value: object) -> Any:
            return cls.RED if value == "any" else None

    return Color


def flags(base: Any) -> Callable[[], Any]:
    def make() -> Any:
        class Access(base):  # type: ignore[misc]
            READ = 1
            WRITE = 2
            RUN = 4

        return Access

    return make


def bounded() -> Any:
    class Bounded(enum.Flag, boundary=enum.CONFORM):
        LOW = 1
        HIGH = 4

    return Bounded


def flags_of(x: Tensor, cls: Any) -> Any:
    first, *_, last = list(cls)
    both = first | last
    names = [member.name for member in both]
    return (
        x + len(names),
        both,
        both & first,
        both ^ first,
        ~first,
        first in both,
        bool(both),
        names,
    )


def by_value(x: Tensor, cls: Any) -> Any:
    members = list(cls)
    found = [cls(member.value) for member in members]
    try:
        found.append(cls("any"))
    except ValueError as error:
        found.append(str(error))
    return x, found, [a is b for a, b in zip(found, members, strict=False)], cls(members[0])


KINDS = {
    "enum": color,
    "flag": flags(enum.Flag),
    "flag of ints": flags(enum.IntFlag),
    "bounded flag": bounded,
}


@pytest.mark.parametrize("kind", KINDS)
def test_members_are_found_by_value(kind: str) -> None:
    cls, counting = KINDS[kind](), Counting()
    compiled = stator.compile(by_value, backend=counting, fullgraph=True)
    for _ in range(3):
        found = compiled(torch.ones(2), cls)
        assert found[1:] == by_value(torch.ones(2), cls)[1:]


@pytest.mark.parametrize("kind", ["flag", "flag of ints", "bounded flag"])
def test_combinations_of_flags_are_made_in_one_entry(kind: str) -> None:
    cls, counting = KINDS[kind](), Counting()
    compiled = stator.compile(flags_of, backend=counting, fullgraph=True)
    for _ in range(4):
        found = compiled(torch.ones(2), cls)
        wanted = flags_of(torch.ones(2), cls)
        assert torch.equal(found[0], wanted[0])
        assert found[1:] == wanted[1:]
        assert all(a is b for a, b in zip(found[1:5], wanted[1:5], strict=True))
    assert counting.count == 1


def test_flags_of_ints_are_combined_with_ints() -> None:
    def mixed(x: Tensor, flag: Any) -> Any:
        return x * (flag | 8), flag | 8, flag & 1, flag + 1, 2 | flag, flag ^ 3, ~flag

    cls = KINDS["flag of ints"]()
    compiled = stator.compile(mixed, backend="eager", fullgraph=True)
    for flag in (cls.READ, cls.RUN, cls.READ):
        found, wanted = compiled(torch.ones(2), flag), mixed(torch.ones(2), flag)
        assert found[1:] == wanted[1:]
        assert [*map(type, found[1:])] == [*map(type, wanted[1:])]


def test_a_hook_of_the_program_is_called_by_each_look_up_that_needs_it() -> None:
    asked = []

    class Asking(enum.Flag):
        ONE = 1
        TWO = 2

        @classmethod
        def _missing_(cls, value: Any) -> Any:
            asked.append(value)
            return super()._missing_(value)

    def combine(x: Tensor) -> Any:
        return x, Asking.ONE | Asking.TWO

    compiled = stator.compile(combine, backend="eager")
    for _ in range(3):
        found = compiled(torch.ones(2))[1]
        assert found is Asking(3)
    assert asked == [3]


def test_members_of_a_set_have_their_names() -> None:
    def names(x: Tensor, members: Any) -> Any:
        return x, sorted(member.name for member in members)

    cls = color()
    compiled = stator.compile(names, backend="eager", fullgraph=True)
    for members in ({cls.RED}, {cls.RED, cls.GREEN}, {cls.RED}):
        assert compiled(torch.ones(2), members)[1] == sorted(each.name for each in members)


@pytest.mark.parametrize("base", [enum.Flag, enum.IntFlag])
def test_flags_of_a_class_made_here_are_inverted(base: Any) -> None:
    def make(x: Tensor) -> Any:
        class Open(base):  # type: ignore[misc]
            A = 1
            B = 2
            AB = 3

        return x, ~Open.A is Open.B, ~Open.AB is Open(0), str(~Open.A), Open.A | Open.B is Open.AB

    compiled = stator.compile(make, backend="eager")
    for _ in range(2):
        assert compiled(torch.ones(2))[1:] == make(torch.ones(2))[1:]
