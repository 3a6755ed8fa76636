"""Watches are only a faster way to the same answer: they see every change, keep nothing alive, and
give up on churn."""

from __future__ import annotations

import gc
import subprocess
import sys
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
    SameObject,
    Source,
    Truth,
    TypeIs,
    compile_guards,
)
from stator_guards._binding import Binding
from stator_guards._memory import JOIN, give_dict_version, layout, reader
from stator_guards._plan import Group

needs_words = pytest.mark.skipif(
    layout() is None, reason="this interpreter keeps no versions; every check walks"
)


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
def test_to_write_the_item_that_is_there_is_no_change() -> None:
    whole = Whole()
    guard_set = warmed(guards_on(A), ["a"], whole)
    names = [*vars(whole)], [*vars(whole.parts["3"])]
    assert guard_set.watching is not None
    watches = list(guard_set.watching.watches.values())
    bindings = [dict(watch.bindings) for watch in watches]
    for i in range(6):
        vars(whole)["calls"] = whole.calls
        vars(whole.parts[str(i)])["flag"] = True
        assert guard_set.check(whole)

    assert [dict(watch.bindings) for watch in watches] == bindings
    assert ([*vars(whole)], [*vars(whole.parts["3"])]) == names
    whole.parts["3"].flag = False
    assert not guard_set.check(whole)


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
def test_a_predicate_is_watched_from_the_second_call_on() -> None:
    whole = Whole()
    guard_set = compile_guards(guards_on(A), ["a"])
    assert guard_set.check(whole)
    assert guard_set.check.__name__ == "watched_check"
    assert bindings_of(guard_set, A)


def test_a_predicate_that_is_not_worth_watching_is_written_when_it_first_holds() -> None:
    guard_set = compile_guards([Guard(A, TypeIs(int))], ["a"])
    assert not guard_set.check("a")
    assert guard_set.check is guard_set.walk
    assert guard_set.check(1)
    assert guard_set.check.__name__ == "check"


def test_a_flat_object_is_read_instead_of_watched() -> None:
    flat: Any = Part()
    flat.__dict__.update({f"a{i}": i for i in range(40)})
    guard_set = compile_guards([Guard(field(A, f"a{i}"), Equals(i)) for i in range(40)], ["a"])
    assert guard_set.check(flat)
    assert guard_set.check.__name__ == "check"


B = ParameterSource("b")


def bindings_of(guard_set: GuardSet, root: Source) -> dict[int, Binding]:
    assert guard_set.watching is not None
    (watch,) = (watch for group, watch in guard_set.watching.watches.items() if group.root == root)
    return watch.bindings


@pytest.fixture
def checked(monkeypatch: pytest.MonkeyPatch) -> list[Source | None]:
    """The roots of the groups all of whose facts were checked."""
    found: list[Source | None] = []
    values = Group.values

    def recorded(group: Group, state: Any, root: Any) -> Any:
        found.append(group.root)
        return values(group, state, root)

    monkeypatch.setattr(Group, "values", recorded)
    return found


@needs_words
def test_a_new_root_object_concerns_no_other_group(checked: list[Source | None]) -> None:
    whole = Whole()
    guard_set = warmed([*guards_on(A), *guards_on(B)], ["a", "b"], whole, Whole())
    checked.clear()
    before = [*bindings_of(guard_set, A).values()]
    other = Whole()
    for _ in range(3):
        assert guard_set.check(whole, other)
    assert checked == [B]
    assert [*bindings_of(guard_set, A).values()] == before


@needs_words
def test_root_objects_that_are_new_on_every_call_are_not_watched_any_longer(
    checked: list[Source | None],
) -> None:
    whole = Whole()
    guard_set = warmed([*guards_on(A), *guards_on(B)], ["a", "b"], whole, Whole())
    checked.clear()
    for _ in range(60):
        assert guard_set.check(whole, Whole())
    assert set(checked) == {B}
    assert len(checked) < 8
    assert guard_set.check.__name__ == "watched_check"
    assert [*bindings_of(guard_set, A)] == [id(whole)]
    broken = Whole()
    broken.parts["3"].flag = False
    assert not guard_set.check(whole, broken)
    whole.parts["3"].flag = False
    assert not guard_set.check(whole, Whole())


@needs_words
def test_a_large_passing_root_is_bound_when_it_stays(checked: list[Source | None]) -> None:
    guard_set = warmed(guards_on(A, 200), ["a"], Whole(200))
    for _ in range(10):
        assert guard_set.check(Whole(200))
    checked.clear()
    stays = Whole(200)
    for _ in range(10):
        assert guard_set.check(stays)
    assert len(checked) <= 2
    stays.parts["100"].flag = False
    assert not guard_set.check(stays)


@needs_words
def test_many_root_objects_that_live_on_are_all_watched(checked: list[Source | None]) -> None:
    wholes = [Whole() for _ in range(24)]
    guard_set = warmed(guards_on(A), ["a"], wholes[0])
    for whole in wholes:
        assert guard_set.check(whole)
    checked.clear()
    assert all(guard_set.check(whole) for whole in wholes * 2)
    assert checked == []


