"""Tests for every guard kind: derive from `KindKit` and override the fixture `fact`.

A kind is tested alone, through `compile_guards`: its text agrees with its evaluation, failures are
explained, facts that differ are kept apart, and a change inside of an object is detected. Needs
pytest (the extra `conformance`).
"""

from collections.abc import Callable
from typing import Any

import attrs
import pytest
from stator_bytecode.conformance import Conformance

from stator_guards import CapturedSource, Guard, GuardSet, Kind, ParameterSource, compile_guards

__all__ = ["Fact", "KindKit"]

_A = ParameterSource("a")


@attrs.define(eq=False)
class Fact:
    """A fact of the kind under test, with values that it holds of and values that it does not hold
    of."""

    make: Callable[[], Kind]
    """A function that makes the fact, anew on each call."""
    value: Callable[[], Any]
    """A function that makes a value of which the fact holds."""
    bad_value: Callable[[], Any]
    """A function that makes a value that can be read, and of which the fact does not hold."""
    other: Callable[[], Kind] | None = None
    """A function that makes another fact of the kind, which holds of `value` and not of
    `bad_value`."""
    mutate: Callable[[Any], object] | None = None
    """A change of the object `value` by which the fact no longer holds of it."""


class KindKit(Conformance):
    """Tests of one guard kind."""

    @pytest.fixture
    def fact(self) -> Fact:
        raise NotImplementedError("override with a fact of the guard kind under test")

    @pytest.fixture(params=["written", "walked"])
    def guard_set(self, request: pytest.FixtureRequest, fact: Fact) -> GuardSet:
        guards = compile_guards([Guard(_A, fact.make())], ["a"], watch=False)
        if request.param == "written":
            assert all(guards.check(fact.value()) for _ in range(20))
        return guards

    def test_text_and_evaluation_agree(self, fact: Fact, guard_set: GuardSet) -> None:
        compile(guard_set.source, "source", "exec")
        for make, holds in ((fact.value, True), (fact.bad_value, False)):
            assert guard_set.check(make()) is holds
            assert guard_set.mirror(make()) is holds

    def test_failure_is_explained(self, fact: Fact, guard_set: GuardSet) -> None:
        failures = guard_set.explain(fact.bad_value())
        assert len(failures) == 1
        failure = failures[0]
        assert all((failure.needed, failure.found, failure.fix))
        assert failure.needed != failure.found

    def test_equal_facts_are_merged(self, fact: Fact) -> None:
        first, second = fact.make(), fact.make()
        assert first.merge_key == second.merge_key
        assert hash(first.merge_key) == hash(second.merge_key)

    def test_different_facts_are_kept_apart(self, fact: Fact) -> None:
        if fact.other is None:
            return

        kind, other = fact.make(), fact.other()
        assert kind.merge_key != other.merge_key
        guard_set = compile_guards([Guard(_A, kind), Guard(_A, other)], ["a"])
        assert guard_set.check(fact.value())
        assert len(guard_set.guards) == 2

    def test_mutation_is_detected(self, fact: Fact) -> None:
        if fact.mutate is None:
            return

        value = fact.value()
        guard_set = compile_guards([Guard(_A, fact.make())], ["a"])
        assert all(guard_set.check(value) for _ in range(6))
        fact.mutate(value)
        assert not guard_set.check(value)
        assert not guard_set.mirror(value)

    def test_captured_object_is_guarded_if_a_mutation_can_break_the_fact(self, fact: Fact) -> None:
        if fact.mutate is None:
            return

        kind, value = fact.make(), fact.value()
        assert kind.of_contents
        guard_set = compile_guards([Guard(CapturedSource("value", value), kind)], [])
        assert all(guard_set.check() for _ in range(6))
        fact.mutate(value)
        assert not guard_set.check()
