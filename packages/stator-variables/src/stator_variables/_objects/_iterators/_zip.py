"""`zip`."""

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
