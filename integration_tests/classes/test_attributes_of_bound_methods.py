"""Bound methods: what their class defines is theirs, all else is their function's
(`method_getattro`)."""

from __future__ import annotations

import copy
import re
from typing import Any

import pytest
import stator
import torch
from torch import Tensor

from integration_tests.support.oracle import assert_same


class Base:
    def method(self, a: int = 1) -> Any:
        """What it does."""
        return self, a


Base.method.note = 5  # type: ignore[attr-defined]


class Derived(Base):
    def method(self, a: int = 2) -> Any:
        return super().method(a)


@pytest.mark.parametrize("name", [*dir(Base().method), "nothing"])
@pytest.mark.parametrize("cls", [Base, Derived])
def test_attributes_are_those_of_the_method_or_its_function(name: str, cls: type[Base]) -> None:
    def fn(x: Tensor, obj: Base) -> Any:
        found = getattr(obj.method, name, None)
        of = getattr(found, "__self__", None)
        return (
            x + 1,
            hasattr(obj.method, name),
            type(found),
            callable(found),
            of is obj,
            of == obj.method,
            repr(found),
        )

    def outcome(run: Any) -> str:
        return re.sub("0x[0-9a-f]+", "", repr(run(torch.ones(1), cls())))

    compiled = stator.compile(fn, backend="eager")
    assert [outcome(compiled) for _ in range(2)] == [outcome(fn)] * 2


def test_methods_are_copied() -> None:
    def fn(x: Tensor, obj: Base) -> Any:
        made: Any = Derived()
        same = copy.copy(made.method)() == (made, 2), copy.copy(obj.method) == obj.method
        return (
            x + 1,
            same,
            copy.deepcopy(made.method).__self__ is made,
            obj.method.__reduce_ex__(4)[1][1],
        )

    assert_same(fn, stator.compile(fn, backend="eager"), lambda: (torch.ones(1), Base()), calls=2)
