"""`functools.cmp_to_key` in a region, out of it, and into it."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import pytest
import stator
import torch
from torch import Tensor

from integration_tests.support.oracle import assert_same

LOG: list[Any] = []
cmp_to_key: Any = functools.cmp_to_key


def by_last(a: Any, b: Any) -> int:
    LOG.append((a, b))
    return int(a % 10 - b % 10)


def sorts(x: Tensor) -> Any:
    return sorted([31, 12, 23, x.shape[0]], key=cmp_to_key(by_last)), max(
        3, 12, key=cmp_to_key(by_last)
    )


def is_handed_out(x: Tensor) -> Any:
    key: Any = cmp_to_key(by_last)
    stator.graph_break()
    one = key(31)
    return (
        type(key).__name__,
        key.obj,
        type(one).__name__,
        one.obj,
        type(one) is type(key),
        one < key(12),
    )


def compares(x: Tensor) -> Any:
    key = cmp_to_key(mycmp=by_last)
    a, b = key(31), key(obj=12)
    stator.graph_break()
    return a < b, a <= b, a == b, a != b, a > b, a >= b, a == a  # noqa: PLR0124


def compares_with_others(x: Tensor) -> Any:
    key: Any = cmp_to_key(by_last)
    found = []
    for use in (
        lambda: key(1) < 3,
        lambda: key(1) == 3,
        lambda: key(1) > 3,
        lambda: key < key(1),
        key,
        lambda: key(1, 2),
        cmp_to_key,
        lambda: hash(key),
        lambda: key.more,
        lambda: key(key(1)) < key(key(2)),
    ):
        try:
            found.append(str(use()))
        except (TypeError, AttributeError) as error:
            found.append(str(error))
    return found


def changes_its_object(x: Tensor) -> Any:
    one: Any = cmp_to_key(by_last)(1)
    one.obj = 9
    return one.obj, one < cmp_to_key(by_last)(2)


def in_a_class(x: Tensor) -> Any:
    class Sorter:
        key = cmp_to_key(by_last)

    return sorted([31, 12, 23], key=Sorter.key), Sorter().key(4).obj


def over_a_break(x: Tensor) -> Any:
    key = cmp_to_key(by_last)
    keys = [key(value) for value in (31, 12, 23)]
    held = {"keys": keys}
    stator.graph_break()
    keys.sort()
    return [one.obj for one in held["keys"]], [one.obj for one in sorted(keys, reverse=True)]


def raising(x: Tensor) -> Any:
    try:
        return sorted([2, 1], key=cmp_to_key(lambda a, b: a // 0))
    except ZeroDivisionError as error:
        return str(error)


def gives_something_else(x: Tensor) -> Any:
    return sorted([2.5, 1.5], key=cmp_to_key(lambda a, b: a - b)), cmp_to_key(lambda a, b: x + a)(
        1
    ) < cmp_to_key(by_last)(2)


PROGRAMS = [
    *(
        sorts,
        is_handed_out,
        compares,
        compares_with_others,
        changes_its_object,
        in_a_class,
        over_a_break,
        raising,
    ),
    gives_something_else,
]


@pytest.mark.parametrize("broken", [False, True])
@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.__name__)
def test_keys(program: Callable[[Tensor], Any], broken: bool) -> None:
    def run(x: Tensor) -> Any:
        LOG.clear()
        found = program(x)
        if broken:
            stator.graph_break()
        return x + 1, found, [*LOG]

    size = iter([1, 1, 2, 2, 3, 3, 1, 1])
    assert_same(
        run, stator.compile(run, backend="eager"), lambda: (torch.ones(next(size)),), calls=4
    )


def test_what_leaves_is_what_functools_gives() -> None:
    def run(x: Tensor) -> Any:
        key = cmp_to_key(by_last)
        return key, key(3)

    compiled = stator.compile(run, backend="eager", fullgraph=True)
    for _ in range(2):
        key, one = compiled(torch.ones(1))
        assert type(key) is type(one) is type(cmp_to_key(by_last))
        assert one.obj == 3
        assert key(31) < one


def test_one_from_outside() -> None:
    key: Any = cmp_to_key(by_last)

    def run(x: Tensor, one: Any) -> Any:
        return x + 1, one < key(3), sorted([31, 12], key=key), one.obj

    compiled = stator.compile(run, backend="eager")
    for value in (1, 5, 13):
        assert str(compiled(torch.ones(1), key(value))) == str(run(torch.ones(1), key(value)))
