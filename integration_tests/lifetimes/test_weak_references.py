"""Weak references and the containers of `weakref`: looked up, filled and called in the region.

Each program runs plainly and compiled over a world of its own, and what the world holds is compared
after each call.
"""

# mypy: ignore-errors

from __future__ import annotations

import gc
import weakref
from typing import Any

import pytest
import stator
import torch
from torch import Tensor

X = torch.linspace(-1.0, 1.0, 3)


class Thing:
    def __init__(self, size: int = 3) -> None:
        self.size = size


class World:
    def __init__(self) -> None:
        self.thing, self.other = Thing(), Thing(4)
        self.keys = weakref.WeakKeyDictionary({self.thing: 3})
        self.values = weakref.WeakValueDictionary({"a": self.thing})
        self.kept: Any = None
        self.log: list[Any] = []

    def shown(self) -> Any:
        gc.collect()
        keys = sorted((key.size, value) for key, value in self.keys.items())
        values = sorted((key, value.size) for key, value in self.values.items())
        kept = self.kept() if isinstance(self.kept, weakref.ref) else self.kept
        return keys, values, getattr(kept, "size", None), self.log


def item(x: Tensor, world: World, thing: Any) -> Any:
    return x * world.keys[world.thing], world.keys.get(thing, 7), thing in world.keys


def missing_item(x: Tensor, world: World, thing: Any) -> Any:
    try:
        return x * world.keys[thing]
    except KeyError as error:
        return x, type(error).__name__


def filled(x: Tensor, world: World, thing: Any) -> Any:
    if world.other not in world.keys:
        world.keys[world.other] = 5
    return x * world.keys[world.other]


def filled_by_argument(x: Tensor, world: World, thing: Any) -> Any:
    world.keys[thing] = world.keys.get(thing, 0) + 1
    return x * world.keys[thing]


def deleted(x: Tensor, world: World, thing: Any) -> Any:
    found = world.keys.pop(world.thing, 0)
    return x + found, world.thing in world.keys


def listed(x: Tensor, world: World, thing: Any) -> Any:
    return x * sum(world.keys.values()), [key.size for key in world.keys], len(world.keys)


def value(x: Tensor, world: World, thing: Any) -> Any:
    return x * world.values["a"].size, "b" in world.values, world.values.get("b")


def value_set(x: Tensor, world: World, thing: Any) -> Any:
    world.values["b"] = world.other
    return x * world.values["b"].size


def with_callback(x: Tensor, world: World, thing: Any) -> Any:
    world.kept = weakref.ref(world.other, lambda reference: world.log.append("gone"))
    return x + 1


def without_callback(x: Tensor, world: World, thing: Any) -> Any:
    world.kept = weakref.ref(world.other, None)
    return x + 1, world.kept is weakref.ref(world.other)


def new_object(x: Tensor, world: World, thing: Any) -> Any:
    made = Thing(5)
    reference = weakref.ref(made)
    alive = reference() is made
    del made
    return x + 1, alive, reference()


def parent(x: Tensor, world: World, thing: Any) -> Any:
    outer, inner = Thing(5), Thing(6)
    outer.inner, inner.outer = inner, weakref.ref(outer)
    return x * outer.inner.outer().size


PROGRAMS = {
    function.__name__: function
    for function in (
        *(item, missing_item, filled, filled_by_argument, deleted, listed, value, value_set),
        *(with_callback, without_callback, new_object, parent),
    )
}
ONE_GRAPH = ("item", "missing_item", "filled", "value", "with_callback", "without_callback")


@pytest.mark.parametrize("name", PROGRAMS)
def test_weak_references_are_what_they_are_in_python(name: str) -> None:
    program = PROGRAMS[name]
    compiled = stator.compile(program, backend="eager", fullgraph=name in ONE_GRAPH)
    ours, theirs = World(), World()
    for number, same in enumerate((False, True, False, True)):
        one, other = (ours.thing, theirs.thing) if same else (Thing(9), Thing(9))
        assert repr(compiled(X, theirs, other)) == repr(program(X, ours, one)), number
        assert theirs.shown() == ours.shown(), number


def test_a_callback_made_in_the_region_runs_when_its_object_dies() -> None:
    compiled = stator.compile(with_callback, backend="eager", fullgraph=True)
    world = World()
    compiled(X, world, None)
    compiled(X, world, None)
    assert world.log == []
    del world.other
    gc.collect()
    assert world.log == ["gone"]


def test_fresh_keys_are_looked_up_in_one_graph() -> None:
    compiled = stator.compile(item, backend="eager", fullgraph=True)
    world = World()
    for _ in range(6):
        assert compiled(X, world, Thing())[1] == 7
    assert compiled.report.entry_count == 1


def test_keys_that_died_are_no_keys() -> None:
    compiled = stator.compile(lambda x, keys, thing: (x + 1, keys.get(thing)), backend="eager")
    keys = weakref.WeakKeyDictionary()
    for number in range(4):
        thing = Thing()
        keys[thing] = number
        assert compiled(X, keys, thing)[1] == number
        del thing
    assert len(keys) == 0
