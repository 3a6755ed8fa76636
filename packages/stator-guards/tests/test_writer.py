"""Generated predicates read like the program: captured values are named after their meaning."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import pytest
from stator_guards import (
    DictItemSource,
    Equals,
    Guard,
    Is,
    KeysAre,
    Kind,
    Length,
    ParameterSource,
    SlotSource,
    Source,
    TypeIs,
    compile_guards,
)


class Thing:
    """A class with an object of it."""


THING = Thing()
A = ParameterSource("a")
MRO = SlotSource(A, type, "__mro__")


def lines_of(*guards: tuple[Source, Kind], parameters: str = "a") -> list[str]:
    """Return the lines of the predicate, without what they return and their comments."""
    guard_set = compile_guards([Guard(*each) for each in guards], parameters.split(), watch=False)
    lines = guard_set.source.partition("try:")[2].partition("return True")[0].splitlines()
    texts = [line.partition("  #")[0].strip() for line in lines if line.strip()]
    return [text.removesuffix("): return False").removeprefix("if not (") for text in texts]


@pytest.mark.parametrize(
    ("source", "kind", "expected"),
    [
        (A, TypeIs(dict), "type(a) is dict"),
        (A, TypeIs(Thing), "type(a) is Thing"),
        (A, Length(2), "len(a) == 2"),
        (A, Is(Thing), "a is not None and Thing_ref() is a"),
        (A, Is(THING), "a is not None and a_ref() is a"),
        (A, Is(THING, weak=False), "a is expected_a"),
        (A, Is((Thing, object)), "a is expected_a"),
        (A, Equals(10**5000), "type(a) is int and a == expected_a"),
        (A, Equals(float("nan")), "type(a) is float and same_constant(a, expected_a)"),
        (A, KeysAre(("x",)), "same_plain_keys(a, keys, key_types)"),
    ],
)
def test_captured_value_is_named_after_its_meaning(
    source: Source, kind: Kind, expected: str
) -> None:
    assert lines_of((source, kind)) == [expected]


def test_tuple_of_classes_is_the_expected_one() -> None:
    found = lines_of((MRO, Is(Thing.__mro__)))
    assert found == ["mro = slot_mro(a)", "mro is expected_mro"]


def test_key_that_is_an_object_is_named_after_it() -> None:
    key: Any = Thing
    assert lines_of((DictItemSource(A, key), TypeIs(int))) == ["type(a[key_Thing()]) is int"]
    assert lines_of((DictItemSource(A, Fraction(1)), TypeIs(int)))[0].startswith("type(a[key")


def test_builtin_that_a_parameter_hides_has_another_name() -> None:
    found = lines_of((ParameterSource("type"), TypeIs(int)), parameters="type")
    assert found == ["v_type(type) is int"]


def test_local_with_the_name_of_a_builtin_does_not_hide_it() -> None:
    length = DictItemSource(A, "len")
    found = lines_of((length, Equals((1, 2))), (A, Length(1)))
    assert "len(a) == 1" in found
    assert "v_len = a['len']" in found


def test_class_named_like_a_builtin_is_told_from_it() -> None:
    other: Any = type("dict", (), {})
    found = lines_of((A, TypeIs(dict)), (ParameterSource("b"), TypeIs(other)), parameters="a b")
    assert found == ["type(a) is dict", "type(b) is v_dict"]
