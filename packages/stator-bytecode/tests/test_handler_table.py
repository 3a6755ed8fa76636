"""Tables of handlers: registered once, merged by name, overridden knowingly."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from stator_bytecode import HandlerConflict, HandlerTable

Table = HandlerTable[str, Callable[[], int]]


def one() -> int:
    return 1


def two() -> int:
    return 2


def table(**handlers: Callable[[], int]) -> Table:
    made: Table = HandlerTable("number")
    for key, handler in handlers.items():
        made.handles(key)(handler)
    return made


def test_key_claimed_twice_names_both_handlers() -> None:
    made = table(a=one)
    with pytest.raises(HandlerConflict, match=r"number 'a': both \S*one and \S*two"):
        made.handles("b", "a")(two)
    assert dict(made) == {"a": one}


def test_merging_leaves_its_parts_alone_and_finds_conflicts() -> None:
    first, second = table(a=one), table(b=two)
    assert dict(first.merged_with(second)) == {"a": one, "b": two}
    assert len(first) == 1
    with pytest.raises(HandlerConflict):
        first.merged_with(table(a=two))


def test_override_of_nothing_is_an_error() -> None:
    made = table(a=one)
    assert made.overridden_by({"a": two})["a"] is two
    assert made["a"] is one
    with pytest.raises(HandlerConflict, match="no number to override: 'z'"):
        made.overridden_by({"z": two})


def test_one_handler_serves_a_family_of_keys() -> None:
    made: HandlerTable[str, Callable[[], str]] = HandlerTable("letter")

    @made.handles_each(("a", "b"))
    def itself(of: str) -> str:
        return of

    @made.handles_each({"c": "sea"})
    def sounds_like(of: str) -> str:
        return of

    assert {key: handler() for key, handler in made.items()} == {"a": "a", "b": "b", "c": "sea"}
    with pytest.raises(HandlerConflict, match=r"letter 'c': both \S*sounds_like and \S*itself"):
        made.handles_each("c")(itself)
