"""Iterators over objects that have items alone (`__getitem__`), and `reversed` of such."""

import types

from stator_bytecode import NULL, OperationSteps, operation

from stator_variables._emitter import Emitter
from stator_variables._objects._iterators._iterator import PositionedTracker
from stator_variables._objects._program_error import attempt
from stator_variables._runtime._contents import plain_lookup
from stator_variables._runtime._support import (
    can_be_long,
    exhausted_by_items,
    reversed_from,
    standing,
)
from stator_variables._space import Space
from stator_variables._tracker import VariableTracker
from stator_variables._trackers import ConstantTracker

_FORWARD = type(exhausted_by_items())


class ItemIteratorTracker(PositionedTracker):
    """An iterator that reads items by their number; backwards with the `size` that was read."""

    def __init__(self, over: VariableTracker, size: int | None = None) -> None:
        self.over = over
        self.backwards = size is not None
        self.cls = reversed if self.backwards else _FORWARD
        self.size = size or 0

    def counted(self) -> VariableTracker:
        return self.over if self.backwards else self

    @operation
    def item(self, t: Space) -> OperationSteps:
        if self.index < 0:
            return NULL
        number = ConstantTracker(self.index)
        ends = IndexError | StopIteration
        return (yield from attempt(t, ends, NULL, t.get_item, self.over, number))

    def rebuild_exhausted(self, e: Emitter) -> str:
        if self.backwards:
            raise e.refuse(self)
        return f"{e.capture(exhausted_by_items)}()"

    def rebuild_here(self, e: Emitter) -> str:
        """Neither items nor length of a user-defined class are read once more."""
        cls, begun = self.over.cls, self.begun(e)
        if not (self.backwards or self.position):
            return begun
        has_length_of_c = type(plain_lookup(cls, "__len__")) is types.WrapperDescriptorType
        if has_length_of_c or not self.backwards:
            return f"{e.capture(standing)}({begun}, {self.index})"
        if not can_be_long(cls):
            raise e.refuse(self)
        return f"{e.capture(reversed_from)}({e.expr(self.over)}, {self.index})"