@needs_words
def test_of_a_change_only_the_facts_on_changed_words_are_checked(
    checked: list[Source | None], monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = Whole(100)
    guard_set = warmed(guards_on(A, 100), ["a"], whole)
    checked.clear()
    facts: list[Guard] = []
    monkeypatch.setattr(
        "stator_guards._binding.holds_on", lambda guard, *rest: facts.append(guard) or True
    )
    whole.calls += 1
    whole.parts["7"].flag, whole.parts["7"].unrelated = True, 1  # type: ignore[attr-defined]
    assert guard_set.check(whole)
    assert checked == []
    assert len(facts) <= 3


@needs_words
def test_a_container_that_keeps_changing_is_taken_out_without_checking_the_rest(
    checked: list[Source | None],
) -> None:
    whole, other = Whole(), Whole()
    guard_set = warmed(guards_on(A), ["a"], whole)
    assert guard_set.check(other)
    checked.clear()
    for i in range(10):
        whole.calls = i
        whole.parts["3"].unrelated = i  # type: ignore[attr-defined]
        assert guard_set.check(whole)
    assert checked == []
    watched = guard_set.source[guard_set.source.index("def watched_check") :]
    assert "['parts'] is not" in watched
    assert "flag" in watched
    assert "['7']" not in watched
    for each in (whole, other):
        each.parts["3"].flag = False
        assert not guard_set.check(each)
        each.parts["3"].flag = True
        each.parts["7"].hooks["x"] = 1
        assert not guard_set.check(each)
        each.parts["7"].hooks.clear()
        assert guard_set.check(each)
        part = weakref.ref(each.parts["3"])
        each.parts["3"] = Part()
        assert guard_set.check(each)
        assert part() is None


@needs_words
def test_a_value_that_changes_on_every_call_is_not_kept() -> None:
    whole = Whole()
    guard_set = warmed(guards_on(A), ["a"], whole)
    for _ in range(8):
        hooks = Whole()
        whole.parts["3"].hooks = hooks.__dict__["parts"]
        hooks.parts.clear()
        whole.parts["3"].keeper = hooks  # type: ignore[attr-defined]
        assert guard_set.check(whole)
        last, hooks = weakref.ref(hooks), None  # type: ignore[assignment]
    whole.parts["3"].keeper, whole.parts["3"].hooks = None, {}  # type: ignore[attr-defined]
    assert guard_set.check(whole)
    assert last() is None


@needs_words
def test_what_a_watch_holds_dies_with_its_set_without_the_collector() -> None:
    whole = Whole()
    module = {"whole": Whole()}
    captured = DictItemSource(CapturedSource("module", module), "whole")
    guard_set = warmed([*guards_on(A), *guards_on(captured)], ["a"], whole)
    part, other = weakref.ref(whole.parts["0"]), weakref.ref(module["whole"])
    gc.collect()
    gc.disable()
    try:
        del guard_set, module, captured
        whole.parts.clear()
        assert (part(), other()) == (None, None)
    finally:
        gc.enable()


def test_an_interpreter_with_watches_shuts_down_quietly() -> None:
    script = f"""
import sys
sys.path[:] = {sys.path!r}
from stator_guards import CapturedSource, DictItemSource, Guard, InstanceDictSource, KeyAbsent
from stator_guards import TypeIs, compile_guards
class Thing: ...
root = Thing()
root.parts = {{i: Thing() for i in range(20)}}
source = DictItemSource(InstanceDictSource(CapturedSource("root", root)), "parts")
guards = [Guard(DictItemSource(source, i), TypeIs(Thing)) for i in range(20)]
guards += [Guard(InstanceDictSource(guard.source), KeyAbsent("x")) for guard in guards]
guard_set = compile_guards(guards, [])
assert guard_set.check() and guard_set.check()
class Late:
    def __del__(self):
        root.parts[3].y = 1
        assert guard_set.check()
        print("checked")
late = Late()
late.itself = late
"""
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "checked\n", "")


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
    words = layout()
    assert words is not None
    for each in dicts:
        give_dict_version(words, each)
    offset = words.dict_version
    addresses = [id(each) + offset for each in dicts]
    fast = reader(len(addresses))
    assert fast.read(fast.places_of(addresses)) == JOIN.read(JOIN.places_of(addresses))
    before = JOIN.read(JOIN.places_of(addresses))
    dicts[50]["x"] = -1
    assert JOIN.read(JOIN.places_of(addresses)) != before


@needs_words
def test_a_call_whose_constant_is_all_that_could_be_watched() -> None:
    """Too little for a group of its own: it is let go, and the plan comes to an end."""
    call = CallSource(
        lambda value, constant: [value, constant],
        ParameterSource("x"),
        CapturedSource("constant", (3,)),
    )
    guards = [Guard(ItemSource(call, i), TypeIs(cls)) for i, cls in ((0, int), (1, tuple))]
    guards += guards_on(ParameterSource("whole"))
    guard_set = warmed(guards, ["x", "whole"], 1, Whole())
    assert not guard_set.check("1", Whole())


@needs_words
def test_a_replaced_value_that_others_are_compared_with_is_checked() -> None:
    root = ParameterSource("whole")
    whole = Whole()
    whole.current, whole.first = whole.parts["0"], whole.parts["0"]  # type: ignore[attr-defined]
    same = Guard(field(root, "first"), SameObject(field(root, "current")))
    guard_set = warmed([*guards_on(root), same], ["whole"], whole)
    assert is_watched(guard_set)

    whole.current = whole.parts["1"]  # type: ignore[attr-defined]
    assert not guard_set.check(whole)
    whole.current = whole.parts["0"]  # type: ignore[attr-defined]
    assert guard_set.check(whole)
