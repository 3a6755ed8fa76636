"""A dict gets a key while iterators over it are there: on the stack of a loop, in a local variable,
below another iterator, or gone."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import stator
import torch
from torch import Tensor

from integration_tests.support.oracle import assert_same

Table = dict[str, int]


def in_a_loop(x: Tensor, table: Table) -> Any:
    for key in table:
        table[key + "'"] = 1
        x = x + 1
    return x


def below_a_zip(x: Tensor, table: Table) -> Any:
    for key, value in zip(table, [2, 3], strict=True):
        table[key + "'"] = 1
        x = x + value
    return x


def below_two(x: Tensor, table: Table) -> Any:
    pairs = enumerate(filter(None, iter(table)))
    next(pairs)
    table["c"] = 4
    return x + 1, next(pairs)


def after_a_break(x: Tensor, table: Table) -> Any:
    for key in table:
        if key == "a":
            break
    table["c"] = 4
    return x + len(table)


def while_handling_an_exception(x: Tensor, table: Table) -> Any:
    """The stack has more than values: the exception that was handled before, and where another was
    raised."""
    first = next(iter(table))
    try:
        raise ValueError(first)
    except ValueError:
        try:
            table["c"] = 4
            x = x + table["d"]
        except KeyError:
            table["d"] = 5
        finally:
            table["e"] = 6
    return x + len(table)


def outcome(fn: Callable[..., Any]) -> Callable[..., Any]:
    def run(x: Tensor, table: Table) -> Any:
        try:
            return fn(x, table), table
        except RuntimeError as error:
            return str(error), table

    return run


@pytest.mark.parametrize(
    "fn", [in_a_loop, below_a_zip, below_two, after_a_break, while_handling_an_exception]
)
def test_a_dict_that_gets_a_key(fn: Callable[..., Any]) -> None:
    def over_a_new_one(x: Tensor, table: Table) -> Any:
        return fn(x, {**table})

    for function in (fn, over_a_new_one):
        compiled = stator.compile(function, backend="eager")
        assert_same(outcome(function), outcome(compiled), lambda: (torch.ones(2), {"a": 1, "b": 2}))
