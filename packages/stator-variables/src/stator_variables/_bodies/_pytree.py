"""Nested tuples, lists and dicts of trackers, flattened as `torch.utils._pytree` flattens the
values themselves. For nodes of registered classes see `_registered_trees.py`."""

from __future__ import annotations

import collections
import itertools
from collections.abc import Iterator, Sequence
from typing import Any

import attrs
import torch
from torch.utils import _pytree as pytree

from stator_variables._objects import _dict_entries, _new_values
from stator_variables._objects._dict import DictTracker
from stator_variables._objects._list import ListTracker
from stator_variables._objects._tuple import TupleTracker
from stator_variables._runtime._contents import has_member
from stator_variables._space import Space


@attrs.frozen
class Spec:
    """A structure without its leaves.

    `cls` is None for a leaf; `keys` are those of a dict, in its order. `registered` describes a
    node of a class that is registered as a pytree, and is None for others.
    """

    cls: Any = None
    keys: tuple[Any, ...] = ()
    children: tuple[Spec, ...] = ()
    registered: RegisteredNode | None = None

    @property
    def leaf_count(self) -> int:
        return 1 if self.cls is None else sum(child.leaf_count for child in self.children)

    @property
    def has_registered(self) -> bool:
        """True if a node is of a class that is registered as a pytree."""
        return self.registered is not None or any(child.has_registered for child in self.children)

    def __str__(self) -> str:
        return str(self.filled(itertools.repeat("*")))

    def filled(self, leaves: Iterator[Any]) -> Any:
        """The real structure around real leaves."""
        if self.cls is None:
            return next(leaves)
        items = [child.filled(leaves) for child in self.children]
        if self.registered is not None:
            return self.registered.outline(items)
        if issubclass(self.cls, dict):
            return self.cls(zip(self.keys, items, strict=True))
        return self.cls(*items) if has_member(self.cls, "_fields") else self.cls(items)


@attrs.frozen
class RegisteredNode:
    """A node without its children: the trackers of its registration, and of its context, which
    compares by `context_key` (its constant, or the identity of its tracker)."""

    cls: type
    context_key: object
    unflatten: Any = attrs.field(eq=False)
    context: Any = attrs.field(eq=False)

    def outline(self, items: list[Any]) -> object:
        """The node as text shows it: no instance exists while tracing."""
        return _Outline(f"{self.cls.__qualname__}({', '.join(map(repr, items))})")


@attrs.frozen(repr=False)
class _Outline:
    text: str

    def __repr__(self) -> str:
        return self.text


LEAF = Spec()


def flatten(t: Space, vt: Any) -> tuple[list[Any], Spec]:
    """Return the leaves from left to right, and the structure. Raises Unsupported for classes with
    a flattening of their own."""
    if (opened := open_builtin(t, vt)) is not None:
        keys, items = opened
        return joined(Spec(vt.cls, keys), [flatten(t, item) for item in items])
    if is_registered(vt):
        raise t.unsupported(
            "pytree-class", f"a {vt.cls.__qualname__} as part of a flattened structure"
        )
    return [vt], LEAF


def open_builtin(t: Space, vt: Any) -> tuple[tuple[Any, ...], Sequence[Any]] | None:
    """Return the keys, if it has some, and the items of a builtin container; None for others."""
    if vt.base in (list, tuple) and (
        vt.cls in (list, tuple, torch.Size) or has_member(vt.cls, "_fields")
    ):
        return (), vt.items
    if vt.cls in (dict, collections.OrderedDict):
        pairs = [(key.constant(), value) for key, value in t.items(vt)]
        return tuple(key for key, _ in pairs), [value for _, value in pairs]
    return None


def is_registered(vt: Any) -> bool:
    """Return True for an instance of a class that is registered as a pytree."""
    return vt.cls in pytree.SUPPORTED_NODES


def joined(outer: Spec, parts: Sequence[tuple[list[Any], Spec]]) -> tuple[list[Any], Spec]:
    """Return the leaves and the structure of a node, of those of its children."""
    children = tuple(spec for _, spec in parts)
    return [leaf for leaves, _ in parts for leaf in leaves], attrs.evolve(outer, children=children)


def unflatten(t: Space, leaves: Sequence[Any], spec: Spec) -> Any:
    """A new structure around these leaves."""
    return _built(t, iter(leaves), spec)


def _built(t: Space, leaves: Iterator[Any], spec: Spec) -> Any:
    if spec.cls is None:
        return next(leaves)
    return build_builtin(t, spec, [_built(t, leaves, child) for child in spec.children])


def build_builtin(t: Space, spec: Spec, items: Sequence[Any]) -> Any:
    """A new builtin container with these items."""
    if spec.cls is list:
        return ListTracker([*items])
    if not issubclass(spec.cls, dict):
        return TupleTracker(items, spec.cls)
    made = DictTracker(spec.cls, complete=True)
    for key, item in zip(spec.keys, items, strict=True):
        _dict_entries.store(t, made, _new_values.fresh(t, key), item)
    return made


def broadcast(leaves: Sequence[Any], outline: Spec, spec: Spec) -> list[Any] | None:
    """The leaf of a structure above each leaf of `spec`; None when it is no prefix of that."""
    found: list[Any] = []
    return found if _is_prefix(outline, iter(leaves), spec, found) else None


def _is_prefix(outline: Spec, leaves: Iterator[Any], spec: Spec, found: list[Any]) -> bool:
    if outline.cls is None:
        found += [next(leaves)] * spec.leaf_count
        return True
    if attrs.evolve(outline, children=spec.children) != spec:
        return False
    if len(outline.children) != len(spec.children):
        return False
    pairs = zip(outline.children, spec.children, strict=True)
    return all(_is_prefix(above, leaves, below, found) for above, below in pairs)
