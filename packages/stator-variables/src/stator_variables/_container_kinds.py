"""The trackers of containers: what is known of a list, tuple, dict or set, and what of it nobody has asked for yet."""

import types
from collections import OrderedDict
from collections.abc import Callable, Iterable
from typing import Any

import attrs
import torch

from stator_variables._tracker import MISSING, VariableTracker


class SequenceTracker(VariableTracker):
    """The items of a list or a tuple (or of an instance of a subclass of either)."""

    items: list[Any]

    def __init__(self, items: Iterable[Any], cls: type) -> None:
        self.items = list(items)
        self.cls = cls


class ListTracker(SequenceTracker):
    """A list, or a deque (`maxlen` set then).

    An existing one is `unread` until somebody asks for its items: `added` has those that were put at its end, `taken`
    says how many were taken off the front and the back of what there was.
    """

    maxlen: int | None = None
    structure = 0  # counts what an iterator over a deque objects to
    unread: Callable[[], list[Any]] | None = None
    added: list[Any]
    taken = (0, 0)

    @property
    def items(self) -> list[Any]:
        if self.unread is not None:
            read, self.unread = self.unread, None
            try:
                items, (front, back) = read(), self.taken
                self.added[:0] = items[front : len(items) - back]
            except BaseException:  # they stay unread: what was put at the end is not all there is
                self.unread = read
                raise
        return self.added

    @items.setter
    def items(self, items: list[Any]) -> None:
        self.added = items


class TupleTracker(SequenceTracker):
    """A tuple, torch.Size, or named tuple."""

    def constant(self) -> Any:
        if self.cls not in (tuple, torch.Size):
            return MISSING
        values = [item.constant() for item in self.items]
        return MISSING if any(v is MISSING for v in values) else self.cls(values)


@attrs.define(eq=False, repr=False, slots=False)
class HashedTracker(VariableTracker):
    """A dict or a set. What was written to an existing one under keys that nobody has looked at yet is `undecided`; who
    asks for the entries makes `decide` put it there, which relies on the keys."""

    cls: type
    known: dict[Any, Any] = attrs.field(factory=dict)
    undecided: list[tuple[Any, ...]] = attrs.field(factory=list, kw_only=True)
    decide: Callable[[], None] = attrs.field(default=lambda: None, kw_only=True)

    def settle(self) -> None:
        if self.undecided:
            self.decide()

    @property
    def entries(self) -> dict[Any, Any]:
        self.settle()
        return self.known

    @entries.setter
    def entries(self, entries: dict[Any, Any]) -> None:
        self.known = entries


@attrs.define(eq=False, repr=False, slots=False)
class DictTracker(HashedTracker):
    """A dict. Keys are hashed by `key_of`; `entries` maps a hashed key to (key tracker, value tracker), in order.

    `complete` is false for an existing dict of which only single keys have been read: `entries` then holds those (a
    value DELETED: known to be absent), in no order, and the rest is still in `real`. `log` has the writes, for replay:
    ("set" | "delete", hashed key, key tracker, value tracker); those in `undecided`, (key tracker, value tracker), come
    after them. `owner` is the object whose `__dict__` this is.
    """

    complete: bool = attrs.field(kw_only=True)
    log: list[tuple[str, Any, Any, Any]] = attrs.field(factory=list)
    owner: Any = None
    iterators: list[Any] = attrs.field(factory=list)  # over it, and perhaps under way
    default_factory: Any = MISSING
    may_ask: bool | None = (
        None  # whether a key of `real` compares in Python; None: nobody has looked
    )


@attrs.define(eq=False, repr=False, slots=False)
class SetTracker(HashedTracker):
    """A set or frozenset: hashed key to item tracker. The order is that of insertion; who asks for it gets a break.

    One from outside is not read before somebody asks for all of it: until then `known` is what was added to it.
    `steps` are the calls that made or changed it, (method, argument): C's order follows from them. None: not all are
    known.
    """

    steps_taken: list[tuple[str, Any]] | None = attrs.field(factory=list)
    unread: Any = None  # the call that reads it
    before: dict[Any, Any] = attrs.field(factory=dict)  # what was read

    def settle(self) -> None:
        super().settle()
        if self.unread is not None:
            self.unread(self)

    @property
    def steps(self) -> list[tuple[str, Any]] | None:
        super().settle()
        return self.steps_taken

    @steps.setter
    def steps(self, steps: list[tuple[str, Any]] | None) -> None:
        self.steps_taken = steps

    def constant(self) -> Any:
        if (
            self.cls is not frozenset or self.unread is not None or len(self.entries) > 1
        ):  # of unknown order
            return MISSING
        values = [item.constant() for item in self.entries.values()]
        return MISSING if any(v is MISSING for v in values) else frozenset(values)


class ViewTracker(VariableTracker):
    """dict.keys(), .values() or .items() of a dict tracker; `part` is "keys", "values" or "items"."""

    def __init__(self, cls: type, part: str, mapping: Any) -> None:
        self.cls = cls
        self.part = part
        self.mapping = mapping


VIEW_CLASSES: dict[str, tuple[Any, Any]] = {
    part: (type(getattr({}, part)()), type(getattr(OrderedDict(), part)()))
    for part in ("keys", "values", "items")
}
"""The classes of the views of a dict, and of an OrderedDict."""


class ProxyTracker(VariableTracker):
    """A mappingproxy of a dict tracker; `owner` is the class whose `__dict__` it is."""

    cls = types.MappingProxyType
    owner: type | None = None

    def __init__(self, mapping: Any) -> None:
        self.mapping = mapping
