"""Iterators that call functions: `map`, `filter`, and `iter(function, sentinel)`."""

from stator_bytecode import NULL, OperationSteps, operation, settle
from stator_guards import Source

from stator_variables._emitter import Emitter
from stator_variables._objects._builder_table import BuilderTable
from stator_variables._objects._iterators._iterator import (
    ConsumerTracker,
    IteratorTracker,
    unasked_texts,
    wrap_operands,
)
from stator_variables._objects._iterators._zip import one_of_each
from stator_variables._objects._program_error import attempt
from stator_variables._runtime._support import unasked
from stator_variables._space import Space
from stator_variables._tracker import Split, VariableTracker
from stator_variables._trackers import is_none

builders = BuilderTable()


class CallingTracker(ConsumerTracker, references=("function",)):
    """A `map` or `filter`, whose function may raise StopIteration."""

    steps_to_null = False

    def __init__(self, function: VariableTracker, *iterators: VariableTracker) -> None:
        self.function = function
        self.iterators = [*iterators]

    def is_replayable(self) -> bool:
        return False

    def rebuild_here(self, e: Emitter) -> str:
        texts = [e.expr(self.function), *unasked_texts(e, self.iterators)]
        return f"{self.cls.__name__}({', '.join(texts)})"

    def split(self) -> Split | None:
        return (), [self.function, *self.iterators]

    @classmethod
    def build(cls, function: object, *iterators: object) -> object:
        return cls.cls(function, *map(unasked, iterators))


class MapTracker(CallingTracker):
    """A `map`."""

    cls = map

    @operation
    def next(self, t: Space) -> OperationSteps:
        args = yield from one_of_each(t, self.iterators)
        if len(args) < len(self.iterators):
            return NULL
        return (yield from settle(t.call(self.function, args)))


class FilterTracker(CallingTracker):
    """A `filter`, over one iterator."""

    cls = filter

    @operation
    def next(self, t: Space) -> OperationSteps:
        function, (iterator,) = self.function, self.iterators
        while True:
            if (value := (yield from settle(t.next_value(iterator)))) is NULL:
                return NULL
            kept = value if is_none(function) else (yield from settle(t.call(function, [value])))
            if (yield from settle(t.truth(kept))):
                return value


class CallableIteratorTracker(IteratorTracker, references=("function", "sentinel")):
    """An iterator over the results of a function, up to one that is equal to `sentinel`."""

    cls = type(iter(int, 0))

    def __init__(self, function: VariableTracker, sentinel: VariableTracker) -> None:
        self.function = function
        self.sentinel = sentinel

    @operation
    def next(self, t: Space) -> OperationSteps:
        if self.exhausted:
            return NULL
        value = yield from attempt(t, StopIteration, NULL, t.call, self.function, [], {})
        if value is NULL:
            return self.finish(t)
        if self.exhausted:  # the call went through the iterator itself
            return NULL
        if (yield from settle(t.equal(self.sentinel, value))):
            return self.finish(t)
        return value

    def rebuild_here(self, e: Emitter) -> str:
        return f"iter({e.listed([self.function, self.sentinel])})"


@builders.by_class.handles(map, filter)
def build_calling(t: Space, real: object, source: Source) -> VariableTracker:
    made = MapTracker if type(real) is map else FilterTracker
    return made(*wrap_operands(t, real, source))
