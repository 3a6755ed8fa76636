"""Weak references to objects that the region makes: alive as long as something leads to them."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Callable
from typing import Any

import pytest
import stator
import torch
from torch import Tensor

from integration_tests.support.oracle import assert_same

ref: Any = weakref.ref


class Node:
    def __init__(self, value: Any, parent: Node | None = None) -> None:
        self.value = value
        self.parent: Any = None if parent is None else weakref.ref(parent)
        self.children: list[Node] = []

    def add(self, value: Any) -> Node:
        self.children.append(Node(value, self))
        return self.children[-1]


class Slots:
    __slots__ = ("__weakref__", "value")


def a_tree(x: Tensor, kept: list[Any]) -> Any:
    root = Node(x * 2)
    leaf: Any = root.add(x + 1).add(x)
    total = leaf.value
    while leaf.parent is not None:
        leaf = leaf.parent()
        total = total + leaf.value
    return total, leaf is root


def a_local(x: Tensor, kept: list[Any]) -> Any:
    node = Node(x)
    reference: Any = weakref.ref(node)
    return reference().value * 2, reference() is node, reference is weakref.ref(node)


def of_slots(x: Tensor, kept: list[Any]) -> Any:
    made: Any = Slots()
    made.value = x
    return ref(made)().value + 1


def a_function(x: Tensor, kept: list[Any]) -> Any:
    def inside(y: Tensor) -> Tensor:
        return y + x

    return ref(inside)()(x)


def a_tensor(x: Tensor, kept: list[Any]) -> Any:
    y = x * 2
    reference: Any = weakref.ref(y)
    return reference() + 1, reference() is y


def kept_outside(x: Tensor, kept: list[Any]) -> Any:
    kept.append(Node(x))
    reference = weakref.ref(kept[-1])
    return reference() is kept[-1], kept[-1].value * 2


def both_leave(x: Tensor, kept: list[Any]) -> Any:
    node = Node(x * 2)
    reference = weakref.ref(node)
    return node, reference, reference() is node


def held_by_a_container(x: Tensor, kept: list[Any]) -> Any:
    box = {"node": [Node(x)]}
    reference: Any = weakref.ref(box["node"][0])
    return reference().value + 1


CAPTURED = (
    a_tree,
    a_local,
    of_slots,
    a_function,
    a_tensor,
    kept_outside,
    both_leave,
    held_by_a_container,
)


def deleted(x: Tensor, kept: list[Any]) -> Any:
    node = Node(x)
    reference = weakref.ref(node)
    del node
    return x * 2, reference() is None


def replaced(x: Tensor, kept: list[Any]) -> Any:
    node = Node(x)
    reference = weakref.ref(node)
    node = Node(x + 1)
    return node.value, reference() is None


def of_a_call(x: Tensor, kept: list[Any]) -> Any:
    def made() -> Any:
        node = Node(x)
        return weakref.ref(node)

    return x * 2, made()() is None


def popped(x: Tensor, kept: list[Any]) -> Any:
    kept.append(Node(x))
    reference = weakref.ref(kept[-1])
    kept.pop()
    return reference() is None, x + 1


def in_a_circle(x: Tensor, kept: list[Any]) -> Any:
    node = Node(x)
    node.children.append(node)
    reference = weakref.ref(node)
    del node
    return x + 1, reference() is None


def that_calls_back(x: Tensor, kept: list[Any]) -> Any:
    node = Node(x)
    reference = weakref.ref(node, lambda _: kept.append("gone"))
    del node
    return x + 1, reference() is None, kept


def that_leaves_alone(x: Tensor, kept: list[Any]) -> Any:
    return x + 1, weakref.ref(Node(x))


def over_a_break(x: Tensor, kept: list[Any]) -> Any:
    node = Node(x * 2)
    reference = weakref.ref(node)
    stator.graph_break()
    alive = reference() is node
    del node
    return alive, reference() is None, x + 1


def a_tensor_with_a_history(x: Tensor, kept: list[Any]) -> Any:
    y = x.requires_grad_() * 2
    reference = weakref.ref(y)
    z = y.exp()
    return z, reference() is y


OTHERS = (
    deleted,
    replaced,
    of_a_call,
    popped,
    in_a_circle,
    that_calls_back,
    that_leaves_alone,
    over_a_break,
    a_tensor_with_a_history,
)


@pytest.fixture(autouse=True)
def _without_collections() -> Any:
    gc.disable()
    yield
    gc.enable()


def given() -> tuple[Tensor, list[Any]]:
    return torch.ones(2), []


@pytest.mark.parametrize("program", CAPTURED, ids=lambda each: each.__name__)
def test_what_is_held_is_alive(program: Callable[..., Any]) -> None:
    assert_same(program, stator.compile(program, backend="eager", fullgraph=True), given)


@pytest.mark.parametrize("program", OTHERS, ids=lambda each: each.__name__)
def test_what_nothing_holds_is_dead(program: Callable[..., Any]) -> None:
    assert_same(program, stator.compile(program, backend="eager"), given)
