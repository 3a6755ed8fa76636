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
X = torch.ones(1, 2)
KEPT.key = id(A)
KEPT.number = 1 << 60  # which may be an identity for all that is known


def waiting(x, o):
    made, seen = {(id(o), 0): 1, id(A): 2}, {(id(o), 1), id(A)}
    stator.graph_break()
    made.setdefault((id(o), 0), 9)
    made[id(A)] = 5
    del made[id(o), 0]
    made[id(B), 0] = 3
    seen.add((id(o), 1))
    return [*made.values()], len(seen), (id(o), 1) in seen, id(B) in seen


def beside_identities(x, o):
    new = [x]
    made = {KEPT.number: 1, id(new): 2, id(o): 3, (id(A), 0): 4, (KEPT.number, 0): 5}
    return x + 1, len(made), made[id(new)], made[id(o)], made[KEPT.number]


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
    "a number beside identities": lambda: beside_identities,
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


def hooked():
    module = nn.Linear(2, 2)
    handles = [module.register_forward_hook(lambda m, i, o: o + 1) for _ in range(2)]
    return module, module._forward_hooks, handles[0]


def key_before_the_others(x):
    _, hooks, handle = x
    first = hooks[handle.id] is not None
    return first, len(list(hooks)), [key == handle.id for key in hooks]


def number_among_keys(x):
    _, hooks, handle = x
    return len(list(hooks)), 1 << 60 in hooks, handle.id in hooks


def key_put_back(x):
    _, hooks, handle = x
    hook = hooks.pop(handle.id)
    left = len(hooks.values())
    hooks[handle.id] = hook
    hooks.move_to_end(handle.id, last=False)
    return left, [key == handle.id for key in hooks]


@pytest.mark.parametrize("program", [key_before_the_others, number_among_keys, key_put_back])
def test_keys_of_hooks(program):
    plain, world = hooked(), hooked()
    compiled = stator.compile(program, backend="eager")
    for _ in range(3):
        assert compiled(world) == program(plain)
        assert torch.equal(world[0](X), world[0].forward(X) + 1 + 1)


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
