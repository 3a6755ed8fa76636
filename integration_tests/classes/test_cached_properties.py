"""`functools.cached_property` where there is no dictionary to keep a value in, or none that can be
written."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import pytest
import stator
import torch
from torch import Tensor

from integration_tests.support.oracle import assert_same


def of_slots() -> Any:
    class Slotted:
        __slots__ = ("x",)

        @functools.cached_property
        def found(self) -> int:
            return 1

    return Slotted()


def of_a_metaclass() -> Any:
    class Meta(type):
        @functools.cached_property
        def found(cls) -> int:
            stator.graph_break()
            return 1

    class OfMeta(metaclass=Meta):
        pass

    return OfMeta


def of_an_object() -> Any:
    class Own:
        @functools.cached_property
        def found(self) -> Any:
            stator.graph_break()
            return [1]

    return Own()


@pytest.mark.parametrize("broken", [False, True])
@pytest.mark.parametrize("inside", [False, True])
@pytest.mark.parametrize("make", [of_slots, of_a_metaclass, of_an_object])
def test_where_a_cached_property_keeps_its_value(
    make: Callable[[], Any], inside: bool, broken: bool
) -> None:
    made = [make(), make()]

    def program(which: int) -> Callable[[Tensor], Any]:
        def run(x: Tensor) -> Any:
            if broken:
                stator.graph_break()
            obj = make() if inside else made[which]
            try:
                return x + 1, obj.found, obj.found is obj.found
            except TypeError as error:
                return x + 1, str(error), error.__context__ is None, error.__suppress_context__

        return run

    assert_same(program(0), stator.compile(program(1), backend="eager"), lambda: (torch.ones(2),))
