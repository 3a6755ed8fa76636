"""Iterators over sequences: lists and tuples, deques, strings and ranges."""

from collections import deque
from collections.abc import Sequence
from typing import Any

from stator_bytecode import NULL, Result

from stator_variables._emitter import Emitter
from stator_variables._objects._iterators._iterator import PositionedTracker, item_at
from stator_variables._objects._program_error import throw
from stator_variables._objects._tuple import SequenceTracker
from stator_variables._runtime._support import advanced, placed
from stator_variables._space import Space
from stator_variables._trace._capture_state import Phase
from stator_variables._tracker import Split, VariableTracker
from stator_variables._trackers import ConstantTracker

SHORT = 8
"""Items: each position of an iterator over a list is a continuation of its own, so long ones are
not carried."""


class SequenceIteratorTracker(PositionedTracker):
    """An iterator over a list or a tuple."""

    over: SequenceTracker

    def __init__(
        self, cls: type, position: int, over: SequenceTracker, backwards: bool = False
    ) -> None:
        self.cls = cls
        self.position = position
        self.over = over
        self.backwards = backwards
        if backwards:
            self.size = len(over.items)

    def item(self, t: Space) -> Result:
        return item_at(self.over.items, self.index)

    def rebuild_here(self, e: Emitter) -> str:
        """Place it where steps from the start may not lead to its position.

        A new list may have been longer, and a list that holds the iterator is still empty. A list
        from outside is unchanged.
        """
        is_new_list = self.over.base is list and self.over.source is None
        if is_new_list and (self.backwards or self.position):
            return self._placed(e, self.begun(e))
        return super().rebuild_here(e)

    def rebuild_late(self, e: Emitter) -> str:
        name = e.bind(self, self.begun(e))
        e.later[Phase.AFTER_CHANGES].lines.append(self._placed(e, name))
        return name

    def _placed(self, e: Emitter, begun: str) -> str:
        return f"{e.capture(placed)}({begun}, {e.expr(self.over)}, {self.index})"

    def split(self) -> Split | None:
        if self.exhausted or self.backwards or (self.position and len(self.over.items) > SHORT):
            return None
        return (self.cls, self.position), [self.over]

    @staticmethod
    def build(of: type, position: int, over: Any) -> object:
        return advanced((list if isinstance(over, list) else tuple).__iter__(over), position)


class DequeIteratorTracker(PositionedTracker):
    """An iterator over a deque, which raises when that has changed."""

    over: SequenceTracker

    def __init__(self, over: SequenceTracker, backwards: bool = False) -> None:
        self.cls = type(reversed(deque()) if backwards else iter(deque()))
        self.over = over
        self.size = len(over.items)
        self.structure = over.structure
        self.backwards = backwards

    def finish(self, t: Space) -> Any:
        """Do not end it: it refers to the deque at its end as well, and reads it again."""
        return NULL

    def item(self, t: Space) -> Result:
        if self.index < 0:
            return NULL
        if not self._is_intact():
            throw(RuntimeError, "deque mutated during iteration")
        return item_at(self.over.items, self.index)

    def _is_intact(self) -> bool:
        return len(self.over.items) == self.size and self.over.structure == self.structure

    def rebuild(self, e: Emitter) -> str:
        if self._is_intact():
            return super().rebuild(e)
        if self.index < 0:
            raise e.refuse(self)
        return self.rebuild_spoiled(e, len(self.over.items))


class ConstantIteratorTracker(PositionedTracker):
    """An iterator over `values`, those of a constant in its direction.

    A long range has them all without making them.
    """

    def __init__(self, cls: type, over: VariableTracker, values: Sequence[object]) -> None:
        self.cls = cls
        self.over = over
        self.values = values
        self.backwards = cls is reversed

    def item(self, t: Space) -> Result:
        try:
            return ConstantTracker(self.values[self.position])
        except IndexError:
            return NULL
