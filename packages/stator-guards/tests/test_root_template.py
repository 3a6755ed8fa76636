"""A second root object of equal structure is bound from what binding the first has shown: it is
watched just as well, and where it differs each fact is worked out."""

from __future__ import annotations

import copy
import gc
import weakref
from collections import OrderedDict
from collections.abc import Callable
from typing import Any

import pytest
import torch
from stator_guards import (
    Custom,
    DictItemSource,
    Equals,
    Guard,
    GuardSet,
    InstanceDictSource,
    KeyAbsent,
    KeysAre,
    ParameterSource,
    Source,
    TensorMatch,
    TypeIs,
    compile_guards,
)
from stator_guards._binding import Watch
from stator_guards._memory import layout
from torch import nn

pytestmark = pytest.mark.skipif(
    layout() is None, reason="this interpreter keeps no versions; every check walks"
)


class Layer(nn.Module):
    limit = 3

    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(2, 3))
        self.scale = nn.Parameter(torch.ones(()), requires_grad=False)
        self.flag = True
        self.table = OrderedDict(a=1)


class Stack(nn.Module):
    def __init__(self, count: int = 10) -> None:
        super().__init__()
        self.layers = nn.ModuleList([Layer() for _ in range(count)])
        self.size = count


A = ParameterSource("a")
UNMARKED = Custom(
    "not {value}.__dict__",
    lambda tensor: not tensor.__dict__,
    "without attributes",
    lambda tensor, cells: cells.own_attributes(tensor),
)


def field(source: Source, name: str) -> Source:
    return DictItemSource(InstanceDictSource(source), name)


def guards_on(stack: Stack) -> list[Guard]:
    layers = DictItemSource(field(A, "_modules"), "layers")
    guards = [Guard(A, TypeIs(Stack)), Guard(field(A, "size"), Equals(len(stack.layers)))]
    for i, layer in enumerate(stack.layers):
        source = DictItemSource(field(layers, "_modules"), str(i))
        parameters = field(source, "_parameters")
        guards += [
            Guard(source, TypeIs(Layer)),
            Guard(InstanceDictSource(source), KeyAbsent("forward")),
            Guard(field(source, "flag"), Equals(True)),
            Guard(field(source, "_forward_hooks"), KeysAre(())),
            Guard(field(source, "table"), KeysAre(("a",))),
            Guard(parameters, KeysAre(("weight", "scale"))),
        ]
        for name in ("weight", "scale"):
            tensor = getattr(layer, name)
            guards.append(Guard(DictItemSource(parameters, name), TensorMatch(tensor)))
            guards.append(Guard(DictItemSource(parameters, name), UNMARKED))
    return guards


@pytest.fixture
def worked_out(monkeypatch: pytest.MonkeyPatch) -> list[object]:
    """The root objects for which each fact was worked out."""
    found: list[object] = []
    real = Watch._worked_out

    def note(self: Watch, root: object, state: Any) -> Any:
        found.append(root)
        return real(self, root, state)

    monkeypatch.setattr(Watch, "_worked_out", note)
    return found


def bound(first: Stack, *others: Stack) -> GuardSet:
    guard_set = compile_guards(guards_on(first), ["a"])
    for _ in range(3):
        assert guard_set.check(first)
    for other in others:
        for _ in range(3):
            assert guard_set.check(other)
    return guard_set


def walked(first: Stack, root: Stack) -> bool:
    """What a predicate gives that reads everything."""
    return compile_guards(guards_on(first), ["a"], watch=False).check(root)


def test_roots_of_equal_structure_are_bound_alike(worked_out: list[object]) -> None:
    stacks = [Stack() for _ in range(4)]
    guard_set = bound(*stacks)
    assert "def watched_check" in guard_set.source
    assert worked_out == []
    assert all(guard_set.check(stack) for stack in stacks)


