"""`enumerate`."""

from stator_bytecode import NULL, OperationSteps, operation, settle
from stator_guards import Source

from stator_variables._emitter import Emitter
from stator_variables._objects._builder_table import BuilderTable
from stator_variables._objects._iterators._iterator import (
    ConsumerTracker,
    unasked_texts,
    wrap_operands,
)
from stator_variables._objects._tuple import TupleTracker
from stator_variables._runtime._support import unasked
from stator_variables._space import Space
from stator_variables._tracker import Split, VariableTracker
from stator_variables._trackers import ConstantTracker

builders = BuilderTable()


class EnumerateTracker(ConsumerTracker, references=("start",)):
    """An `enumerate` over one iterator; `start` was the number at position 0."""

    cls = enumerate

    def __init__(self, iterator: VariableTracker, start: VariableTracker) -> None:
        self.iterators = [iterator]
        self.start = start

    @operation
    def next(self, t: Space) -> OperationSteps:
        (iterator,) = self.iterators
        if self.source is not None and not iterator.is_replayable():
            raise t.unsupported(
                "existing-iterator",
                f"a step of an existing enumerate over a {iterator.cls.__name__}",
            )
        if (value := (yield from settle(t.next_value(iterator)))) is NULL:
            return NULL
        index = t.binary("+", self.start, ConstantTracker(self.position))
        if self.source is None and not self.start.is_known:  # a value that goes on over a break
            t.write(self, start=t.binary("+", index, ConstantTracker(1)), position=0)
        else:
            t.write(self, position=self.position + 1)
        return TupleTracker([index, value])

    def is_in_step(self, steps: int, ended: bool, below: set[int]) -> bool:
        return super().is_in_step(steps, ended, below) and self._moves_along(below)

    def _moves_along(self, below: set[int]) -> bool:
        """Return True if its steps lead the iterator below it to where that stands."""
        return self.iterators[0].is_in_step(self.position, self.has_ended(), below)

    def advance(self, e: Emitter, below: set[int]) -> None:
        if not self._moves_along(below):
            raise e.refuse(self)
        super().advance(e, below)

    def rebuild_here(self, e: Emitter) -> str:
        (iterator,) = unasked_texts(e, self.iterators)
        return f"enumerate({iterator}, {e.expr(self.start)} + {self.position})"

    def split(self) -> Split | None:
        """The count goes on as a value: as a part of the recipe it would make another continuation
        of every round."""
        start = self.start
        if start.is_known:
            start = ConstantTracker(start.constant() + self.position)
        elif self.position:
            return None
        return (), [*self.iterators, start]

    @staticmethod
    def build(iterator: object, start: int) -> object:
        return enumerate(unasked(iterator), start)


@builders.by_class.handles(enumerate)
def build_enumerate(t: Space, real: object, source: Source) -> VariableTracker:
    return EnumerateTracker(*wrap_operands(t, real, source))
