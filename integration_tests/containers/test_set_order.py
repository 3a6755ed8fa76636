"""The order of a set follows from its hashes and its history: sets that tracing rebuilds have that
of plain Python.

The numbers are such that most of them meet in one place of a small table.
"""

from __future__ import annotations

import collections
import os
import pathlib
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import pytest
import stator
import torch
from torch import Tensor

from integration_tests.support.oracle import assert_same

ROOT = pathlib.Path(__file__).resolve().parents[2]
PROGRAMS: dict[str, Callable[..., Any]] = {}


def program(fn: Callable[..., Any]) -> Callable[..., Any]:
    PROGRAMS[fn.__name__.replace("_", " ")] = fn
    return fn


def order(numbers: Any) -> list[str]:
    return [*map(str, numbers)]


@program
def another_takes_what_had_one_more(x: Tensor) -> Any:
    other: set[float] = {1, 2}
    s = {1.5, 1} ^ {3, 1, 2}
    stator.graph_break()
    other |= s
    third: set[float] = {2}
    third.update(s, other)
    return order(other), order(third), order(s), x


@program
def one_takes_itself(x: Tensor) -> Any:
    made: list[Any] = []
    for numbers in ((9, 1, 17), (3, 1, 11, 19), (16, 8, 24, 1)):
        s = {*numbers, x.shape[0]}
        s |= s
        s.update(s, s)
        made += [
            {*s},
            s | s,
            s.union(s),
            s.union(s, {5, 13}),
            s & s,
            s.intersection(s),
            s - s,
            s ^ s,
        ]
        made += [s.union(), s.difference(), s.intersection(), s.symmetric_difference(s), s]
        emptied = s.copy()
        emptied -= emptied
        emptied |= {9, 1, 17}
        again = s.copy()
        again.difference_update({1}, again, {2})
        again.symmetric_difference_update(again)
        again |= {3, 11}
        made += [emptied, again]
    return [order(each) for each in made], x


@program
def another_takes_what_is_changed_after_it(x: Tensor) -> Any:
    other: set[float] = {1, 2}
    s = {1.5, 1, 3, 2}
    stator.graph_break()
    other |= s
    s.discard(1)
    s |= other
    return order(other), order(s), x


@program
def a_literal(x: Tensor) -> Any:
    s = {8, 0, 32, 16, 24}
    stator.graph_break()
    return order(s), x


@program
def a_literal_of_strings(x: Tensor) -> Any:
    s = {"alpha", "beta", "gamma", "delta", "eps"}
    stator.graph_break()
    return order(s), x


@program
def a_literal_in_a_loop(x: Tensor) -> Any:
    seen = []
    for n in {24, 0, 16, 8}:  # noqa: PLC0208  # in that order
        seen.append((n, x * n))
    return seen


@program
def a_literal_that_changes(x: Tensor) -> Any:
    s = {8, 0, 32, 16, 24}
    s.discard(0)
    s.add(40)
    s.add(0)
    s.remove(8)
    return order(s), x + 1, s


@program
def a_set_of_a_list(x: Tensor) -> Any:
    s = set([16, 8, 0, 8, 24])  # noqa: C405  # made of a list
    s.discard(16)
    s.update([32, 16])
    return order(s), x


@program
def a_set_that_grows(x: Tensor) -> Any:
    s = {i * 37 % 64 for i in range(30)}
    s.difference_update({3, 5, 7})
    return order(s), x


@program
def a_set_that_is_merged(x: Tensor) -> Any:
    s = {8, 0}
    s.update({24, 16, 32})
    s |= {40, 0}
    s -= {8, 99}
    return order(s), x


@program
def a_union_and_a_copy(x: Tensor) -> Any:
    s = {16, 8, 0} | {24, 8}
    r = s.copy()
    r.add(32)
    return order(s), order(r), x


@program
def a_frozenset(x: Tensor) -> Any:
    s = frozenset({24, 16, 8, 0})
    return order(s), s, x, order(frozenset([16, 8, 0]))


@program
def a_set_that_is_cleared(x: Tensor) -> Any:
    s = {8, 0, 16}
    s.clear()
    s.add(16)
    s.update({8, 0})
    return order(s), x


WORDS = {"alpha", "beta", "gamma", "delta", "eps", "zeta"}
FEW = frozenset({"beta", "eta", "eps", "theta"})


