"""Iterators of itertools that have been started and leave the region: real ones that stand where
those stood, and share what those shared."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import pytest
import stator
import torch
from torch import Tensor

PROGRAMS: list[Callable[[Tensor], Any]] = []
LOG: list[Any] = []


def program(fn: Callable[[Tensor], Any]) -> Callable[[Tensor], Any]:
    PROGRAMS.append(fn)
    return fn


class Key:
    def __init__(self, value: int) -> None:
        self.value = value

    def __eq__(self, other: object) -> bool:
        LOG.append((self.value, getattr(other, "value", None)))
        return self.value == getattr(other, "value", None)

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"Key{self.value}"


def noted(value: int) -> int:
    LOG.append(value)
    return value // 2


def breaking(value: int) -> int:
    stator.graph_break()
    return noted(value)


@program
def a_groupby(x: Tensor) -> Any:
    groups = itertools.groupby([1, 1, x.shape[0], 3])
    return next(groups)[0], groups


@program
def a_group_and_its_groupby(x: Tensor) -> Any:
    groups = itertools.groupby([1, 1, x.shape[0], 3])
    _, group = next(groups)
    return group, groups


@program
def a_group_that_gave_one(x: Tensor) -> Any:
    groups = itertools.groupby([1, 1, 2, 3], key=noted)
    _, group = next(groups)
    return next(group), group, groups


@program
def a_group_that_gave_all(x: Tensor) -> Any:
    groups = itertools.groupby([1, 1, 2, 3], key=Key)
    _, group = next(groups)
    return list(group), group, groups


@program
def a_group_that_is_past(x: Tensor) -> Any:
    groups = itertools.groupby([1, 1, 2, 2, 3], key=Key)
    return *(next(groups)[1] for _ in range(2)), groups


@program
def a_groupby_at_its_end(x: Tensor) -> Any:
    groups = itertools.groupby([1, 1, 2, 3], key=noted)
    return [key for key, _ in groups], groups


@program
def a_groupby_that_failed(x: Tensor) -> Any:
    groups: Any = itertools.groupby([1, 0, 2], key=lambda value: 1 // value)
    next(groups)
    try:
        next(groups)
    except ZeroDivisionError:
        return groups


@program
def all_groups(x: Tensor) -> Any:
    return [*itertools.groupby("aab")]


@program
def a_groupby_in_a_dict_over_breaks(x: Tensor) -> Any:
    held: dict[str, Any] = {"groups": itertools.groupby([1, 1, 1, 2, 3], key=Key)}
    _, group = next(held["groups"])
    stator.graph_break()
    first = next(group)
    stator.graph_break()
    return first, list(group), next(held["groups"]), held["groups"]


@program
def a_group_in_a_dict_over_breaks(x: Tensor) -> Any:
    groups = itertools.groupby([1, 1, 1, 2, 3], key=noted)
    held: dict[str, Any] = {"group": next(groups)[1]}
    stator.graph_break()
    first = next(held["group"])
    stator.graph_break()
    return first, held["group"], groups, held["group"]


@program
def both_tees(x: Tensor) -> Any:
    a, b = itertools.tee(iter([1, x.shape[0], 3]))
    return next(a), a, b


@program
def one_of_three_tees(x: Tensor) -> Any:
    a, b, c = itertools.tee((i for i in range(4)), 3)
    return next(a), next(a), next(b), c


@program
def a_tee_over_breaks(x: Tensor) -> Any:
    a, b = itertools.tee(i for i in range(6))
    held = {"a": a}
    first = next(a)
    stator.graph_break()
    second = next(b), next(b)
    stator.graph_break()
    return first, second, next(held["a"]), held["a"], b


@program
def a_tee_of_a_tee(x: Tensor) -> Any:
    a, b = itertools.tee([1, 2])
    (c,) = itertools.tee(a, 1)
    return next(c), a, b, c


@program
def tees_in_a_list(x: Tensor) -> Any:
    pair: list[Any] = [*itertools.tee(iter([1, 2, 3]))]
    pair.append(pair[0])
    return pair


@program
def a_tee_of_what_holds_it(x: Tensor) -> Any:
    held: list[Any] = []
    a, b = itertools.tee(iter(held))
    held += [a, 1]
    return b


@program
def a_tee_of_what_asks_it(x: Tensor) -> Any:
    class Asks:
        def __iter__(self) -> Any:
            return self

        def __next__(self) -> Any:
            asked.append(next(b) if not asked else len(asked))
            return asked[-1] if len(asked) < 4 else next(iter(()))

    asked: list[Any] = []
    a, b = itertools.tee(Asks())
    try:
        next(a)
    except RuntimeError as error:
        asked.append(str(error))
    return asked, a, b


@program
def a_tee_that_gave_itself(x: Tensor) -> Any:
    held: list[Any] = []
    a, b = itertools.tee(iter(held))
    held += [a, 1]
    return next(b) is a, b


@program
def a_list_that_holds_its_iterator(x: Tensor) -> Any:
    held: list[Any] = []
    iterator = iter(held)
    held += [iterator, 1]
    return next(iterator) is iterator, held[1:], iterator


@program
def a_groupby_of_nones(x: Tensor) -> Any:
    groups = itertools.groupby([None, None, 1])
    _, group = next(groups)
    return next(group), group, groups


@program
def a_groupby_that_gave_a_none(x: Tensor) -> Any:
    groups = itertools.groupby([None, None, 1])
    return next(groups)[0], groups


@program
def a_group_over_breaks(x: Tensor) -> Any:
    groups = itertools.groupby([1, 1, 2, 2, 3], key=noted)
    first, second = (next(groups)[1] for _ in range(2))
    stator.graph_break()
    held = {"second": second}
    stator.graph_break()
    return next(held["second"]), first, second, groups


@program
def a_key_that_breaks(x: Tensor) -> Any:
    held: dict[str, Any] = {"groups": itertools.groupby([1, 1, 2, 3], key=breaking)}
    _, held["group"] = next(held["groups"])
    return next(held["group"]), held["group"], next(held["groups"]), held["groups"]


@program
def a_tee_of_what_breaks(x: Tensor) -> Any:
    a, b = itertools.tee(map(breaking, [1, 2, 3, 4]))
    held = {"a": a}
    return next(held["a"]), next(b), next(b), held["a"], b


def described(value: Any, depth: int = 0) -> Any:
    if hasattr(value, "__next__") and depth < 4:
        return type(value), [described(item, depth + 1) for item in value]
    return (
        [described(item, depth) for item in value]
        if isinstance(value, list | tuple)
        else repr(value)
    )


@pytest.mark.parametrize("backwards", [False, True])
@pytest.mark.parametrize("broken", [False, True])
@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.__name__)
def test_what_leaves_goes_on_where_it_stood(
    program: Callable[[Tensor], Any], broken: bool, backwards: bool
) -> None:
    def run(x: Tensor) -> Any:
        found = program(x)
        if broken:
            stator.graph_break()
        return found

    compiled = stator.compile(run, backend="eager")
    for size in (2, 3, 1, 2):
        outcomes = []
        for fn in (run, compiled):
            LOG.clear()
            result = fn(torch.ones(size))
            called = [*LOG]
            result = result[::-1] if backwards and type(result) is tuple else result
            outcomes.append((described(result), called, [*LOG]))
        assert outcomes[0] == outcomes[1]
    if program is not a_tee_that_gave_itself:
        assert "plainly" not in str(compiled.report)


BROKEN = [a_tee_that_gave_itself, a_tee_of_what_asks_it, a_key_that_breaks, a_tee_of_what_breaks]
BROKEN += [program for program in PROGRAMS if "over_breaks" in program.__name__]


@pytest.mark.parametrize("program", [fn for fn in PROGRAMS if fn not in BROKEN])
def test_what_leaves_breaks_no_graph(program: Callable[[Tensor], Any]) -> None:
    compiled = stator.compile(program, backend="eager", fullgraph=True)
    assert described(compiled(torch.ones(2))) == described(program(torch.ones(2)))
