"""Tuples: what is known of one, how an existing one is read, and how a new one is made.

`_sequence` has their methods.
"""

from collections.abc import Iterable, Sized
from types import WrapperDescriptorType
from typing import Any

import torch
from stator_guards import Source

from stator_variables._emitter import Emitter, filled
from stator_variables._objects._builder_table import BuilderTable
from stator_variables._objects._lookup import overrides
from stator_variables._objects._wrap import of_instances, read_items
from stator_variables._runtime._contents import has_member
from stator_variables._space import Space
from stator_variables._tracker import (
    MISSING,
    ArgumentOf,
    KeyOf,
    SubstituteOf,
    VariableTracker,
    is_a,
    is_pending,
    made_of,
)
from stator_variables._trackers import ConstantTracker

builders = BuilderTable()


class SequenceTracker(VariableTracker, references=("items",)):
    """The items of a list, tuple or deque, or of an instance of a subclass; `base` is the builtin
    class."""

    items: list[VariableTracker]
    structure = 0  # counts what an iterator over a deque objects to

    def __init__(self, items: Iterable[Any], cls: type | None = None) -> None:
        self.items = list(items)
        self.cls = cls or self.base

    def substitute(self, t: Space, part: SubstituteOf) -> object:
        if self.cls not in (list, tuple):
            return MISSING
        return self.cls([part(item) for item in self.items])

    def contents(self, t: Space) -> Sized:
        """Return what is counted as the length."""
        return self.items


class TupleTracker(SequenceTracker):
    """A tuple, torch.Size, or named tuple."""

    base = tuple

    def hash_key(self, t: Space, part: KeyOf) -> object:
        if not isinstance(self.cls.__hash__, WrapperDescriptorType):
            return MISSING
        return tuple(map(part, self.items))

    def in_graph(self, t: Space, part: ArgumentOf) -> Any:
        refuse_own_items(t, self)
        items = tuple(map(part, self.items))
        return self.cls(*items) if has_member(self.cls, "_fields") else items

    def constant(self) -> Any:
        if self.cls not in (tuple, torch.Size):
            return MISSING
        return made_of(self.cls, (item.constant() for item in self.items))

    def rebuild(self, e: Emitter) -> str:
        items = e.listed(self.items)
        text = f"({items},)" if self.items else "()"
        if self.items and all(
            not is_pending(item) and is_a(item, ConstantTracker) for item in self.items
        ):
            text = f"tuple([{items}])"  # the compiler would make one object of all that are equal
        if self.cls is not tuple:
            text = f"{e.capture(tuple.__new__, 'tuple_new')}({e.capture(self.cls)}, {text})"
            # C's own tuples are refused by `tuple.__new__`.
            if self.cls is torch.Size or has_member(self.cls, "n_sequence_fields"):
                text = f"{e.capture(self.cls)}(({items}{',' if self.items else ''}))"
        return filled(e, self, e.bind(self, text))


def refuse_own_items(t: Space, vt: SequenceTracker) -> None:
    """Reject a container that overrides access to its items: torch uses the overrides of some, and
    not of others."""
    if overrides(t, vt.cls, "__iter__", "__len__", "__getitem__"):
        raise t.unsupported(
            "container-subclass", f"a {vt.cls.__qualname__}, which has items in its own way"
        )


@builders.by_base.handles(tuple)
@of_instances
def build_tuple(t: Space, real: object, source: Source) -> VariableTracker:
    return TupleTracker(read_items(t, tuple, real, source), type(real))
