"""The cache: most recently used first, one compilation for many threads, one warning that names the
guard."""

from __future__ import annotations

import threading
import time
import warnings
from collections.abc import Callable

import attrs
import pytest
from stator_guards import (
    Cache,
    Custom,
    Entry,
    Equals,
    Guard,
    Is,
    ParameterSource,
    RecompileLimitWarning,
    State,
    Truth,
    TypeIs,
    compile_guards,
)


def entry_for(value: object, backend_key: str = "eager") -> Entry:
    kind = Equals(value) if isinstance(value, int) else Is(value)
    guards = compile_guards([Guard(ParameterSource("x"), kind)], ["x"])
    text = value if isinstance(value, int) else None
    return Entry(guards, lambda x: ("ran for", text), guards.source, backend_key)


def make(value: object, made: list[object], backend_key: str = "eager") -> Callable[[], Entry]:
    def make_entry() -> Entry:
        made.append(value)
        return entry_for(value, backend_key)

    return make_entry


def test_an_entry_is_made_once_and_found_afterwards() -> None:
    cache, made = Cache(), []
    first = cache.get_or_make("eager", (1,), make(1, made))
    again = cache.get_or_make("eager", (1,), make(1, made))
    assert first is again
    assert made == [1]
    assert first is not None
    assert first.hits == 1
    assert first.run(1) == ("ran for", 1)


def test_an_entry_that_was_removed_is_made_again() -> None:
    cache, made = Cache(), []
    first, other = (cache.get_or_make("eager", (n,), make(n, made)) for n in (1, 2))
    assert first is not None
    assert other is not None
    cache.remove(first)
    assert cache.lookup("eager", (1,)) is None
    assert cache.lookup("eager", (2,)) is other
    assert cache.get_or_make("eager", (1,), make(1, made)) is not first
    assert made == [1, 2, 1]


def test_where_entries_are_scanned_the_most_recently_used_comes_first() -> None:
    cache = Cache()
    for value in (1, 2, 3):
        facts = compile_guards(
            [Guard(ParameterSource("x"), Custom(f"{{value}} == {value}", value.__eq__))], ["x"]
        )
        cache.insert(Entry(facts, lambda x, value=value: value, backend_key="eager"))
    cache.lookup("eager", (1,))
    found = cache.lookup("eager", (1,))
    assert cache.entries("eager")[0] is found
    assert [entry.run(0) for entry in cache.entries("eager")] == [1, 3, 2]


def test_backends_do_not_share_entries() -> None:
    cache = Cache()
    cache.insert(entry_for(1, "eager"))
    assert cache.lookup("inductor", (1,)) is None
    cache.insert(entry_for(1, "inductor"))
    assert len(cache.all_entries()) == 2


def test_past_the_limit_there_is_one_warning_that_names_the_guard() -> None:
    cache, made = Cache(name="step", limit=3), []
    for value in range(3):
        cache.get_or_make("eager", (value,), make(value, made))
    with pytest.warns(
        RecompileLimitWarning, match=r"step was compiled 3 times.*guard to blame: x was"
    ) as caught:
        assert cache.get_or_make("eager", (10,), make(10, made)) is None
    assert len(caught) == 1
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert cache.get_or_make("eager", (11,), make(11, made)) is None
    assert cache.is_full("eager")
    assert cache.get_or_make("eager", (2,), make(2, made)) is not None
    assert made == [0, 1, 2]


def test_the_limit_counts_each_backend_for_itself() -> None:
    cache, made = Cache(limit=1), []
    cache.get_or_make("eager", (1,), make(1, made))
    assert cache.get_or_make("inductor", (1,), make(1, made, "inductor")) is not None


def test_entries_about_dead_objects_are_dropped_and_count_only_in_total() -> None:
    class Thing: ...

    cache, made = Cache(limit=2, total_limit=5), []
    for _ in range(5):
        thing = Thing()
        assert cache.get_or_make("eager", (thing,), make(thing, made)) is not None
        made.clear()
        del thing
    assert len(cache.entries("eager")) <= 2
    thing = Thing()
    with pytest.warns(RecompileLimitWarning):
        assert cache.get_or_make("eager", (thing,), make(thing, made)) is None


def test_reasons_say_what_each_entry_needed() -> None:
    cache = Cache()
    cache.insert(entry_for(1))
    cache.insert(entry_for(2))
    reasons = cache.reasons((3,), "eager")
    assert [reason.failures[0].needed for reason in reasons] == ["2", "1"]
    assert {reason.failures[0].found for reason in reasons} == {"3"}
    assert "x was 2, is now 3" in str(reasons[0])
    assert [reason.failures[0].needed for reason in cache.reasons((2,), "eager")] == ["1"]


def test_history_keeps_why_each_entry_was_made() -> None:
    cache, made = Cache(), []
    cache.get_or_make("eager", (1,), make(1, made))
    cache.get_or_make("eager", (2,), make(2, made))
    assert [len(reasons) for reasons in cache.history] == [0, 1]


