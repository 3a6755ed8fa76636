"""Kinds decide which facts are merged; the kit for kinds passes good ones, of a fork as well, and
fails bad ones."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import attrs
import pytest
from stator_guards import (
    AttrAbsent,
    Custom,
    DistinctObject,
    Equals,
    Guard,
    Is,
    IsNone,
    KeyAbsent,
    KeyPresent,
    KeysAre,
    Kind,
    Length,
    LongerThan,
    ParameterSource,
    Renderer,
    SameObject,
    State,
    Truth,
    TypeIs,
    compile_guards,
    identity,
)
from stator_guards.conformance_kind import Fact, KindKit
from stator_guards.errors import InvalidUse


@attrs.frozen
class HasItem(Kind):
    """`item in value`, as a fork would write it: with defaults for what it does not define."""

    item: object

    needs = "with {0.item!r}"
    fix = "keep {0.item!r} in it"

    def test(self, value: str, render: Renderer) -> str:
        return f"{self.item!r} in {value}"

    def holds(self, value: Any, state: State) -> bool:
        return self.item in value


THING = SimpleNamespace()

FACTS = {
    "a kind of a fork": Fact(
        lambda: HasItem(1), lambda: [1, 2], lambda: [3], lambda: HasItem(2), list.clear
    ),
    "TypeIs": Fact(lambda: TypeIs(int), lambda: 1, lambda: True),
    "Is": Fact(lambda: Is(THING), lambda: THING, lambda: SimpleNamespace()),
    "IsNone": Fact(IsNone, lambda: None, lambda: 0),
    "Equals": Fact(lambda: Equals(1), lambda: 1, lambda: True),
    "Length": Fact(lambda: Length(1), lambda: [1], lambda: [], mutate=list.clear),
    "LongerThan": Fact(lambda: LongerThan(0), lambda: [1], lambda: [], mutate=list.clear),
    "KeysAre": Fact(lambda: KeysAre((1,)), lambda: {1: 2}, lambda: {2: 1}, mutate=dict.clear),
    "KeyPresent": Fact(
        lambda: KeyPresent(1),
        lambda: {1: 1, 2: 2},
        dict,
        lambda: KeyPresent(2),
        dict.clear,
    ),
    "KeyAbsent": Fact(
        lambda: KeyAbsent(1),
        dict,
        lambda: {1: 1, 2: 2},
        lambda: KeyAbsent(2),
        lambda value: value.update({1: 1}),
    ),
    "AttrAbsent": Fact(
        lambda: AttrAbsent("x"),
        SimpleNamespace,
        lambda: SimpleNamespace(x=1, y=1),
        lambda: AttrAbsent("y"),
        lambda value: setattr(value, "x", 1),
    ),
    "Custom": Fact(
        lambda: Custom("{fn}({value})", callable, "callable"),
        lambda: len,
        lambda: 1,
        lambda: Custom("{fn}({value})", lambda value: value is len, "len"),
    ),
}


class TestKinds(KindKit):
    @pytest.fixture(params=FACTS)
    def fact(self, request: pytest.FixtureRequest) -> Fact:
        return FACTS[request.param]


A, B = ParameterSource("a"), ParameterSource("b")


@pytest.mark.parametrize(
    ("first", "second"),
    [
        (HasItem(1), HasItem(2)),
        (HasItem(1), HasItem(True)),
        (KeyPresent("x"), KeyPresent("y")),
        (SameObject(A), SameObject(B)),
        (DistinctObject(A), DistinctObject(B)),
        (Custom("{value}", bool, "true"), Custom("{value}", bool, "set")),
        (Custom("{value}", bool), Custom("{value}", callable)),
    ],
    ids=lambda kind: type(kind).__name__,
)
def test_facts_that_may_hold_together_are_kept_apart(first: Kind, second: Kind) -> None:
    assert first.merge_key != second.merge_key


@pytest.mark.parametrize(
    ("first", "second"),
    [
        (HasItem(1), HasItem(1)),
        (Length(1), Length(2)),
        (Truth(True), Truth(False)),
        (Custom("{value}", lambda x: x, "true"), Custom("{value}", lambda x: x, "true")),
    ],
    ids=lambda kind: type(kind).__name__,
)
def test_facts_of_which_one_says_all_are_merged(first: Kind, second: Kind) -> None:
    assert first.merge_key == second.merge_key


@attrs.frozen
class Merged(HasItem):
    """Says that one item says all."""

    merge_key = None


@attrs.frozen
class Unguarded(HasItem):
    """Says that it holds of an object for ever."""

    of_contents = False


@attrs.frozen
class Disagreeing(HasItem):
    """Evaluates something else than its text."""

    def holds(self, value: Any, state: State) -> bool:
        return True


@attrs.frozen
class Unequal(HasItem):
    """Is another fact each time it is made."""

    @property
    def merge_key(self) -> int:
        return id(self)


@attrs.frozen
class Mute(HasItem):
    """Finds what it needs."""

    finds = HasItem.needs


@pytest.mark.parametrize("cls", [Merged, Unguarded, Disagreeing, Unequal, Mute])
def test_kit_fails_a_bad_kind(cls: Callable[[int], Kind]) -> None:
    fact = Fact(lambda: cls(1), lambda: [1, 2], lambda: [3], lambda: cls(2), list.clear)
    assert failures(fact)


def test_kit_passes_the_kind_that_the_bad_ones_derive_from() -> None:
    fact = FACTS["a kind of a fork"]
    assert failures(fact) == []


def test_equal_objects_have_identities_of_their_own_and_no_code_of_theirs_runs() -> None:
    class Named(type):
        def __hash__(cls) -> int:
            raise AssertionError

        def __eq__(cls, other: object) -> bool:
            raise AssertionError

    values = [1.5, float("1.5"), (), [], Named("A", (), {}), Named("A", (), {})]
    numbers = [identity(value) for value in values]
    assert len({*numbers}) == len(values)
    assert numbers == [identity(value) for value in values]


def failures(fact: Fact) -> list[str]:
    """Run the kit on one fact and return the names of the tests that fail."""
    kit = KindKit()
    failed = []
    for name, test in inspect.getmembers(kit, inspect.ismethod):
        if not name.startswith("test_"):
            continue

        wanted = inspect.signature(test).parameters
        guard_set = compile_guards([Guard(A, fact.make())], ["a"], watch=False)
        offered = {"fact": fact, "guard_set": guard_set}
        try:
            test(**{parameter: offered[parameter] for parameter in wanted})
        except AssertionError:
            failed.append(name)
    return failed


def test_equality_with_an_object_that_changes_is_refused() -> None:
    with pytest.raises(InvalidUse, match="Equals needs a constant, not"):
        Equals([1])
