"""When the text of a walk is written: when it is worth it, or when somebody reads it."""

from __future__ import annotations

import gc
import linecache
import weakref

from stator_guards import Equals, Guard, ParameterSource, compile_guards

ONE = Guard(ParameterSource("a"), Equals(1))


def test_a_set_is_written_out_when_it_was_asked_often_and_is_called_without_a_detour_then() -> None:
    guard_set = compile_guards([ONE], ["a"])
    assert guard_set.check is guard_set.walk
    assert [guard_set.check(1 + number % 2) for number in range(20)] == [True, False] * 10
    assert guard_set.check.__name__ == "check"
    assert (guard_set.check(1), guard_set.check(2), guard_set.check(True)) == (True, False, False)


def test_reading_the_text_compiles_nothing() -> None:
    guard_set = compile_guards([ONE], ["a"])
    assert linecache.getlines(guard_set.filename) == []
    source = guard_set.source
    assert "".join(linecache.getlines(guard_set.filename)) == source
    assert guard_set.check is guard_set.walk


def test_a_written_set_dies_with_its_last_holder_and_takes_its_text_along() -> None:
    gc.disable()
    try:
        guard_set = compile_guards([ONE], ["a"])
        assert all(guard_set.check(1) for _ in range(20))
        filename, alive = guard_set.filename, weakref.ref(guard_set)
        del guard_set
        assert (alive(), linecache.getlines(filename)) == (None, [])
    finally:
        gc.enable()