def test_many_threads_compile_once() -> None:
    cache, made, found = Cache(), [], []
    start = threading.Barrier(8)

    def slow_make() -> Entry:
        time.sleep(0.02)
        return make(1, made)()

    def call() -> None:
        start.wait()
        found.append(cache.get_or_make("eager", (1,), slow_make))

    threads = [threading.Thread(target=call) for _ in range(8)]
    [thread.start() for thread in threads]
    [thread.join() for thread in threads]
    assert made == [1]
    assert len(set(map(id, found))) == 1


def test_caches_never_wait_for_each_other() -> None:
    """Each of two makers waits until the other one runs: with one lock for both this would never
    end."""
    meeting = threading.Barrier(2, timeout=5)
    made: list[object] = []

    def meet_and_make() -> Entry:
        meeting.wait()
        return make(1, made)()

    caches = [Cache(), Cache()]
    threads = [
        threading.Thread(target=cache.get_or_make, args=("eager", (1,), meet_and_make))
        for cache in caches
    ]
    [thread.start() for thread in threads]
    [thread.join() for thread in threads]
    assert made == [1, 1]


def test_a_maker_may_call_back_and_may_decline() -> None:
    cache, made = Cache(), []

    def recursive() -> Entry:
        assert cache.get_or_make("eager", (2,), make(2, made)) is not None
        return make(1, made)()

    assert cache.get_or_make("eager", (1,), recursive) is not None
    assert made == [2, 1]
    assert cache.get_or_make("eager", (3,), lambda: None) is None


def test_a_failing_maker_leaves_the_cache_usable() -> None:
    cache, made = Cache(), []

    def failing() -> Entry:
        raise RuntimeError("backend")

    with pytest.raises(RuntimeError, match="backend"):
        cache.get_or_make("eager", (1,), failing)
    assert cache.get_or_make("eager", (1,), make(1, made)) is not None


def test_guards_of_another_type_are_a_miss_not_an_error() -> None:
    guards = compile_guards([Guard(ParameterSource("x"), TypeIs(int))], ["x"])
    cache = Cache()
    cache.insert(Entry(guards, print))
    assert cache.lookup(None, ("text",)) is None


@attrs.frozen
class Filled(Truth):
    """A list that may be filled ahead."""

    turn: int = 0

    def mend(self, state: State) -> bool:
        filled: list[str] = state["log"]
        filled.append(f"filled {self.turn}")
        state[f"x{self.turn}"].append(1)
        return True


def test_an_entry_whose_facts_can_be_mended_is_used_again() -> None:
    """In the order of their turns, and only when nothing else fails."""
    names = ["x1", "x0", "n", "log"]
    facts = [Guard(ParameterSource(f"x{i}"), Filled(True, i)) for i in (1, 0)]
    guards = compile_guards([*facts, Guard(ParameterSource("n"), Equals(1))], names)
    cache, made = Cache(), []
    cache.insert(Entry(guards, lambda *state: "ran", backend_key="eager"))
    log: list[str] = []
    assert cache.get_or_make("eager", ([], [], 1, log), make(1, made)) is not None
    assert log == ["filled 0", "filled 1"]
    assert made == []
    cache.get_or_make("eager", ([], [], 2, log), lambda: None)
    assert log == ["filled 0", "filled 1"]


def test_a_call_from_within_make_makes_no_entry_for_the_same_objects() -> None:
    cache, made = Cache("fn"), []
    thing = 1000

    def making() -> Entry:
        assert cache.get_or_make("eager", (thing,), make(thing, made)) is None
        assert cache.get_or_make("other", (thing,), make(thing, made, "other")) is not None
        return make(thing, made)()

    entry = cache.get_or_make("eager", (thing,), making)
    assert made == [thing, thing]
    assert cache.entries("eager") == (entry,)


def test_an_entry_made_from_within_make_is_taken_where_it_holds() -> None:
    cache, made = Cache("fn"), []

    def making() -> Entry:
        cache.get_or_make("eager", (1.0,), lambda: anything(made))
        return make(1, made)()

    entry = cache.get_or_make("eager", (1,), making)
    assert cache.entries("eager") == (entry,)
    assert cache.get_or_make("eager", ("else",), make(1, made)) is entry


def anything(made: list[object]) -> Entry:
    made.append("anything")
    return Entry(compile_guards([], ["x"]), lambda x: x, backend_key="eager")


def test_an_error_in_make_ends_it() -> None:
    cache, made = Cache("fn"), []
    with pytest.raises(ZeroDivisionError):
        cache.get_or_make("eager", (1,), lambda: 1 // 0)  # type: ignore[arg-type,return-value]
    assert cache.get_or_make("eager", (1,), make(1, made)) is not None


def test_an_entry_that_is_inserted_again_is_there_once() -> None:
    cache = Cache("fn")
    first, second = entry_for(1), entry_for(2)
    for entry in (first, first, second, first):
        cache.insert(entry)
    assert cache.entries("eager") == (second, first)
    assert len(cache.history) == 2