@program
def algebra_of_numbers(x: Tensor) -> Any:
    a, b = {8, 0, 24, 32, 16}, {40, 16, 0, 56, 8, 48}
    b.discard(40)
    made = (
        a & b,
        b & a,
        a - b,
        b - a,
        a ^ b,
        b ^ a,
        a | b,
        a.intersection([16, 8, 0]),
        b.union([64, 72], {80}),
    )
    made[0].add(64)
    return (
        [order(s) for s in made],
        made,
        a.symmetric_difference([24, 88, 0]),
        a.difference([8], {0}),
        x,
    )


@program
def algebra_in_place(x: Tensor) -> Any:
    a, b, c, d = {8, 0, 24, 16}, {40, 16, 0, 8}, {16, 8, 0, 24}, {56, 0, 8, 48, 16}
    a &= b
    b -= c
    c ^= d
    d.intersection_update([48, 0, 8])
    d.symmetric_difference_update((64, 0))
    b.difference_update([40], [99])
    return a, b, c, d, order(a), order(b), order(c), order(d), x


@program
def algebra_of_words_from_outside(x: Tensor) -> Any:
    kept, both = WORDS - FEW, WORDS & FEW
    made = [
        kept,
        both,
        WORDS | FEW,
        FEW | WORDS,
        WORDS ^ FEW,
        FEW - WORDS,
        WORDS.copy(),
        WORDS - {"beta", "x"},
    ]
    return (
        [x + len(word) for word in kept],
        made,
        [*map(list, made)],
        kept.union(["new", "words"], both),
        FEW.union("ab"),
    )


@program
def words_are_popped(x: Tensor) -> Any:
    words = {"one", "two", "three", "four"}
    first = words.pop()
    words.add("five")
    second = words.pop()
    numbers = {24, 0, 16, 8}
    taken = [numbers.pop(), numbers.pop()]
    numbers.add(taken[0])
    return first, second, words, x * numbers.pop(), numbers, list(words)


@program
def comprehensions_over_sets(x: Tensor) -> Any:
    words = {"q", "k", "v", "out"}
    lengths = {len(word): word for word in words}
    return (
        {word + "_proj" for word in words},
        lengths,
        [w for w in words],  # noqa: C416
        {n * 8 for n in (1, 5, 3)},
        x,
    )


@program
def frozensets_of_words(x: Tensor) -> Any:
    frozen = (
        frozenset(["a", "b", "c"]),
        frozenset(WORDS),
        frozenset({"p", "q"} | FEW),
        frozenset(i * 8 for i in range(4)),
    )
    return frozen, [list(f) for f in frozen], frozen[1] & FEW, frozen[0] | {"d"}, {frozen[0]: 1}, x


@program
def views_of_a_dict(x: Tensor) -> Any:
    d, other = {"a": 1, "b": 2, "c": 3, "d": 4}, {"c": 0, "z": 0, "a": 0}
    made = (
        d.keys() & FEW,
        d.keys() - {"a"},
        d.keys() | other.keys(),
        d.keys() ^ other.keys(),
        {"c", "a"} & d.keys(),
    )
    more = (
        d.keys() & other.keys(),
        other.keys() & d.keys(),
        d.keys() & ["d", "a"],
        {"z", "a"} - d.keys(),
        WORDS & d.keys(),
    )
    return (
        made,
        more,
        [*map(list, made)],
        [*map(list, more)],
        {8: 0, 0: 0}.keys() & {0, 16, 8, 24},
        x,
    )


@program
def the_first_of_equal_keys(x: Tensor) -> Any:
    words = {"bb", "aa", "cc"}
    return (
        sorted(words, key=len),
        max(words, key=len),
        min(words & {"aa", "bb"}, key=len),
        x,
        ", ".join(words),
    )


@program
def a_copy_is_taken_before_a_set_from_outside_changes(x: Tensor) -> Any:
    words = dict.fromkeys(WORDS)
    mine = set(words)
    stator.graph_break()
    before, rest = mine.copy(), mine - FEW
    mine.clear()
    mine |= FEW
    after = mine | rest
    return before, rest, mine, after, x


def an_argument(x: Tensor, s: set[int]) -> Any:
    s.add(64)
    s.discard(8)
    s.add(8)
    s.update({16, 24, 72})
    return order(s), x


def an_argument_that_is_emptied(x: Tensor, s: set[int]) -> Any:
    s.clear()
    s.add(16)
    s |= {8, 0}
    return order(s), x * len(s)


def an_argument_in_a_loop(x: Tensor, s: set[int]) -> Any:
    return [x * n for n in s], order(s)


MANY = [f"word{i}" for i in range(190)]


