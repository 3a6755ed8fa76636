"""Sources: equality by place, names for people, and chains of any length."""

from __future__ import annotations

import gc
from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from stator_guards import (
    AttrSource,
    CallSource,
    CapturedSource,
    DictItemSource,
    Equals,
    Guard,
    InstanceDictSource,
    Is,
    LiteralSource,
    ParameterSource,
    Source,
    TypeIs,
    compile_guards,
)

A = ParameterSource("a")


def field(source: Source, name: str) -> Source:
    return DictItemSource(InstanceDictSource(source), name)


def test_equal_places_are_equal_sources() -> None:
    assert field(A, "w") == field(A, "w")
    assert hash(field(A, "w")) == hash(field(A, "w"))
    assert field(A, "w") != AttrSource(A, "w")
    assert field(A, "w") != field(ParameterSource("b"), "w")
    assert CallSource(len, A) == CallSource(len, A)
    assert CallSource(len, A) != CallSource(repr, A)


def test_keys_and_captured_objects_are_told_apart() -> None:
    keys = [1, True, 1.0, 0.0, -0.0, "1"]
    assert len({DictItemSource(A, key) for key in keys}) == len(keys)
    one, other = [1], [1]
    assert CapturedSource("x", one) == CapturedSource("x", one)
    assert CapturedSource("x", one) != CapturedSource("x", other)


def test_literals_are_told_apart_by_class_and_value() -> None:
    values = [1, True, 1.0, 0.0, -0.0, "1", None, float("inf"), float("nan")]
    assert len({LiteralSource(value) for value in values}) == len(values)
    assert LiteralSource(2.5) == LiteralSource(2.5)
    twice = CallSource(pow, A, LiteralSource(2))
    guards = compile_guards([Guard(CallSource(max, twice, LiteralSource(2)), Equals(9))], ["a"])
    assert [guards.check(value) for value in (3, 4, "a")] == [True, False, False]
    assert "pow(a, 2)" in guards.source


def test_names_read_like_the_program() -> None:
    source = field(DictItemSource(field(A, "_modules"), "fc"), "weight")
    assert source.name == "a._modules['fc'].weight"
    assert InstanceDictSource(A).name == "a.__dict__"
    assert CallSource(len, source).name == "len(a._modules['fc'].weight)"
    assert source.base.base is not None  # type: ignore[union-attr]


def test_a_weakly_captured_object_that_died_reads_as_nothing() -> None:
    class Thing: ...

    thing: Any = Thing()
    source = CapturedSource("thing", thing, weak=True)
    guard_set = compile_guards([Guard(source, TypeIs(Thing))], [])
    assert guard_set.check()
    del thing
    gc.collect()
    assert not guard_set.check()
    assert not guard_set.mirror()


class Node:
    def __init__(self, following: Node | None) -> None:
        self.following = following


def test_chains_may_be_many_hundreds_of_parts_long() -> None:
    last = head = Node(None)
    source: Source = A
    guards = [Guard(source, TypeIs(Node))]
    for _ in range(700):
        head = Node(head)
        source = field(source, "following")
        guards.append(Guard(source, TypeIs(Node)))
    guards.append(Guard(source, Is(last)))
    guard_set = compile_guards(guards, ["a"])
    assert all(guard_set.check(head) for _ in range(5))
    assert guard_set.guards[-1].holds({"a": head})
    last.__dict__["following"] = last
    assert guard_set.check(head)
    head.following.following.following = None  # type: ignore[union-attr]
    assert not guard_set.check(head)
    assert not guard_set.mirror(head)
    assert guard_set.explain(head)[0].source == "a.following.following.following"


def test_a_long_chain_that_is_read_once_is_not_one_long_expression() -> None:
    value: Any = 7
    source: Source = A
    for _ in range(500):
        value, source = Node(value), field(source, "following")
    guard_set = compile_guards([Guard(source, Equals(7))], ["a"])
    assert guard_set.check(value)


constants = st.recursive(
    st.one_of(
        st.none(),
        st.booleans(),
        st.integers(-2, 2),
        st.floats(),
        st.text(max_size=2),
        st.binary(max_size=2),
    ),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3).map(tuple), st.frozensets(inner, max_size=2)
    ),
    max_leaves=5,
)


@given(constants, constants)
def test_constants_are_equal_for_predicate_and_mirror_alike(one: object, other: object) -> None:
    guard_set = compile_guards([Guard(A, Equals(one))], ["a"])
    assert guard_set.check(one)
    assert guard_set.mirror(one)
    assert guard_set.check(other) is guard_set.mirror(other)
