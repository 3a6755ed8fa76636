"""What is handed over is what the last check saw, whatever happened since the words were last
read."""

from __future__ import annotations

import pickle

import pytest
from stator_guards import (
    DictItemSource,
    Guard,
    GuardSet,
    InstanceDictSource,
    ItemSource,
    Loads,
    ParameterSource,
    PartSource,
    Source,
    TypeIs,
    compile_guards,
)
from stator_guards._memory import layout

needs_words = pytest.mark.skipif(
    layout() is None, reason="this interpreter keeps no versions; nothing is handed over"
)


class Holder:
    def __init__(self, count: int = 80) -> None:
        self.table = {str(i): (object(),) for i in range(count)}

    def values(self) -> list[object]:
        return [item[0] for item in self.table.values()]

    def replace(self) -> None:
        self.table["3"] = (object(),)


def sources(count: int = 80, name: str = "holder") -> list[PartSource]:
    table = DictItemSource(InstanceDictSource(ParameterSource(name)), "table")
    return [ItemSource(DictItemSource(table, str(i)), 0) for i in range(count)]


def made() -> tuple[GuardSet, Loads]:
    holder = ParameterSource("holder")
    wholes: list[Source] = [source.whole for source in sources()]
    guards = [Guard(holder, TypeIs(Holder)), *(Guard(whole, TypeIs(tuple)) for whole in wholes)]
    guards += [Guard(source, TypeIs(object)) for source in sources()]
    guard_set = compile_guards(guards, ["holder"])
    loads = Loads(tuple(sources()), ("holder",))
    guard_set.serve(loads)
    return guard_set, loads


def warmed(guard_set: GuardSet, holder: Holder) -> None:
    for _ in range(6):
        assert guard_set.check(holder)


def test_values_are_read_before_anything_is_watched() -> None:
    _, loads = made()
    holder = Holder()
    for _ in range(40):  # past the point where the text is written
        assert list(loads(holder)) == holder.values()
        holder.replace()


@needs_words
def test_values_are_handed_over_once_watched() -> None:
    guard_set, loads = made()
    holder = Holder()
    warmed(guard_set, holder)
    assert loads.served is not None
    assert loads.served(holder) == tuple(holder.values())


@needs_words
def test_parts_of_watched_values_are_read() -> None:
    """A list is watched, its items are read: `args[0].table["3"][0]`, for a root that is a part
    itself."""
    root = ItemSource(ParameterSource("args"), 0)
    table = DictItemSource(InstanceDictSource(root), "table")
    lists = [DictItemSource(table, str(i)) for i in range(140)]
    guards = [Guard(root, TypeIs(Holder)), *(Guard(each, TypeIs(list)) for each in lists)]
    guard_set = compile_guards(guards, ["args"])
    loads = Loads(tuple(ItemSource(each, 0) for each in lists), ("args",))
    guard_set.serve(loads)

    holders = [Holder(140), Holder(140)]
    for holder in holders:
        holder.table = {key: [value] for key, (value,) in holder.table.items()}  # type: ignore[misc]
    for number in range(8):
        for holder in holders:
            holder.table["3"][0] = number  # type: ignore[index]
            assert guard_set.check((holder,))
            assert list(loads((holder,))) == holder.values()
    assert loads.served is not None
    assert loads.served((holders[0],)) == tuple(holders[0].values())


def test_a_replaced_value_is_handed_over() -> None:
    guard_set, loads = made()
    holder = Holder()
    warmed(guard_set, holder)
    for _ in range(30):  # often enough that it is not watched any longer
        holder.replace()
        assert guard_set.check(holder)
        assert list(loads(holder)) == holder.values()


def test_each_root_has_its_own_values() -> None:
    guard_set, loads = made()
    holders = [Holder() for _ in range(12)]
    for _ in range(4):
        for holder in holders:
            assert guard_set.check(holder)
            assert list(loads(holder)) == holder.values()


@needs_words
def test_nothing_stale_is_handed_over_when_another_thread_renews() -> None:
    guard_set, loads = made()
    holder = Holder()
    warmed(guard_set, holder)
    assert guard_set.watching is not None
    holder.replace()
    with guard_set.watching.lock:  # as if a thread were at it: this one walks, and binds nothing
        assert guard_set.check(holder)
        assert list(loads(holder)) == holder.values()


@pytest.mark.parametrize("call", range(6))
def test_values_of_another_group_are_current_in_a_call_that_plans_anew(call: int) -> None:
    """`one` changes until it is planned anew; `other`, which is checked later, changes once."""
    names = ["one", "other"]
    parts = {name: sources(name=name) for name in names}
    guards = [Guard(each.whole, TypeIs(tuple)) for name in names for each in parts[name]]
    guards += [Guard(each, TypeIs(object)) for name in names for each in parts[name]]
    guard_set = compile_guards(guards, names)
    loads = Loads(tuple(parts["other"]), tuple(names))
    guard_set.serve(loads)

    one, other = Holder(), Holder()
    assert guard_set.check(one, other)
    for number in range(6):
        one.replace()
        if number == call:
            other.replace()
        assert guard_set.check(one, other)
        assert list(loads(one, other)) == other.values()


def test_it_can_be_pickled_and_read() -> None:
    _, loads = made()
    holder = Holder()
    assert list(pickle.loads(pickle.dumps(loads))(holder)) == holder.values()
    assert loads.text().startswith("def loads(holder):")
