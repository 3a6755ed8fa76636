"""Watches are only a faster way to the same answer: they see every change, keep nothing alive, and give up on churn."""

from __future__ import annotations

import gc
import threading
import weakref
from typing import Any

import pytest
from stator_guards import (
    CallSource,
    CapturedSource,
    CellSource,
    DictItemSource,
    Equals,
    FunctionPartSource,
    Guard,
    GuardSet,
    InstanceDictSource,
    ItemSource,
    ParameterSource,
    Source,
    Truth,
    TypeIs,
    compile_guards,
)
from stator_guards._memory import JOIN, layout, reader

needs_words = pytest.mark.skipif(layout() is None, reason="this interpreter keeps no versions; every check walks")


class Part:
    def __init__(self, flag: bool = True) -> None:
        self.flag = flag
        self.hooks: dict[str, object] = {}


class Whole:
    def __init__(self, count: int = 12) -> None:
        self.parts = {str(i): Part() for i in range(count)}
        self.calls = 0


def field(source: Source, name: str) -> Source:
    return DictItemSource(InstanceDictSource(source), name)


def guards_on(root: Source, count: int = 12) -> list[Guard]:
    guards = [Guard(root, TypeIs(Whole))]
    for i in range(count):
        part = DictItemSource(field(root, "parts"), str(i))
        guards += [Guard(part, TypeIs(Part)), Guard(field(part, "flag"), Equals(True))]
        guards.append(Guard(field(part, "hooks"), Truth(False)))
    return guards


def warmed(guards: list[Guard], parameters: list[str], *state: object) -> GuardSet:
    guard_set = compile_guards(guards, parameters)
    for _ in range(5):
        assert guard_set.check(*state)
    return guard_set


def is_watched(guard_set: GuardSet) -> bool:
    return "def watched_check" in guard_set.source


A = ParameterSource("a")


@needs_words
def test_a_watched_predicate_reads_nothing_one_by_one() -> None:
    whole = Whole()
    guard_set = warmed(guards_on(A), ["a"], whole)
    assert is_watched(guard_set)
    watched = guard_set.source[guard_set.source.index("def watched_check") :]
    assert "flag" not in watched
    assert guard_set.check.__name__ == "watched_check"


@needs_words
def test_each_root_object_has_its_own_words() -> None:
    wholes = [Whole() for _ in range(3)]
    guard_set = warmed(guards_on(A), ["a"], wholes[0])
    assert all(guard_set.check(whole) for whole in wholes * 2)
    wholes[1].parts["3"].flag = False
    assert [guard_set.check(whole) for whole in wholes] == [True, False, True]


@needs_words
def test_a_root_object_is_not_kept_alive() -> None:
    whole = Whole()
    guard_set = warmed(guards_on(A), ["a"], whole)
    dead = weakref.ref(whole)
    del whole
    gc.collect()
    assert dead() is None
    assert all(not guard_set.check(Part()) for _ in range(50))
    assert guard_set.check(Whole())


@needs_words
def test_a_replaced_part_is_let_go_when_the_new_one_is_bound() -> None:
    whole = Whole()
    guard_set = warmed(guards_on(A), ["a"], whole)
    dead = weakref.ref(whole.parts["0"])
    whole.parts["0"] = Part()
    assert guard_set.check(whole)
    gc.collect()
    assert dead() is None


@needs_words
def test_what_changes_on_every_call_stops_being_watched_but_not_what_lies_below() -> None:
    whole = Whole()
    guard_set = warmed(guards_on(A), ["a"], whole)
    for _ in range(20):
        whole.calls += 1
        assert guard_set.check(whole)
    watched = guard_set.source[guard_set.source.index("def watched_check") :]
    assert "['parts'] is not" in watched
    assert "flag" not in watched
    whole.parts["5"].hooks["new"] = 1
    assert not guard_set.check(whole)
    whole.parts["5"].hooks.clear()
    assert guard_set.check(whole)
    whole.parts = {**whole.parts, "5": Part(flag=False)}
    assert not guard_set.check(whole)


@needs_words
def test_roots_that_are_new_on_every_call_are_walked_in_the_end() -> None:
    guard_set = warmed(guards_on(A), ["a"], Whole())
    for _ in range(60):
        assert guard_set.check(Whole())
    assert guard_set.check.__name__ == "check"


