"""Iterators over sequences: lists and tuples, deques, strings and ranges."""

from collections import deque
from collections.abc import Sequence
from typing import Any

from stator_bytecode import NULL

from stator_variables._emitter import Emitter
from stator_variables._objects._iterators._iterator import PositionedTracker, item_at
from stator_variables._objects._program_error import throw
from stator_variables._objects._tuple import SequenceTracker
from stator_variables._runtime._support import advanced, placed, spoiled
from stator_variables._space import Space
from stator_variables._tracker import Split, VariableTracker
from stator_variables._trackers import ConstantTracker

SHORT = 8
"""Items: each position of an iterator over a list is a continuation of its own, so long ones are
not carried."""


class SequenceIteratorTracker(PositionedTracker, references=("sequence",)):
    """An iterator over a list or a tuple."""

    def __init__(
        self, cls: type, position: int, sequence: SequenceTracker, backwards: bool = False
    ) -> None:
        self.cls = cls
        self.position = position
        self.sequence = sequence
        self.backwards = backwards
        if backwards:
            self.size = len(sequence.items)

    def item(self, t: Space) -> VariableTracker | Any:
        return item_at(self.sequence.items, self.index)

    def rebuild_here(self, e: Emitter) -> str:
        """Place it where steps from the start may not lead to its position.

        A new list may have been longer, and a list that holds the iterator is still empty. A list
        from outside is unchanged.
        """
        begun = self.begun(e, self.sequence)
        has_moved = self.backwards or self.position > 0
        if has_moved and self.sequence.base is list and self.sequence.source is None:
            return self._placed(e, begun)
        return self.advanced(e, begun)

    def rebuild_late(self, e: Emitter) -> str:
        name = e.bind(self, self.begun(e, self.sequence))
        e.last.lines.append(self._placed(e, name))
        return name

    def _placed(self, e: Emitter, begun: str) -> str:
        return f"{e.capture(placed)}({begun}, {e.expr(self.sequence)}, {self.index})"

    def split(self) -> Split | None:
        is_far = self.position > 0 and len(self.sequence.items) > SHORT
        if self.exhausted or self.backwards or is_far:
            return None
        return (self.cls, self.position), [self.sequence]

    @staticmethod
    def build(of: type, position: int, sequence: Any) -> object:
        base = list if isinstance(sequence, list) else tuple
        return advanced(base.__iter__(sequence), position)


class DequeIteratorTracker(PositionedTracker, references=("sequence",)):
    """An iterator over a deque, which raises when that has changed."""

    def __init__(self, sequence: SequenceTracker, backwards: bool = False) -> None:
        self.cls = type(reversed(deque()) if backwards else iter(deque()))
        self.sequence = sequence
        self.size = len(sequence.items)
        self.structure = sequence.structure
        self.backwards = backwards

    def finish(self, t: Space) -> Any:
        """Do not end it: it refers to the deque at its end as well, and reads it again."""
        return NULL

    def item(self, t: Space) -> VariableTracker | Any:
        if self.index < 0:
            return NULL
        if not self._is_intact():
            throw(RuntimeError, "deque mutated during iteration")
        return item_at(self.sequence.items, self.index)

    def _is_intact(self) -> bool:
        now = self.sequence
        return len(now.items) == self.size and now.structure == self.structure

    def rebuild(self, e: Emitter) -> str:
        if self._is_intact():
            return super().rebuild(e)
        if self.index < 0:
            raise e.refuse(self)
        name, most = e.expr(self.sequence), len(self.sequence.items)
        return e.bind(self, f"{e.capture(spoiled)}({name}, {self.verb}, {most})")

    def rebuild_here(self, e: Emitter) -> str:
        return self.advanced(e, self.begun(e, self.sequence))


class ConstantIteratorTracker(PositionedTracker, references=("constants",)):
    """An iterator over `values`, those of `constants` in its direction.

    A long range has them all without making them.
    """

    def __init__(self, cls: type, constants: VariableTracker, values: Sequence[object]) -> None:
        self.cls = cls
        self.constants = constants
        self.values = values
        self.backwards = cls is reversed

    def item(self, t: Space) -> VariableTracker | Any:
        try:
            return ConstantTracker(self.values[self.position])
        except IndexError:
            return NULL

    def rebuild_here(self, e: Emitter) -> str:
        return self.advanced(e, f"{self.verb}({e.expr(self.constants)})")