@program
def texts_of_frozen_sets(x: Tensor) -> Any:
    s = frozenset(MANY)
    return (
        str(s),
        " ".join(s),
        f"{s}",
        repr((s,)),
        [*s],
        str(frozenset(reversed(MANY))),
        hash(s) == hash(frozenset(s)),
        x,
    )


@program
def a_class_made_of_words(x: Tensor) -> Any:
    words = set(MANY)
    # its fields are not known before
    cls = collections.namedtuple("cls", words)  # type: ignore[misc]
    return cls._fields == tuple(words), cls._fields, x


@pytest.mark.parametrize("title", PROGRAMS)
def test_new_set_has_the_order_of_plain_python(title: str) -> None:
    assert_same(
        PROGRAMS[title], stator.compile(PROGRAMS[title], backend="eager"), lambda: (torch.ones(2),)
    )


@pytest.mark.parametrize("fn", [an_argument, an_argument_that_is_emptied, an_argument_in_a_loop])
def test_existing_set_keeps_the_order_of_plain_python(fn: Callable[..., Any]) -> None:
    made = iter([{0, 8, 16}, {16, 8, 0}, {8, 24, 0}, set(range(0, 200, 8))])
    assert_same(
        fn, stator.compile(fn, backend="eager"), lambda: (torch.ones(2), next(made)), calls=4
    )


def test_order_of_an_existing_set_is_guarded_beside_its_members() -> None:
    def fn(numbers: set[int], x: Tensor) -> Any:
        for number in numbers:
            x = x * 2 + number
        return x

    compiled = stator.compile(fn, backend="eager")
    for members in ([0, 8, 16], [16, 8, 0], [8, 16, 0], [0, 8, 16]):
        numbers = set[int]()
        for member in members:
            numbers.add(member)
        assert torch.equal(compiled(numbers, torch.ones(1)), fn(numbers, torch.ones(1)))


@pytest.mark.parametrize("seed", [1, 7, 42])
def test_order_is_that_of_plain_python_whatever_the_seed_of_hashes(seed: int) -> None:
    """Words have other hashes in every process."""
    environment = {**os.environ, "PYTHONHASHSEED": str(seed)}
    command = [sys.executable, "-c", f"from {__name__} import run_programs; run_programs()"]
    ended = subprocess.run(
        command, env=environment, cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert ended.returncode == 0, ended.stderr


def run_programs() -> None:
    for fn in PROGRAMS.values():
        for options in ({}, {"break_everywhere": 5}):
            assert_same(
                fn,
                stator.compile(fn, backend="eager", options=options),
                lambda: (torch.ones(2),),
                2,
            )


@pytest.mark.parametrize(
    "fn",
    [algebra_of_words_from_outside, words_are_popped, comprehensions_over_sets, views_of_a_dict],
)
def test_sets_of_words_are_no_break(fn: Callable[..., Any]) -> None:
    assert_same(fn, stator.compile(fn, backend="eager", fullgraph=True), lambda: (torch.ones(2),))


def a_loop_over_numbers(x: Tensor) -> Any:
    s = {24, 0, 16, 8}
    s.discard(16)
    s.add(40)
    seen = [x * n for n in s]
    for n in {"a", "b", "c"}:  # noqa: PLC0208
        seen.append(x + ord(n))
    return seen, sum(s), list(s)


def test_loop_over_a_set_of_numbers_is_one_graph() -> None:
    compiled = stator.compile(a_loop_over_numbers, backend="eager", fullgraph=True)
    assert_same(a_loop_over_numbers, compiled, lambda: (torch.ones(2),))
    assert compiled.report.graph_count == 1


def test_loop_over_an_existing_set_is_one_graph_for_each_order() -> None:
    compiled = stator.compile(an_argument_in_a_loop, backend="eager", fullgraph=True)
    made = iter([{0, 8, 16}, {16, 8, 0}, {8, 0, 16}, {0, 8, 16}])
    assert_same(an_argument_in_a_loop, compiled, lambda: (torch.ones(2), next(made)), calls=4)
    assert compiled.report.entry_count == len(
        {str([*s]) for s in ({0, 8, 16}, {16, 8, 0}, {8, 0, 16})}
    )


def test_number_that_comes_as_a_size_has_its_place() -> None:
    def fn(x: Tensor, n: int) -> Any:
        s = {n, 8, x.shape[0] * 8, 16}
        return [x.sum() * m for m in s], list(s)

    made = iter([(torch.ones(2), 0), (torch.ones(3), 24), (torch.ones(4), 32), (torch.ones(5), 8)])
    assert_same(fn, stator.compile(fn, backend="eager"), lambda: next(made), calls=4)
