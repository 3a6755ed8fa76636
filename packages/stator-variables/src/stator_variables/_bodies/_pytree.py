"""Nested tuples, lists and dicts of trackers, flattened as `torch.utils._pytree` flattens the
values themselves."""

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
from stator_variables._tracker import VariableTracker


@attrs.frozen
class Spec:
    """A structure without its leaves.

    `cls` is None for a leaf; `keys` are those of a dict, in its order.
    """

    cls: Any = None
    keys: tuple[Any, ...] = ()
    children: tuple[Spec, ...] = ()

    @property
    def leaf_count(self) -> int:
        return 1 if self.cls is None else sum(child.leaf_count for child in self.children)

    def __str__(self) -> str:
        return str(self.filled(itertools.repeat("*")))

    def filled(self, leaves: Iterator[Any]) -> Any:
        """The real structure around real leaves."""
        if self.cls is None:
            return next(leaves)
        items = [child.filled(leaves) for child in self.children]
        if issubclass(self.cls, dict):
            return self.cls(zip(self.keys, items, strict=True))
        return self.cls(*items) if has_member(self.cls, "_fields") else self.cls(items)


LEAF = Spec()


def flatten(t: Space, vt: Any) -> tuple[list[Any], Spec]:
    """Return the leaves from left to right, and the structure. Raises Unsupported for classes with
    a flattening of their own."""
    if vt.base in (list, tuple) and (
        vt.cls in (list, tuple, torch.Size) or has_member(vt.cls, "_fields")
    ):
        return _joined(t, vt.cls, (), vt.items)
    if vt.cls in (dict, collections.OrderedDict):
        pairs = [(key.constant(), value) for key, value in t.items(vt)]
        return _joined(t, vt.cls, tuple(key for key, _ in pairs), [value for _, value in pairs])
    if vt.cls in pytree.SUPPORTED_NODES:
        raise t.unsupported(
            "pytree-class", f"a {vt.cls.__qualname__} as part of a flattened structure"
        )
    return [vt], LEAF


def _joined(
    t: Space, cls: type, keys: tuple[Any, ...], items: Sequence[Any]
) -> tuple[list[Any], Spec]:
    parts = [flatten(t, item) for item in items]
    return [leaf for leaves, _ in parts for leaf in leaves], Spec(
        cls, keys, tuple(spec for _, spec in parts)
    )


def unflatten(t: Space, leaves: Sequence[Any], spec: Spec) -> Any:
    """A new structure around these leaves."""
    return _built(t, iter(leaves), spec)


def _built(t: Space, leaves: Iterator[Any], spec: Spec) -> Any:
    if spec.cls is None:
        return next(leaves)
    items = [_built(t, leaves, child) for child in spec.children]
    if spec.cls is list:
        return ListTracker(items)
    if not issubclass(spec.cls, dict):
        return TupleTracker(items, spec.cls)
    made = DictTracker(spec.cls, complete=True)
    for key, item in zip(spec.keys, items, strict=True):
        _dict_entries.store(t, made, _new_values.fresh(t, key), item)
    return made


def broadcast(t: Space, prefix: VariableTracker, spec: Spec) -> list[Any] | None:
    """The leaf of `prefix` above each leaf of `spec`; None when it is no prefix of that."""
    leaves, outline = flatten(t, prefix)
    found: list[Any] = []
    return found if _is_prefix(outline, iter(leaves), spec, found) else None


def _is_prefix(outline: Spec, leaves: Iterator[Any], spec: Spec, found: list[Any]) -> bool:
    if outline.cls is None:
        found += [next(leaves)] * spec.leaf_count
        return True
    if (outline.cls, outline.keys, len(outline.children)) != (
        spec.cls,
        spec.keys,
        len(spec.children),
    ):
        return False
    pairs = zip(outline.children, spec.children, strict=True)
    return all(_is_prefix(above, leaves, below, found) for above, below in pairs)
