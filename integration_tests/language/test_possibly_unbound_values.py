"""Cells, slots and attributes that are there in one call and not in the next: also what a graph
only hands on is there, or the program says that it is not."""

from __future__ import annotations

import contextvars
import copy
import functools
import itertools
from typing import Any

import numpy as np
import pytest
import stator
import torch
from torch import Tensor

from integration_tests.support.oracle import assert_same


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


class Slotted:
    __slots__ = ("a", "b")


class Asked(Slotted):
    __slots__ = ()

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return len(name)


class Plain:
    a: Any


def reads(x: Tensor, o: Any) -> Any:
    return x + 1, [o.a]


def moves(x: Tensor, o: Any) -> Any:
    o.b = o.a
    return x + 1


def asks(x: Tensor, o: Any) -> Any:
    return x + 1, hasattr(o, "a"), getattr(o, "a", 3)


def deletes(x: Tensor, o: Any) -> Any:
    try:
        del o.a
    except AttributeError as error:
        return x + 1, str(error)
    return x + 2


def across_a_break(x: Tensor, o: Any) -> Any:
    found = o.a
    stator.graph_break()
    return found


@pytest.mark.parametrize("calls", [(0, 1, 0), (1, 0, 1)])
@pytest.mark.parametrize("mode", [False, 3, "operations"])
@pytest.mark.parametrize("owner", [Slotted, Asked, Plain, lambda: torch.ones(1), torch.nn.Module])
@pytest.mark.parametrize(
    "fn", [reads, moves, asks, deletes, across_a_break], ids=lambda fn: fn.__name__
)
def test_an_attribute_that_is_handed_on_is_there(
    fn: Any, owner: Any, mode: Any, calls: tuple[int, ...]
) -> None:
    remaining = iter(calls)

    def call() -> tuple[Any, ...]:
        o = owner()
        if next(remaining):
            o.a = torch.ones(2)
        return torch.ones(2), o

    assert_same(fn, stator.compile(fn, backend="eager", options={"break_everywhere": mode}), call)


@pytest.mark.parametrize(
    "text",
    [
        *(
            "divmod('12', n)",
            "divmod(n, None)",
            "divmod(2.5, n)",
            "divmod(n, True)",
            "divmod(n, np.int64(2))",
        ),
        *(
            "np.dtype(-1)",
            "np.dtype('R')",
            "np.dtype(None)",
            "np.dtype(n)",
            "np.dtype('f4') == 'R'",
        ),
        *(
            "sum(3, 'a')",
            "sum([], 'a')",
            "sum([[n]], [])",
            "sum(3, b'a')",
            "itertools.tee(1, 0)",
            "itertools.tee(n)",
        ),
        *("delattr(x, 'zzz')", "delattr(x.sum(), 'zzz')", "x.__delattr__('zzz')"),
    ],
)
def test_what_a_call_refuses_is_the_programs_error(text: str) -> None:
    fn = eval(f"lambda x, n: (x + 1, {text})", {"itertools": itertools, "np": np})
    sizes = iter((2, 3, 4))

    def call() -> tuple[Tensor, int]:
        size = next(sizes)
        return torch.ones(size), size

    assert_same(fn, stator.compile(fn, backend="eager"), call)


class Parts:
    def __init__(self, number: int) -> None:
        self.a = [1, number]
        self.b = {"k": [number]}
        self.c = (self.a,)


@pytest.mark.parametrize("mode", [False, 2, 3, 4, 5])
def test_a_copy_keeps_its_memo_by_identities_across_breaks(mode: Any) -> None:
    def f(x: Tensor) -> Any:
        return copy.deepcopy(Parts(2)), x + 1

    flags = iter((False, True, True, False))
    compiled = stator.compile(f, backend="eager", options={"break_everywhere": mode})
    assert_same(f, compiled, lambda: (torch.ones(2, requires_grad=next(flags)),), calls=4)


VARIABLE: contextvars.ContextVar[Any] = contextvars.ContextVar("VARIABLE")


@pytest.mark.parametrize("calls", [(True, False, True), (False, True, False)])
@pytest.mark.parametrize(
    "ask", [lambda: [VARIABLE.get()], lambda: (VARIABLE.get(None), 1), lambda: VARIABLE.get(3)]
)
def test_a_context_variable_that_is_handed_on_is_set(ask: Any, calls: tuple[bool, ...]) -> None:
    def f(x: Tensor) -> Any:
        try:
            found = ask()
        except LookupError as error:
            return x + 2, type(error)
        stator.graph_break()
        return found, x + 1

    def run(fn: Any, sets: bool) -> Any:
        if sets:
            VARIABLE.set([4])
        return fn(torch.ones(2))[0]

    compiled = stator.compile(f, backend="eager")
    for sets in calls:
        expected, found = (contextvars.copy_context().run(run, fn, sets) for fn in (f, compiled))
        assert str(found) == str(expected)


@functools.lru_cache(maxsize=2)
def cached(a: Any) -> Any:
    return a + 1


def a_number(x: Tensor, n: int) -> Any:
    return cached(7 % n), x + 1


def a_size(x: Tensor, n: int) -> Any:
    return cached(x.shape[0] * 10 // n), x + 1


def twice(x: Tensor, n: int) -> Any:
    m = 9 % n
    return cached(m + n), m, x + 1


@pytest.mark.parametrize("mode", [False, 3, "operations"])
@pytest.mark.parametrize("numbers", [(-1, 3, 0), (3, 4, 0, 5), (2, 5, 7, 0, 0)])
@pytest.mark.parametrize("fn", [a_number, a_size, twice], ids=lambda fn: fn.__name__)
def test_what_a_cache_is_asked_for_may_divide_by_zero(
    fn: Any, numbers: tuple[int, ...], mode: Any
) -> None:
    """A guard that cannot compute its number fails, and the program raises on its own line."""
    cached.cache_clear()
    remaining = iter(numbers)
    compiled = stator.compile(fn, backend="eager", options={"break_everywhere": mode})
    assert_same(fn, compiled, lambda: (torch.ones(5), next(remaining)), calls=len(numbers))
