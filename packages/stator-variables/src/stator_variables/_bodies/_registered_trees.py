"""Structures with nodes of classes that are registered as pytrees, flattened and built again.

    pytree.register_pytree_node(Pair, lambda pair: ((pair.a, pair.b), None), ...)
    vmap(f)(Pair(x, y))      # the leaves x and y, around them a Spec with a RegisteredNode

The functions of a registration are the program's, and are interpreted. torch calls them more than
once for a transform: they may compute, and have no other effect.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator, Sequence
from typing import Any

import torch
from stator_bytecode import settle

from stator_variables._applevel import _pytree as app
from stator_variables._bodies._pytree import (
    LEAF,
    RegisteredNode,
    Spec,
    build_builtin,
    is_registered,
    joined,
    open_builtin,
)
from stator_variables._lifetime._reachability import reachable
from stator_variables._objects._hash_results import observed
from stator_variables._objects._method_table import app_level
from stator_variables._space import Space
from stator_variables._tracker import MISSING

Flattened = Generator[Any, Any, tuple[list[Any], Spec]]


def flatten_tree(t: Space, vt: Any) -> Flattened:
    """Return the leaves from left to right, and the structure."""
    outer = Spec(vt.cls)
    items: Sequence[Any] | None = None
    if (opened := open_builtin(t, vt)) is not None:
        keys, items = opened
        outer = Spec(vt.cls, keys)
    elif is_registered(vt):
        node, items = yield from _opened(t, vt)
        outer = Spec(vt.cls, registered=node)
    if items is None:
        return [vt], LEAF

    parts: list[tuple[list[Any], Spec]] = []
    for item in items:
        parts.append((yield from flatten_tree(t, item)))
    return joined(outer, parts)


def unflatten_tree(t: Space, leaves: Sequence[Any], spec: Spec) -> Generator[Any, Any, Any]:
    """A new structure around these leaves."""
    return (yield from _built(t, iter(leaves), spec))


def _built(t: Space, leaves: Iterator[Any], spec: Spec) -> Generator[Any, Any, Any]:
    if spec.cls is None:
        return next(leaves)
    items: list[Any] = []
    for child in spec.children:
        items.append((yield from _built(t, leaves, child)))

    node = spec.registered
    if node is None:
        return build_builtin(t, spec, items)
    children = build_builtin(t, Spec(list), items)
    return (
        yield from _called(t, node.cls, app.close_node, [node.unflatten, children, node.context])
    )


def _opened(t: Space, vt: Any) -> Generator[Any, Any, tuple[RegisteredNode, Sequence[Any]]]:
    found = yield from _called(t, vt.cls, app.open_node, [vt])
    children, context, unflatten = found.items
    if any(map(_is_made_in_graph, reachable([context]))):
        raise t.unsupported(
            "pytree-class", f"a {vt.cls.__qualname__} with a new tensor that is not flattened"
        )
    return RegisteredNode(vt.cls, _key_of(t, context), unflatten, context), children.items


def _is_made_in_graph(vt: Any) -> bool:
    """Return True for a value that a body may have computed, which ends with it."""
    return vt.source is None and (vt.is_symbolic or vt.base is torch.Tensor)


def _key_of(t: Space, context: Any) -> object:
    """Return what contexts are compared by: constants in builtin containers, and identities."""
    if (opened := open_builtin(t, context)) is not None:
        keys, items = opened
        return context.cls, keys, tuple(_key_of(t, item) for item in items)
    value = context.constant()
    return id(context) if value is MISSING else (type(value), value)


def _called(t: Space, cls: type, function: Any, args: list[Any]) -> Generator[Any, Any, Any]:
    frame, instruction = t.frame, t.instruction
    call = settle(app_level(t, function, args))
    result, changed = yield from observed(t, call, tuple(args))
    t.frame, t.instruction = frame, instruction
    if changed:
        raise t.unsupported(
            "pytree-class", f"functions of the pytree {cls.__qualname__} that change something"
        )
    return result