@needs_words
def test_what_changes_now_and_then_stays_watched(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = Whole()
    guard_set = warmed(guards_on(A), ["a"], whole)
    text, now = guard_set.source, [0.0]
    monkeypatch.setattr("stator_guards._watch.time.monotonic", lambda: now[0])
    for _ in range(50):
        now[0] += 60.0
        for part in whole.parts.values():
            part.flag = False
        assert not guard_set.check(whole)
        for part in whole.parts.values():
            part.flag = True
        assert guard_set.check(whole)
    assert guard_set.source == text


def test_a_root_whose_facts_no_word_proves_is_planned_anew() -> None:
    class Unusual(dict[str, Part]): ...

    whole: Any = Whole()
    guard_set = warmed(guards_on(A), ["a"], whole)
    whole.parts = Unusual(whole.parts)
    assert all(guard_set.check(whole) for _ in range(20))
    whole.parts["3"] = Part(flag=False)
    assert not guard_set.check(whole)
    whole.parts["3"] = Part()
    assert guard_set.check(whole)


def test_globals_that_change_on_every_call_do_not_matter() -> None:
    module: dict[str, object] = {"whole": Whole(), "i": 0}
    root = DictItemSource(CapturedSource("module", module), "whole")
    guard_set = warmed(guards_on(root), [])
    for i in range(30):
        module["i"] = i
        assert guard_set.check()
    module["whole"].parts["2"].flag = 0  # type: ignore[attr-defined]
    assert not guard_set.check()
    module["whole"] = Whole()
    assert guard_set.check()


def test_a_module_in_a_closure_is_seen_to_be_rebound() -> None:
    whole = Whole()

    def fn() -> object:
        return whole

    root = CellSource(ItemSource(FunctionPartSource(CapturedSource("fn", fn), "closure"), 0))
    guard_set = warmed(guards_on(root), [])
    whole = Part()  # type: ignore[assignment]
    assert not guard_set.check()
    whole = Whole()
    assert guard_set.check()
    whole.parts["1"].flag = False
    assert not guard_set.check()


def test_what_no_word_proves_is_read_on_every_call() -> None:
    whole: Any = Whole()
    whole.sizes = [1, 2]
    guards = [*guards_on(A), Guard(ItemSource(field(A, "sizes"), 0), Equals(1))]
    guard_set = warmed(guards, ["a"], whole)
    whole.sizes[0] = True
    assert not guard_set.check(whole)


def test_watching_can_be_switched_off() -> None:
    whole = Whole()
    guard_set = compile_guards(guards_on(A), ["a"], watch=False)
    assert all(guard_set.check(whole) for _ in range(5))
    assert not is_watched(guard_set)


def test_threads_changing_and_checking_never_see_a_stale_answer() -> None:
    whole = Whole()
    guard_set = warmed(guards_on(A), ["a"], whole)
    wrong: list[str] = []

    def check_other() -> None:
        mine = Whole()
        for i in range(200):
            mine.parts["4"].flag = i % 2 == 0
            if guard_set.check(mine) is not (i % 2 == 0):
                wrong.append("stale")

    threads = [threading.Thread(target=check_other) for _ in range(4)]
    [thread.start() for thread in threads]
    [thread.join() for thread in threads]
    assert wrong == []


@needs_words
def test_both_ways_of_reading_words_agree() -> None:
    dicts: list[dict[str, int]] = [{"x": i} for i in range(100)]
    offset = getattr(layout(), "dict_version")
    addresses = [id(each) + offset for each in dicts]
    fast = reader(len(addresses))
    assert fast.read(fast.places_of(addresses)) == JOIN.read(JOIN.places_of(addresses))
    before = JOIN.read(JOIN.places_of(addresses))
    dicts[50]["x"] = -1
    assert JOIN.read(JOIN.places_of(addresses)) != before


@needs_words
def test_a_call_whose_constant_is_all_that_could_be_watched() -> None:
    """Too little for a group of its own: it is let go, and the plan comes to an end."""
    call = CallSource(lambda value, constant: [value, constant], ParameterSource("x"), CapturedSource("constant", (3,)))
    guards = [Guard(ItemSource(call, i), TypeIs(cls)) for i, cls in ((0, int), (1, tuple))]
    guards += guards_on(ParameterSource("whole"))
    guard_set = warmed(guards, ["x", "whole"], 1, Whole())
    assert not guard_set.check("1", Whole())
