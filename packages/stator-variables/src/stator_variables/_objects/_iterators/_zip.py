"""`zip` and `enumerate`, which give tuples."""

from collections.abc import Sequence

from stator_bytecode import NULL, OperationSteps, operation, settle
from stator_guards import CallSource, Equals, Source, shown_as

from stator_variables._emitter import Emitter
from stator_variables._objects._builder_table import BuilderTable
from stator_variables._objects._iterators._iterator import (
    ConsumerTracker,
    unasked_texts,
    wrap_operands,
)
from stator_variables._objects._program_error import throw
from stator_variables._objects._tuple import TupleTracker
from stator_variables._runtime._support import unasked
from stator_variables._space import Space
from stator_variables._tracker import Split, VariableTracker
from stator_variables._trackers import ConstantTracker

builders = BuilderTable()


class ZipTracker(ConsumerTracker):
    """A `zip`; a strict one raises where one iterator ends before another."""

    cls = zip

    def __init__(self, is_strict: bool, *iterators: VariableTracker) -> None:
        self.is_strict = is_strict
        self.iterators = [*iterators]

    @operation
    def next(self, t: Space) -> OperationSteps:
        found = yield from one_of_each(t, self.iterators)
        if len(found) < len(self.iterators):
            if self.is_strict:
                yield from self._check_lengths(t, len(found))
            return NULL
        return TupleTracker(found) if found else NULL

    def _check_lengths(self, t: Space, index: int) -> OperationSteps:
        if index:
            _complain(index, "shorter")
        for later, part in enumerate(self.iterators[1:], start=1):
            if (yield from settle(t.next_value(part))) is not NULL:
                _complain(later, "longer")

    def is_in_step(self, steps: int, ended: bool, below: set[int]) -> bool:
        """The iterators have all given as many items, but for those before the one that had no
        more, after which a strict one finds no more in the others."""
        below.add(id(self))
        parts = self.iterators
        ends = [each.has_ended() for each in parts]
        if len({*map(id, parts)}) < len(parts) or ended not in ends:
            return False
        if self.is_strict:
            return all(each.is_in_step(steps, ended, below) for each in parts)
        last = ends.index(True) if ended else len(parts)
        return all(
            each.is_in_step(steps + (ended and i < last), i == last, below)
            for i, each in enumerate(parts)
        )

    def rebuild_here(self, e: Emitter) -> str:
        texts = [*unasked_texts(e, self.iterators), f"strict={self.is_strict}"]
        return f"zip({', '.join(texts)})"

    def split(self) -> Split | None:
        return (self.is_strict,), self.iterators

    @staticmethod
    def build(is_strict: bool, *iterators: object) -> object:
        return zip(*map(unasked, iterators), strict=is_strict)


def one_of_each(t: Space, iterators: Sequence[VariableTracker]) -> OperationSteps:
    """Give the next items of several iterators, up to the first that has none."""
    found: list[VariableTracker] = []
    for each in iterators:
        if (value := (yield from settle(t.next_value(each)))) is NULL:
            break
        found.append(value)
    return found


def _complain(index: int, comparison: str) -> None:
    s = " " if index == 1 else "s 1-"
    throw(ValueError, f"zip() argument {index + 1} is {comparison} than argument{s}{index}")


@builders.by_class.handles(zip)
def build_zip(t: Space, real: object, source: Source) -> VariableTracker:
    iterators = wrap_operands(t, real, source)
    t.guard(CallSource(_is_strict, source), Equals(_is_strict(real)))
    return ZipTracker(_is_strict(real), *iterators)


@shown_as("the strictness of {0}")
def _is_strict(iterator: object) -> bool:
    return len(iterator.__reduce__()) > 2


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
        if start.is_known:  # else `next` moves it along
            start = ConstantTracker(start.constant() + self.position)
        return (), [*self.iterators, start]

    @staticmethod
    def build(iterator: object, start: int) -> object:
        return enumerate(unasked(iterator), start)


@builders.by_class.handles(enumerate)
def build_enumerate(t: Space, real: object, source: Source) -> VariableTracker:
    return EnumerateTracker(*wrap_operands(t, real, source))
