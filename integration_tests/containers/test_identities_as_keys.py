"""`id(thing)` as a key, alone or in a tuple, where numbers from before are keys too: they may be
the same number."""

# mypy: ignore-errors

from __future__ import annotations

import dataclasses

import pytest
import stator
import torch
from torch import nn
from torch.nn.utils import parametrize


class Thing:
    pass


@dataclasses.dataclass
class Point:
    x: int
    y: list


A, B = Thing(), Thing()
NUMBERS = {id(A): 1, id(B): 2}
PAIRS = {(id(A), ()): 5, (id(A), "w"): 1, ((id(A), 0), "w"): 3, (id(A), B): 4}
SEEN = {id(A), id(B)}
GROUPS = {frozenset([A]): 1, frozenset([A, B]): 2, frozenset("ab"): 3}
KEPT = Thing()
KEPT.key = id(A)


def waiting(x, o):
    made, seen = {(id(o), 0): 1, id(A): 2}, {(id(o), 1), id(A)}
    stator.graph_break()
    made.setdefault((id(o), 0), 9)
    made[id(A)] = 5
    del made[id(o), 0]
    made[id(B), 0] = 3
    seen.add((id(o), 1))
    return [*made.values()], len(seen), (id(o), 1) in seen, id(B) in seen


def remembering():
    cache = {}

    def run(x, o):
        if (key := (id(o), "w")) not in cache:
            cache[key] = x + len(cache)
        return cache[key], len(cache)

    return run


PROGRAMS = {
    "a dict": lambda: lambda x, o: (x + 1, NUMBERS.get(id(o)), id(o) in NUMBERS),
    "a copy of a dict": lambda: (
        lambda x, o: (x + 1, dict(NUMBERS).get(id(o)), id(o) in {**NUMBERS})
    ),
    "pairs": lambda: (
        lambda x, o: (
            x + 1,
            PAIRS.get((id(o), "w")),
            PAIRS.get(((id(o), 0), "w")),
            (id(o), B) in PAIRS,
        )
    ),
    "with nothing": lambda: (
        lambda x, o: (x + 1, PAIRS.get((id(o), ())), ((), id(o)) in {((), KEPT.key): 1})
    ),
    "a copy of pairs": lambda: lambda x, o: (x + 1, dict(PAIRS).get((id(o), "w"))),
    "a set": lambda: lambda x, o: (x + 1, id(o) in SEEN, id(o) in set(SEEN), id(o) in {*NUMBERS}),
    "a number that was kept": lambda: (
        lambda x, o: (x + 1, {id(o): 3}.get(KEPT.key), KEPT.key in {id(o)})
    ),
    "a dict made here": lambda: (
        lambda x, o: (x + 1, {id(p): i for i, p in enumerate([A, o])}.get(KEPT.key))
    ),
    "frozen sets": lambda: (
        lambda x, o: (x + 1, GROUPS.get(frozenset([o])), GROUPS.get(frozenset([o, B])))
    ),
    "over a break": lambda: waiting,
    "a cache": remembering,
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_identities_and_numbers(name):
    plain, compiled = PROGRAMS[name](), stator.compile(PROGRAMS[name](), backend="eager")
    for number, thing in enumerate([A, B, Thing(), A, B, A]):
        x = torch.tensor([float(number)])
        assert repr(compiled(x, thing)) == repr(plain(x, thing)), number


def test_what_is_in_no_set_from_before_is_no_break():
    """A dataclass notes in a set which of its objects are being shown."""
    compiled = stator.compile(
        lambda x, point: (repr(point), id(point) in SEEN), backend="eager", fullgraph=True
    )
    points = [Point(number, []) for number in range(3)]
    for number, point in enumerate(points):
        assert compiled(torch.ones(1), point) == (f"Point(x={number}, y=[])", False)


def test_pairs_are_looked_up_in_one_graph():
    compiled = stator.compile(PROGRAMS["pairs"](), backend="eager", fullgraph=True)
    for thing in (A, B, A):
        compiled(torch.ones(1), thing)
    assert compiled.report.entry_count == 2


class Symmetric(nn.Module):
    def forward(self, w):
        return w.triu() + w.triu(1).t()


def test_cached_parametrizations_are_computed_once():
    net = nn.Linear(3, 3)
    parametrize.register_parametrization(net, "weight", Symmetric())

    @stator.compile(backend="eager")
    def weights(x):
        with parametrize.cached():
            first = net.weight
            y = x @ first
            stator.graph_break()
            return first is net.weight, (y @ net.weight).shape

    assert weights(torch.ones(2, 3)) == (True, (2, 3))
