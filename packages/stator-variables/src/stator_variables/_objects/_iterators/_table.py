"""Iterators over dicts, their views, and sets."""

from collections import OrderedDict
from typing import Any

from stator_bytecode import NULL, Result

from stator_variables._emitter import Emitter
from stator_variables._objects import _dict_entries
from stator_variables._objects._dict import DictTracker
from stator_variables._objects._dict_view import of_base
from stator_variables._objects._iterators._iterator import PositionedTracker, item_at
from stator_variables._objects._program_error import throw
from stator_variables._objects._set import SetTracker, ordered
from stator_variables._objects._tuple import TupleTracker
from stator_variables._space import Space
from stator_variables._tracker import VariableTracker


class DictIteratorTracker(PositionedTracker):
    """An iterator over a dict; `part` is "keys", "values" or "items".

    A dict is not changed under it: see `_dict_entries`.
    """

    over: DictTracker

    def __init__(self, over: DictTracker, part: str, size: int, backwards: bool) -> None:
        empty = getattr(OrderedDict() if issubclass(over.cls, OrderedDict) else {}, part)()
        self.cls = type(reversed(empty) if backwards else iter(empty))
        self.over = over
        self.part = part
        self.size = size
        self.backwards = backwards

    def item(self, t: Space) -> Result:
        pairs = t.items(self.over)
        if len(pairs) != self.size:
            raise t.unsupported(
                "dict-changed-during-iteration",
                "a dict whose keys changed since its iterator was made",
            )
        if self.position >= self.size:
            return NULL
        key, value = pairs[self.index]
        if self.part == "items":
            return TupleTracker([key, value])
        return key if self.part == "keys" else value

    def waits_for_effects(self, t: Space) -> bool:
        table = self.over
        is_resized = table.source is not None and (
            _dict_entries.deletions(table) > 0 or len(table.entries) != dict.__len__(table.real)
        )
        return is_resized or table.fills_by_user_code(t)

    def begun(self, e: Emitter) -> str:
        if self.over in e.unfilled:
            raise e.refuse(self)
        return f"{self.verb}({of_base(e, self.over, self.part, f'{{}}.{self.part}()')})"


def dict_iterator(t: Space, table: Any, part: str, backwards: bool = False) -> DictIteratorTracker:
    made = DictIteratorTracker(table, part, len(t.items(table)), backwards)
    table.iterators.append(made)
    return made


class SetIteratorTracker(PositionedTracker, references=("order",)):
    """An iterator over a set, which raises when that has another size."""

    cls: type = type(iter(set()))
    over: SetTracker

    def __init__(self, over: SetTracker, order: list[VariableTracker]) -> None:
        self.over = over
        self.order = order

    def item(self, t: Space) -> Result:
        now = self.over.entries.values()
        if len(now) != len(self.order):
            throw(RuntimeError, "Set changed size during iteration")
        if {*map(id, now)} != {*map(id, self.order)}:
            raise t.unsupported("set-order", "a set that changes while it is iterated")
        return item_at(self.order, self.position)

    def rebuild(self, e: Emitter) -> str:
        """Refused if C would continue with other items."""
        now = [*self.over.entries.values()]
        if self.exhausted or now == self.order:
            return super().rebuild(e)
        if len(now) == len(self.order):
            raise e.refuse(self)
        return self.rebuild_spoiled(e, len(now))

    def waits_for_effects(self, t: Space) -> bool:
        return self.over.fills_by_user_code(t) or super().waits_for_effects(t)


def set_iterator(t: Space, table: SetTracker) -> SetIteratorTracker:
    return SetIteratorTracker(table, ordered(t, table))
