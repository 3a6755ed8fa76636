"""The layout of a frame stack: a `Point` without its values.

Every slot and stack position has a kind. Most carry one value of the flat state (`VALUE`, `CELL`,
`PREVIOUS`); the others carry none, and are made again from their kind alone. Equal layouts share
compiled continuations, so layouts are compared by value, with codes and globals dictionaries by
identity.
"""

import enum
from collections.abc import Iterator, Sequence
from itertools import count, islice
from types import CodeType
from typing import Any, ClassVar, Protocol, TypeAlias

from attrs import field, frozen

from stator_bytecode._codec._instruction import Code, Instruction
from stator_bytecode._machine._frame import GeneratorStatus, Then


class SimpleKind(enum.Enum):
    """Kinds without data."""

    VALUE = "value"
    CELL = "cell"
    NULL = "null"
    # the marker of PUSH_EXC_INFO, over an exception that was being handled before
    PREVIOUS = "previous"
    NO_PREVIOUS = "no previous"  # the same, over none

    # that of `Enum` is written in Python, and called a thousand times a break
    __hash__ = object.__hash__


@frozen
class RaisedAt:
    """The stack position that a handler with `lasti` gets: the neutral index of the instruction
    that raised."""

    index: int


@frozen
class CarriedAt:
    """A generator or object carried as frame state: `Point.carried[index]`, or a running
    `Point.frames[index]`."""

    index: int
    running: bool


SlotKind: TypeAlias = SimpleKind | RaisedAt | CarriedAt

VALUE, CELL, NULL_KIND = SimpleKind.VALUE, SimpleKind.CELL, SimpleKind.NULL
"""NULL_KIND is an empty stack slot, and a local without a value, as the interpreter has it."""
PREVIOUS, NO_PREVIOUS = SimpleKind.PREVIOUS, SimpleKind.NO_PREVIOUS
CARRYING: frozenset[SlotKind] = frozenset({VALUE, CELL, PREVIOUS})
"""Kinds that have a value in the flat state."""


@frozen
class ThenLayout:
    """A Then without its values: how many they are."""

    kind: str
    count: int = 0
    name: str = ""

    def restore(self, values: Iterator[Any]) -> Then:
        return Then(self.kind, tuple(islice(values, self.count)), self.name)


@frozen(cache_hash=True)
class FrameLayout:
    """One frame of a Point. Its values, in order: slots, stack, the exception being handled,
    those of `then`."""

    code: Code
    pc: int
    slots: tuple[SlotKind, ...]
    stack: tuple[SlotKind, ...]
    globals: dict[str, Any] = field(eq=id, repr=False)
    handled: bool = False
    then: ThenLayout | None = None
    hidden: bool = False
    generator: GeneratorStatus | None = None

    @property
    def raw(self) -> CodeType:
        return self.code.raw

    @property
    def instruction(self) -> Instruction:
        return self.code.instructions[self.pc]

    @property
    def waits_with(self) -> str:
        """The kind of its `then`; nothing for the innermost frame."""
        return "" if self.then is None else self.then.kind


class VirtualizedRecipe(Protocol):
    """The way to rebuild a virtualized object from its parts: static, compared by value."""

    def build(self, parts: Sequence[Any]) -> Any:
        """The real object."""


@frozen
class Virtualized:
    """An object that nothing but the frames can see, taken apart so that a generator in it can be
    frame state."""

    recipe: VirtualizedRecipe
    values: tuple[Any, ...]


@frozen
class VirtualizedLayout:
    """An object carried in parts: `slots` has their kinds. Laid out like a frame that has nothing
    else."""

    recipe: VirtualizedRecipe
    slots: tuple[SlotKind, ...]
    stack: tuple[SlotKind, ...] = ()
    handled: ClassVar[bool] = False
    then: ClassVar[None] = None


Layout: TypeAlias = FrameLayout | VirtualizedLayout


@frozen
class FlatIndices:
    """The positions of one frame's values in the flat state; None for a slot without a value."""

    slots: tuple[int | None, ...]
    stack: tuple[int | None, ...]
    handled: int | None
    then: tuple[int, ...]
    start: int
    stop: int


def flat_indices_of(layout: Layout, start: int) -> FlatIndices:
    positions = count(start)

    def take(carried: bool) -> int | None:
        return next(positions) if carried else None

    slots = tuple(take(kind in CARRYING) for kind in layout.slots)
    stack = tuple(take(kind in CARRYING) for kind in layout.stack)
    handled = take(layout.handled)
    then = () if layout.then is None else tuple(islice(positions, layout.then.count))
    return FlatIndices(slots, stack, handled, then, start, next(positions))
