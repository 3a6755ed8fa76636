"""The base of all builtin iterators, and two refinements: those with a position, and those that
step other iterators."""

from abc import ABCMeta, abstractmethod
from collections.abc import Iterable, Sequence
from functools import partial
from types import WrapperDescriptorType
from typing import Any

from stator_bytecode import NULL, Result, after
from stator_guards import CallSource, ItemSource, Length, Source, TypeIs, shown_as

from stator_variables._emitter import Emitter
from stator_variables._objects._dict_view import of_base
from stator_variables._runtime._contents import plain_lookup
from stator_variables._runtime._support import advanced, finished, spoiled, unasked
from stator_variables._space import Space
from stator_variables._trace._capture_state import Phase
from stator_variables._tracker import Split, VariableTracker


class IteratorTracker(VariableTracker, metaclass=ABCMeta):
    """A builtin iterator, which has given `position` items."""

    steps_to_null = True
    position = 0
    exhausted = False

    def iter(self, t: Space) -> "IteratorTracker":
        return self

    def traverse(self) -> list[Any]:
        return [] if self.exhausted else super().traverse()

    def finish(self, t: Space) -> Any:
        """End it, and return NULL."""
        if not self.exhausted:
            t.write(self, exhausted=True)
        return NULL

    # -- existing ones -----------------------------------------------------------------------------
    def is_replayable(self) -> bool:
        return True

    def has_ended(self) -> bool:
        return self.exhausted

    def is_in_step(self, steps: int, ended: bool, below: set[int]) -> bool:
        below.add(id(self))
        return self.position == steps and self.has_ended() == ended

    def advance(self, e: Emitter, below: set[int]) -> None:
        if id(self) in below:
            return
        name = e.expr(self)
        if self.has_ended():
            e.lines.append(f"{e.capture(finished)}({name})")
        elif self.position:
            several = f"{e.capture(advanced)}({name}, {self.position})"
            e.lines.append(f"next({name})" if self.position == 1 else several)

    def replay(self, e: Emitter) -> None:
        """Write nothing: `advance` has written the steps."""

    # -- new ones ----------------------------------------------------------------------------------
    def split(self) -> Split | None:
        """Return the arguments of its class: the first, which are static, and the values after
        them. Its function `build` makes a real iterator of the same, with real values.

        None where it is carried over a break as a real one.
        """
        return None

    def waits_for_effects(self, t: Space) -> bool:
        """Return True if effects, which come later, change what it goes through, so that it would
        detect them."""
        return any(id(part) in t.heap.changed for part in self.components())

    def rebuild(self, e: Emitter) -> str:
        if self.exhausted:
            return e.bind(self, self.rebuild_exhausted(e))
        if self.waits_for_effects(e.t):
            return self.rebuild_late(e)
        return e.bind(self, self.rebuild_here(e))

    def rebuild_exhausted(self, e: Emitter) -> str:
        """Return an expression for one at its end."""
        if (text := _EMPTY.get(self.cls)) is None:
            raise e.refuse(self)
        return f"{e.capture(finished)}({text})"

    def rebuild_late(self, e: Emitter) -> str:
        """Write the lines that make it after the effects, and return its name."""
        return e.bind_later(Phase.AFTER_CHANGES, self, self.rebuild_here(e))

    @abstractmethod
    def rebuild_here(self, e: Emitter) -> str:
        """Return an expression for one that stands where it stands."""


_EMPTY = {
    type(iter([])): "iter([])",
    type(iter(())): "iter(())",
    type(iter(range(0))): "iter(range(0))",
    type(iter("")): "iter('')",
    type(iter(b"")): "iter(b'')",
    type(iter(int, 0)): "iter(int, 0)",
    type(iter({})): "iter({})",
    type(iter({}.values())): "iter({}.values())",
    type(iter({}.items())): "iter({}.items())",
    type(reversed([])): "reversed([])",
}
"""Expressions for iterators over nothing: one of these classes at its end is any other."""


class PositionedTracker(IteratorTracker, references=("over",)):
    """An iterator that stands at a place in `over`, `backwards` or not.

    `size` is the number of items when it was made, where that matters.
    """

    over: VariableTracker
    size = 0
    backwards = False

    @property
    def index(self) -> int:
        """The place of the next item."""
        return self.size - 1 - self.position if self.backwards else self.position

    @property
    def verb(self) -> str:
        return "reversed" if self.backwards else "iter"

    @abstractmethod
    def item(self, t: Space) -> Result:
        """Return the next item; NULL at the end."""

    def next(self, t: Space) -> Result:
        return NULL if self.exhausted else after(self.item(t), partial(self.move, t))

    def move(self, t: Space, item: Any) -> Any:
        """Move past an item, or end where that is NULL."""
        if item is NULL:
            return self.finish(t)
        t.write(self, position=self.position + 1)
        return item

    def begun(self, e: Emitter) -> str:
        """Return an expression for one that stands at its start."""
        return of_base(e, self.over, f"__{self.verb}__", f"{self.verb}({{}})")

    def rebuild_here(self, e: Emitter) -> str:
        """Return an expression for one that was moved from its start to its position."""
        begun = self.begun(e)
        return f"{e.capture(advanced)}({begun}, {self.position})" if self.position else begun

    def rebuild_spoiled(self, e: Emitter, most: int) -> str:
        """Make one that will find `over` changed, which has `most` items by then."""
        of = e.expr(self.over)
        return e.bind(self, f"{e.capture(spoiled)}({of}, {self.verb}, {most})")


def item_at(items: Sequence[VariableTracker], index: int) -> Result:
    """Return the item at a place, or NULL."""
    return items[index] if 0 <= index < len(items) else NULL


class ConsumerTracker(IteratorTracker, references=("iterators",)):
    """An iterator whose steps take steps of others."""

    iterators: list[VariableTracker]

    def is_replayable(self) -> bool:
        return all(each.is_replayable() for each in self.iterators)

    def has_ended(self) -> bool:
        return any(each.has_ended() for each in self.iterators)


def unasked_texts(e: Emitter, vts: Iterable[VariableTracker]) -> list[str]:
    """Return the texts of iterators whose `__iter__` C calls once more."""
    texts = []
    for vt in vts:
        is_of_c = type(plain_lookup(vt.cls, "__iter__")) is WrapperDescriptorType
        texts.append(e.expr(vt) if is_of_c else f"{e.capture(unasked)}({e.expr(vt)})")
    return texts


# -- reading existing ones -------------------------------------------------------------------------
@shown_as("the parts of {0}")
def operands(iterator: Any) -> tuple[Any, ...]:
    """Return the operands of a builtin iterator, by its `__reduce__`."""
    return iterator.__reduce__()[1]  # type: ignore[no-any-return]


def wrap_operands(t: Space, real: object, source: Source) -> list[VariableTracker]:
    """Return the operands of an existing iterator, whose class is guarded."""
    t.guard(source, TypeIs(type(real)))
    parts, whole = operands(real), CallSource(operands, source)
    t.guard(whole, Length(len(parts)))
    return [t.wrap(part, ItemSource(whole, i)) for i, part in enumerate(parts)]
