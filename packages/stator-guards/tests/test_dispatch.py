"""Dispatch finds exactly the entries that a scan finds, by reading one fact, and runs no user
code."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from stator_guards import (
    Cache,
    DictItemSource,
    Entry,
    Equals,
    Guard,
    Is,
    IsNone,
    ItemSource,
    ParameterSource,
    Source,
    TensorMatch,
    TypeIs,
    compile_guards,
)
from torch.overrides import TorchFunctionMode

X, Y = ParameterSource("x"), ParameterSource("y")


class Unfriendly:
    """Whatever looks at an object runs its code."""

    def __hash__(self) -> int:
        raise AssertionError("hashed")

    def __eq__(self, other: object) -> bool:
        raise AssertionError("compared")

    @property  # type: ignore[misc]
    def __class__(self) -> type:
        raise AssertionError("asked for its class")


def cache_of(*sets: Sequence[Guard]) -> tuple[Cache, list[Entry]]:
    cache = Cache()
    entries = [Entry(compile_guards(guards, ["x", "y"]), print) for guards in sets]
    for entry in entries:
        cache.insert(entry)
    return cache, entries


def candidates(cache: Cache, *state: object) -> tuple[Entry, ...]:
    decision = cache._decisions[None]
    found: tuple[Entry, ...] = decision if type(decision) is tuple else decision.candidates(state)
    return found


OBJECTS = [Unfriendly(), Unfriendly()]
VALUES: list[Any] = [
    1,
    True,
    1.0,
    0.0,
    -0.0,
    float("nan"),
    "a",
    b"a",
    None,
    (1,),
    [1],
    {"k": 1},
    *OBJECTS,
]
VALUES += [
    torch.ones(2),
    torch.ones(3),
    torch.ones(2, dtype=torch.int64),
    torch.nn.Parameter(torch.ones(2)),
]


def fact_of(source: Source, value: Any, way: int) -> Guard:
    if value is None and way == 0:
        return Guard(source, IsNone())
    cls = type(value)
    if issubclass(cls, torch.Tensor) and way <= 1:
        return Guard(source, TensorMatch(value, frozenset({0} if way else ())))
    if cls in (int, bool, float, str, bytes, tuple) and way == 1:
        return Guard(source, Equals(value))
    return Guard(source, Is(value) if way == 2 else TypeIs(cls))


places = st.sampled_from(range(len(VALUES)))
facts = st.lists(
    st.tuples(st.sampled_from("xy"), places, st.integers(0, 3)), min_size=1, max_size=3
)


@settings(max_examples=150, deadline=None)
@given(st.lists(facts, min_size=2, max_size=10), st.lists(st.tuples(places, places), max_size=8))
def test_what_is_excluded_does_not_hold(sets: list[Any], states: list[tuple[int, int]]) -> None:
    cache, entries = cache_of(
        *([fact_of(ParameterSource(n), VALUES[i], way) for n, i, way in each] for each in sets)
    )
    for i, j in states:
        state = (VALUES[i], VALUES[j])
        holding = {id(entry) for entry in entries if entry.guards.check(*state)}
        assert holding <= {id(entry) for entry in candidates(cache, *state)}
        found = cache.lookup(None, state)
        assert (found is not None and id(found) in holding) if holding else found is None


@pytest.mark.parametrize(
    "values", [[*range(64)], [f"{i}" for i in range(64)], [torch.ones(i) for i in range(1, 65)]]
)
def test_of_many_entries_one_is_checked(values: list[Any]) -> None:
    kind = TensorMatch if isinstance(values[0], torch.Tensor) else Equals
    cache, entries = cache_of(*([Guard(X, kind(value))] for value in values))
    for value, entry in zip(values, entries):
        assert candidates(cache, value, None) == (entry,)
    assert candidates(cache, Unfriendly(), None) == ()
    assert candidates(cache, -1, None) == ()


def test_a_second_fact_decides_where_the_first_leaves_several() -> None:
    states = [(i, j) for i in range(8) for j in "abcdefgh"]
    cache, entries = cache_of(*([Guard(X, Equals(i)), Guard(Y, Equals(j))] for i, j in states))
    for state, entry in zip(states, entries):
        assert candidates(cache, *state) == (entry,)


def test_items_of_plain_containers_decide_and_others_are_not_read() -> None:
    class Mapping(dict[str, int]):
        def __getitem__(self, key: str) -> int:
            raise AssertionError("read")

    source = ItemSource(DictItemSource(X, "key"), 1)
    cache, entries = cache_of(
        *([Guard(X, TypeIs(dict)), Guard(source, Equals(i))] for i in range(4))
    )
    assert candidates(cache, {"key": (0, 2)}, None) == (entries[2],)
    for odd in (Mapping(key=2), {}, {"key": [0]}, Unfriendly()):
        assert len(candidates(cache, odd, None)) == 4
        assert cache.lookup(None, (odd, None)) is None


def test_entries_without_the_fact_stay_candidates() -> None:
    cache, entries = cache_of([Guard(X, Equals(1))], [Guard(Y, Equals(1))], [Guard(X, Equals(2))])
    assert set(map(id, candidates(cache, 1, 1))) == {id(entries[0]), id(entries[1])}
    assert candidates(cache, 3, 1) == (entries[1],)
    assert cache.lookup(None, (1, 1)) in entries[:2]


def test_a_new_object_at_the_address_of_a_dead_one_is_not_mistaken() -> None:
    objects = [Unfriendly() for _ in range(3)]
    cache, _ = cache_of(*([Guard(X, Is(each))] for each in objects))
    objects.clear()
    assert all(cache.lookup(None, (Unfriendly(), None)) is None for _ in range(20))


def test_sizes_are_not_read_under_a_function_mode() -> None:
    class Forbids(TorchFunctionMode):
        def __torch_function__(
            self, fn: Any, types: Any, args: Any = (), kwargs: Any = None
        ) -> Any:
            raise AssertionError("read")

    tensors = [torch.ones(i) for i in (1, 2, 3)]
    cache, _ = cache_of(*([Guard(X, TensorMatch(tensor))] for tensor in tensors))
    with Forbids():
        assert len(candidates(cache, tensors[0], None)) == 3