CHANGES: dict[str, Callable[[Layer], Any]] = {
    "a flag": lambda layer: setattr(layer, "flag", False),
    "a method is shadowed": lambda layer: setattr(layer, "forward", print),
    "something unrelated": lambda layer: setattr(layer, "calls", 1),
    "a hook": lambda layer: layer.register_forward_hook(print),
    "an attribute of a parameter": lambda layer: setattr(layer.weight, "mark", 1),
    "a parameter of another size": lambda layer: setattr(
        layer, "weight", nn.Parameter(torch.ones(4, 3))
    ),
    "an equal parameter": lambda layer: setattr(layer, "weight", nn.Parameter(torch.ones(2, 3))),
    "a frozen parameter": lambda layer: layer.weight.requires_grad_(False),
    "data of another type": lambda layer: setattr(layer.weight, "data", torch.ones(2, 3).double()),
    "data of another size": lambda layer: setattr(layer.weight, "data", torch.ones(5, 3)),
    "strides": lambda layer: setattr(layer.weight, "data", torch.ones(3, 2).t()),
    "another implementation": lambda layer: torch._C._swap_tensor_impl(layer.scale, torch.ones(4)),
    "another parameter": lambda layer: layer.register_parameter("third", None),
    "another class": lambda layer: setattr(layer, "__class__", type("Other", (Layer,), {})),
    "another dict": lambda layer: setattr(layer, "__dict__", {**vars(layer), "flag": False}),
    "an equal dict": lambda layer: setattr(layer, "__dict__", dict(vars(layer))),
    "keys in another order": lambda layer: layer._parameters.update(
        weight=layer._parameters.pop("weight")
    ),
    "an item of an ordered dict": lambda layer: layer.table.update(b=2),
}


@pytest.mark.parametrize("position", [1, 2])
@pytest.mark.parametrize("change", CHANGES)
def test_changes_below_such_a_root_are_seen(
    change: str, position: int, worked_out: list[object]
) -> None:
    stacks = [Stack() for _ in range(3)]
    guard_set = bound(*stacks)
    assert worked_out == []
    CHANGES[change](stacks[position].layers[7])
    expected = [walked(stacks[0], stack) for stack in stacks]
    for _ in range(3):
        assert [guard_set.check(stack) for stack in stacks] == expected
    assert expected[position] == (change in ("something unrelated", *EQUAL))


EQUAL = ("an equal parameter", "an equal dict")


class Odd(dict[str, Any]):
    """A dict whose class may do anything."""


class Key(str):
    """A key with a comparison of its own."""

    def __eq__(self, other: object) -> bool:
        return str.__eq__(self, other)

    __hash__ = str.__hash__


def tie(stack: Stack) -> None:
    stack.layers[3].weight = stack.layers[4].weight


DIFFERENCES: dict[str, Callable[[Stack], Any]] = {
    "another kind of dict": lambda stack: vars(stack.layers[5]).update(_forward_hooks=Odd()),
    "a key of a class": lambda stack: vars(stack.layers[5]).update({Key("odd"): 1}),
    "one tensor twice": tie,
    "a tensor of another rank": lambda stack: setattr(
        stack.layers[5], "weight", nn.Parameter(torch.ones(2, 3, 1))
    ),
    "a gradient": lambda stack: setattr(stack.layers[5].weight, "grad", torch.ones(2, 3)),
    "a view": lambda stack: setattr(stack.layers[5].scale, "data", torch.ones(3)[0]),
    "a longer ordered dict": lambda stack: stack.layers[5].table.update(b=1),
    "a missing part": lambda stack: stack.layers.pop(5),
}


@pytest.mark.parametrize("difference", DIFFERENCES)
@pytest.mark.parametrize("change", ["a flag", "a parameter of another size", "a hook"])
def test_roots_that_differ_are_watched_too(difference: str, change: str) -> None:
    first, equal, other = Stack(), Stack(), Stack()
    guard_set = bound(first, equal)
    DIFFERENCES[difference](other)
    for _ in range(3):
        assert guard_set.check(other) == walked(first, other)
    CHANGES[change](other.layers[4])
    for _ in range(3):
        assert not guard_set.check(other)
        assert guard_set.check(equal)


def test_tied_weights_of_the_first_are_separate_in_another() -> None:
    first, other = Stack(), Stack()
    tie(first)
    guard_set = bound(first, other)
    CHANGES["data of another size"](other.layers[4])
    assert not guard_set.check(other)
    assert guard_set.check(first)


def test_class_that_changed_since_is_looked_at_again(monkeypatch: pytest.MonkeyPatch) -> None:
    stacks = [Stack() for _ in range(3)]
    guard_set = bound(*stacks[:2])
    monkeypatch.setattr(Layer, "limit", 4)
    for stack in stacks:
        for _ in range(3):
            assert guard_set.check(stack)
    CHANGES["a flag"](stacks[2].layers[0])
    assert not guard_set.check(stacks[2])


def test_copies_keep_nothing_of_each_other_alive() -> None:
    first = Stack()
    guard_set = bound(first, copy.deepcopy(first))
    other = copy.deepcopy(first)
    assert guard_set.check(other)
    died = weakref.ref(other)
    del other
    gc.collect()
    assert died() is None
    assert guard_set.check(first)
