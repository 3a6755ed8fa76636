"""optree, and `torch.utils._cxx_pytree`, which is made of it: structures are flattened and rebuilt
in one graph."""

from __future__ import annotations

import collections
import functools
from collections.abc import Callable
from typing import Any, NamedTuple

import pytest
import stator
import torch
from torch import Tensor

from integration_tests.support.oracle import assert_same

optree: Any = pytest.importorskip("optree")
cxx: Any = pytest.importorskip("torch.utils._cxx_pytree")


class Pair(NamedTuple):
    left: Any
    right: Any


class Registered:
    def __init__(self, held: Any) -> None:
        self.held = held


optree.register_pytree_node(
    Registered,
    lambda thing: ((thing.held,), None, None),
    lambda _, held: Registered(*held),
    namespace="stator tests",
)


def tree(x: Tensor) -> dict[str, Any]:
    """Containers of all kinds, keys that are not in order."""
    ordered = collections.OrderedDict(z=x, a=(x + 1,))
    counted = collections.defaultdict(list, two=x * 2, one=[x])
    return {
        "b": [x, None, Pair(x * 3, ())],
        "a": ordered,
        "c": collections.deque([x, 4], maxlen=3),
        "0": counted,
    }


def flattened(x: Tensor, seen: list[Any]) -> Any:
    leaves, spec = optree.tree_flatten(tree(x))
    return leaves, spec.num_leaves, spec.num_nodes, spec.num_children, spec.namespace


def rebuilt(x: Tensor, seen: list[Any]) -> Any:
    leaves, spec = optree.tree_flatten(tree(x))
    found = optree.tree_unflatten(spec, [leaf * 2 for leaf in leaves])
    return found, found["0"].default_factory, found["c"].maxlen, list(found)


def mapped(x: Tensor, seen: list[Any]) -> Any:
    return optree.tree_map(lambda a, b: a + b, tree(x), tree(x * 2))


def none_is_a_leaf(x: Tensor, seen: list[Any]) -> Any:
    given = [x, None, {"a": None}]
    return (
        optree.tree_leaves(given, none_is_leaf=True),
        optree.tree_leaves(given),
        optree.tree_structure(given) == optree.tree_structure(given, none_is_leaf=True),
    )


def with_a_predicate(x: Tensor, seen: list[Any]) -> Any:
    def is_leaf(node: Any) -> bool:
        seen.append(type(node).__name__)
        return isinstance(node, tuple)

    leaves, spec = optree.tree_flatten(tree(x), is_leaf=is_leaf)
    return leaves, spec.num_leaves, seen


def with_paths(x: Tensor, seen: list[Any]) -> Any:
    paths, leaves, spec = optree.tree_flatten_with_path(tree(x))
    return (
        paths,
        leaves,
        spec.paths(),
        optree.tree_map_with_path(lambda p, a: a * len(p), [x, (x,)]),
    )


def reduced(x: Tensor, seen: list[Any]) -> Any:
    total = optree.tree_reduce(lambda a, b: a + b, [x, x, (x,)])
    return total, optree.tree_all([1, x.shape, (True,)])


def of_torch(x: Tensor, seen: list[Any]) -> Any:
    leaves, spec = cxx.tree_flatten({"a": x, "b": [x, 3, None]})
    again = cxx.tree_unflatten(leaves, spec)
    doubled = cxx.tree_map_only(Tensor, lambda a: a * 2, again)
    return doubled, cxx.tree_all(lambda leaf: leaf is not None, again)


def specs_compared(x: Tensor, seen: list[Any]) -> Any:
    specs = [optree.tree_structure(each) for each in ([x, x], [x, (x,)], [x + 1, x])]
    return specs[0] == specs[2], specs[0] != specs[1], specs[0].is_prefix(specs[1]), x + 1


CAPTURED = (
    flattened,
    rebuilt,
    mapped,
    none_is_a_leaf,
    with_a_predicate,
    with_paths,
    reduced,
    of_torch,
    specs_compared,
)


def another_structure(x: Tensor, seen: list[Any]) -> Any:
    y = x + 1
    try:
        return optree.tree_map(lambda a, b: a + b, [y, y], [y])
    except ValueError as error:
        return y, type(error)


def too_few_leaves(x: Tensor, seen: list[Any]) -> Any:
    spec = optree.tree_structure([x, x])
    try:
        return optree.tree_unflatten(spec, [x + 1])
    except ValueError as error:
        return x, str(error)


def of_registered_classes(x: Tensor, seen: list[Any]) -> Any:
    given = [Registered(x * 2), x]
    found = optree.tree_map(lambda a: a + 1, given, namespace="stator tests")
    return found[0].held, found[1], optree.tree_leaves(given)[0] is given[0]


OTHERS = (another_structure, too_few_leaves, of_registered_classes)


def given() -> tuple[Tensor, list[Any]]:
    return torch.ones(2), []


@pytest.mark.parametrize("program", CAPTURED, ids=lambda each: each.__name__)
def test_trees_are_captured(program: Callable[..., Any]) -> None:
    program(*given())  # none raises
    assert_same(program, stator.compile(program, backend="eager", fullgraph=True), given)


@pytest.mark.parametrize("program", OTHERS, ids=lambda each: each.__name__)
def test_what_is_not_captured_is_right(program: Callable[..., Any]) -> None:
    assert_same(program, stator.compile(program, backend="eager"), given)


def test_a_spec_from_outside_is_guarded() -> None:
    specs = [optree.tree_structure(each) for each in ([1, 2], (1, 2), {"a": 1, "b": 2})]

    def program(x: Tensor, spec: Any) -> Any:
        return optree.tree_unflatten(spec, [x, x + 1])

    compiled = stator.compile(program, backend="eager", fullgraph=True)
    for spec in (*specs, specs[0]):
        arguments = functools.partial(lambda spec: (torch.ones(2), spec), spec)
        assert_same(program, compiled, arguments, calls=1)


def test_a_class_that_is_registered_later() -> None:
    class Later(Registered):
        pass

    def program(x: Tensor) -> Any:
        leaves = optree.tree_leaves([Later(x), x], namespace="stator tests")
        return [type(leaf).__name__ for leaf in leaves], x + 1

    compiled = stator.compile(program, backend="eager")
    assert_same(program, compiled, lambda: (torch.ones(2),))
    optree.register_pytree_node(
        Later,
        lambda thing: ((thing.held,), None, None),
        lambda _, held: Later(*held),
        namespace="stator tests",
    )
    try:
        assert_same(program, compiled, lambda: (torch.ones(2),))
    finally:
        optree.unregister_pytree_node(Later, namespace="stator tests")
