"""Guards that a trace collects: each fact once, facts of a fork's own kinds as well, and on
captured objects."""

from __future__ import annotations

from typing import Any

import attrs
import pytest
from stator_guards import (
    CapturedSource,
    Equals,
    Guard,
    Is,
    KeyPresent,
    Kind,
    Length,
    LongerThan,
    ParameterSource,
    Renderer,
    State,
    TypeIs,
)
from stator_variables import DEFAULT_HANDLERS, Space, StandardSpace

X = ParameterSource("x")


@attrs.frozen
class HasItem(Kind):
    """`item in value`, as a fork would write it."""

    item: object

    def test(self, value: str, render: Renderer) -> str:
        return f"{self.item!r} in {value}"

    def holds(self, value: Any, state: State) -> bool:
        return self.item in value


@pytest.fixture
def t() -> Space:
    """Return a trace without a graph, which guards of plain values do not need."""
    graph: Any = None
    return StandardSpace(graph, DEFAULT_HANDLERS)


def test_facts_of_a_kind_of_a_fork_are_kept(t: Space) -> None:
    table = CapturedSource("table", {})
    t.guard(X, HasItem(1))
    t.guard(X, HasItem(2))
    t.guard(table, HasItem(3))
    assert t.finish_guards() == [
        Guard(X, HasItem(1)),
        Guard(X, HasItem(2)),
        Guard(table, HasItem(3)),
    ]


def test_equal_facts_are_kept_once(t: Space) -> None:
    for _ in range(3):
        t.guard(X, HasItem(1))
        t.guard(X, TypeIs(dict))
        t.guard(X, KeyPresent("a"))
        t.guard(X, KeyPresent("b"))
    assert len(t.finish_guards()) == 4


def test_captured_object_needs_guards_on_its_contents_only(t: Space) -> None:
    table = {"a": 1}
    source = CapturedSource("table", table)
    t.guard(source, TypeIs(dict))
    t.guard(source, Is(table))
    t.guard(source, Equals(1))
    t.guard(source, KeyPresent("a"))
    assert t.finish_guards() == [Guard(source, KeyPresent("a"))]


def test_known_length_replaces_a_bound(t: Space) -> None:
    t.need_length(X, 2)
    t.need_length(X, 3)
    assert t.finish_guards() == [Guard(X, LongerThan(2))]
    t.guard(X, Length(3))
    t.need_length(X, 3)
    assert t.finish_guards() == [Guard(X, Length(3))]
