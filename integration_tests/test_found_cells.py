"""Variables in cells that calls leave bound or unbound: what a graph only hands on is there, or the program says so."""

from __future__ import annotations

from typing import Any

import pytest
import stator
import torch
from torch import Tensor

from integration_tests.oracle import assert_same


def handed(value: Any) -> Any:
    return value


def to_a_function(x: Tensor, deletes: bool) -> Any:
    t = x + 1

    def inner() -> None:
        nonlocal t
        if deletes:
            del t

    inner()
    stator.graph_break()
    t = handed(t)
    return t


def out_of_an_attempt(x: Tensor, deletes: bool) -> Any:
    t = x + 1

    def inner() -> None:
        nonlocal t
        stator.graph_break()
        if deletes:
            del t

    inner()
    stator.graph_break()
    try:
        return [t]
    except NameError:
        return 3


def into_a_dict(x: Tensor, deletes: bool) -> Any:
    t = x + 1

    def inner() -> None:
        nonlocal t
        if deletes:
            del t

    inner()
    stator.graph_break()
    return {"t": t, "x": x * 2}


def in_another_function(x: Tensor, deletes: bool) -> Any:
    t = x + 1

    def inner() -> Any:
        return [t]

    if deletes:
        del t
    stator.graph_break()
    return inner()


def again(x: Tensor, deletes: bool) -> Any:
    t = x + 1

    def inner() -> Any:
        nonlocal t
        if deletes:
            del t

    stator.graph_break()
    inner()
    stator.graph_break()
    t = x * 3
    return inner, t


PROGRAMS = [to_a_function, out_of_an_attempt, into_a_dict, in_another_function, again]


@pytest.mark.parametrize("calls", [(False, True, False), (True, False, True)])
@pytest.mark.parametrize("mode", [False, "calls", 3, 5, "operations"])
@pytest.mark.parametrize("fn", PROGRAMS, ids=lambda fn: fn.__name__)
def test_a_variable_that_is_handed_on_is_there(fn: Any, mode: Any, calls: tuple[bool, ...]) -> None:
    remaining = iter(calls)
    compiled = stator.compile(fn, backend="eager", options={"break_everywhere": mode})
    assert_same(fn, compiled, lambda: (torch.ones(2), next(remaining)))
