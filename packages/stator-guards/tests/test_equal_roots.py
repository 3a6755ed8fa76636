"""Equal facts about several objects are one guard: it detects every change of each object,
names the object, and has the text of one."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
import torch
from stator_guards import (
    EACH,
    DictItemSource,
    EqualFacts,
    EqualRoots,
    Equals,
    Guard,
    GuardSet,
    InstanceDictSource,
    ItemSource,
    KeysAre,
    ParameterSource,
    Source,
    TensorMatch,
    TypeIs,
    compile_guards,
    expanded,
)
from stator_guards._memory import layout
from stator_guards._mutations import mutations
from torch import nn

A = ParameterSource("a")
COUNT = 5

is_watched = pytest.mark.skipif(
    layout() is None, reason="this interpreter keeps no versions; every check walks"
)


class Thing:
    def __init__(self, **attributes: object) -> None:
        self.__dict__.update(attributes)


def field(source: Source, name: str) -> Source:
    return DictItemSource(InstanceDictSource(source), name)


def roots(count: int = COUNT) -> list[Source]:
    return [DictItemSource(field(A, "parts"), str(i)) for i in range(count)]


def large(subjects: list[Any]) -> Any:
    """An object with enough beside the subjects to be worth a watch."""
    rest = {str(i): Thing(flag=True, hooks={}) for i in range(16)}
    parts = {str(i): subject for i, subject in enumerate(subjects)}
    return Thing(parts=parts, rest=rest)


def guards_on_rest() -> Iterator[Guard]:
    yield Guard(A, TypeIs(Thing))
    for i in range(16):
        part = DictItemSource(field(A, "rest"), str(i))
        yield Guard(part, TypeIs(Thing))
        yield Guard(field(part, "flag"), Equals(True))
        yield Guard(field(part, "hooks"), KeysAre(()))


def compiled(facts: list[Guard], state: Any, tensors: list[Guard] | None = None) -> GuardSet:
    equal = EqualRoots.guard(EqualFacts.of(facts, tensors or []), roots())
    guard_set = compile_guards([*guards_on_rest(), equal], ["a"])
    assert all(guard_set.check(state) for _ in range(4))
    return guard_set


def equal_guards(guard_set: GuardSet) -> list[Guard]:
    """The guards about several objects whose words are compared."""
    assert guard_set.watching is not None
    assert guard_set.watching.plan is not None
    return [guard for group in guard_set.watching.plan.groups for guard in group.equal]


def applicable() -> list[str]:
    """The mutations of which two subjects are alike."""
    found = []
    for name, mutation in mutations().items():
        facts = mutation.guards(EACH, mutation.make())
        other = mutation.make()
        if EqualFacts.of(facts).hold(other, {}):
            found.append(name)
    return found


def test_most_mutations_have_subjects_that_are_alike() -> None:
    assert len(applicable()) > 30


@pytest.mark.parametrize(
    "index",
    [2, pytest.param(0, marks=pytest.mark.slow), pytest.param(COUNT - 1, marks=pytest.mark.slow)],
)
@pytest.mark.parametrize("name", applicable())
def test_a_change_of_one_object_is_detected_each_time(name: str, index: int) -> None:
    mutation = mutations()[name]
    subjects = [mutation.make() for _ in range(COUNT)]
    state = large(subjects)
    guard_set = compiled(mutation.guards(EACH, subjects[0]), state)
    written = guard_set.walk.written()
    for _ in range(8):  # by the third change, the facts are single ones
        mutation.change(subjects[index])
        assert not guard_set.check(state)
        assert not written(state)
        assert not guard_set.mirror(state)
        explained = [failure.source for failure in guard_set.explain(state)]
        assert explained
        assert all(f"a.parts['{index}']" in text for text in explained)
        mutation.undo(subjects[index])
        assert guard_set.check(state)
        assert written(state)
        assert guard_set.mirror(state)


class Block(nn.Module):
    limit = 3

    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(2, 3))
        self.flag = True


def facts_of_block() -> list[Guard]:
    return [
        Guard(EACH, TypeIs(Block)),
        Guard(field(EACH, "flag"), Equals(True)),
        Guard(field(EACH, "_forward_hooks"), KeysAre(())),
    ]


def stack() -> Any:
    return large([Block() for _ in range(COUNT)])


def of_stack(state: Any) -> GuardSet:
    weight = DictItemSource(field(EACH, "_parameters"), "weight")
    metadata = [Guard(weight, TensorMatch(state.parts["0"].weight))]
    equal = EqualRoots.guard(EqualFacts.of(facts_of_block(), metadata), roots())
    own = [
        Guard(DictItemSource(field(root, "_parameters"), "weight"), TensorMatch(block.weight))
        for root, block in zip(roots(), state.parts.values(), strict=True)
    ]
    guard_set = compile_guards([*guards_on_rest(), equal, *own], ["a"])
    assert all(guard_set.check(state) for _ in range(4))
    return guard_set


@is_watched
def test_words_prove_the_facts_about_all_objects_and_their_tensors() -> None:
    guard_set = of_stack(stack())
    assert len(equal_guards(guard_set)) == 1
    assert guard_set.watched.count("return False") < 10
    assert "for each" not in guard_set.watched


def test_the_text_has_the_facts_once() -> None:
    guard_set = of_stack(stack())
    assert guard_set.walk.source().count("_forward_hooks") == 2  # the value and its comment
    assert guard_set.walk.source().count("for each in (") == 1


def test_the_guards_are_listed_for_each_object() -> None:
    guard_set = of_stack(stack())
    names = [guard.name for guard in guard_set.guards]
    assert all(f"a.parts['{i}'].flag" in names for i in range(COUNT))
    assert set(guard_set.guards) == set(expanded(guard_set.tested))


CHANGES = {
    "flag": lambda block: setattr(block, "flag", False),
    "class": lambda block: setattr(block, "__class__", type("Other", (Block,), {})),
    "hook": lambda block: block.register_forward_hook(print),
    "frozen": lambda block: block.weight.requires_grad_(False),
    "resized": lambda block: setattr(block.weight, "data", torch.ones(3, 3)),
    "new weight": lambda block: setattr(block, "weight", nn.Parameter(torch.ones(5))),
}


@pytest.mark.parametrize("index", range(COUNT))
@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_a_change_of_one_block_is_detected(change: Any, index: int) -> None:
    state = stack()
    guard_set = of_stack(state)
    change(state.parts[str(index)])
    assert not guard_set.check(state)
    assert f"a.parts['{index}']" in guard_set.explain(state)[0].source


@pytest.mark.parametrize("index", [0, 3])
def test_another_block_or_weight_of_the_same_kind_holds(index: int) -> None:
    state = stack()
    guard_set = of_stack(state)
    state.parts[str(index)].weight = nn.Parameter(torch.zeros(2, 3))
    assert guard_set.check(state)
    state.parts[str(index)] = Block()
    assert guard_set.check(state)
    state.parts[str(index)].flag = False
    assert not guard_set.check(state)


def test_one_tensor_in_two_blocks_is_detected() -> None:
    state = stack()
    guard_set = of_stack(state)
    state.parts["3"].weight = state.parts["1"].weight
    assert not guard_set.check(state)


@is_watched
def test_what_does_not_matter_changes_without_another_plan() -> None:
    state = stack()
    guard_set = of_stack(state)
    state.parts["2"].note = "new"
    assert guard_set.check(state)
    Block.limit = 4
    assert guard_set.check(state)
    state.parts["4"].flag = False
    assert not guard_set.check(state)
    assert len(equal_guards(guard_set)) == 1


@is_watched
def test_what_changes_in_each_call_is_known_by_single_facts() -> None:
    state = stack()
    guard_set = of_stack(state)
    for i in range(12):
        state.parts["2"].calls = i
        assert guard_set.check(state)
    assert not equal_guards(guard_set)
    state.parts["1"].flag = False
    assert not guard_set.check(state)


def test_another_stack_is_checked_by_itself() -> None:
    state, other, different = stack(), stack(), stack()
    guard_set = of_stack(state)
    different.parts["4"].flag = False
    for _ in range(3):
        assert guard_set.check(state)
        assert guard_set.check(other)
        assert not guard_set.check(different)
    other.parts["1"].flag = False
    assert guard_set.check(state)
    assert not guard_set.check(other)


def test_a_fact_that_no_word_proves_is_tested_on_each_call() -> None:
    state = large([Thing(items=[1, 2]) for _ in range(COUNT)])
    kind = Guard(field(EACH, "items"), TypeIs(list))
    first = Guard(ItemSource(field(EACH, "items"), 0), Equals(1))
    guard_set = compiled([kind, first], state)
    state.parts["3"].items[0] = 5
    assert not guard_set.check(state)
    assert guard_set.explain(state)[0].source == "a.parts['3'].items[0]"


@is_watched
@pytest.mark.parametrize("name", applicable()[::4])
def test_second_state_is_bound_from_the_words_of_the_first(name: str) -> None:
    """The template has the words of all objects; each change below the second state is seen."""
    mutation = mutations()[name]
    first = large([mutation.make() for _ in range(COUNT)])
    guard_set = compiled(mutation.guards(EACH, first.parts["0"]), first)
    subjects = [mutation.make() for _ in range(COUNT)]
    second = large(subjects)
    assert all(guard_set.check(second) for _ in range(4))

    for subject in subjects[1:3]:
        mutation.change(subject)
        assert not guard_set.check(second)
        mutation.undo(subject)
        assert guard_set.check(second)
    assert guard_set.check(first)


@is_watched
def test_template_of_all_words_is_made_for_a_second_state() -> None:
    subjects = [Thing(flag=True) for _ in range(COUNT)]
    state = large(subjects)
    guard_set = compiled(
        [Guard(EACH, TypeIs(Thing)), Guard(field(EACH, "flag"), Equals(True))], state
    )
    second = large([Thing(flag=True) for _ in range(COUNT)])
    assert guard_set.check(second)

    assert guard_set.watching is not None
    templates = [watch.template for watch in guard_set.watching.watches.values()]
    assert len([template for template in templates if template is not None]) == 1
    second.parts["3"].flag = False
    assert not guard_set.check(second)
