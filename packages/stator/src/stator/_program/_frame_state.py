"""The values of a broken frame stack that are carried as frame state: generators, iterators, the
objects that hold them, and open `with` statements.

`id(thing)` is carried as well if a frame holds the thing: as a number it would differ on every
call.

Only values that nothing but the frames can reach are carried. Whether something else reaches one
turns out when the entry is written.
"""

import inspect
import sys
from collections.abc import Iterable, Iterator
from typing import Any

import attrs
from stator_bytecode import NULL, Frame, GeneratorState, Snapshot, Virtualized, operands
from stator_variables import (
    Emitter,
    VariableTracker,
    generator_state,
    has_few_parts,
    is_identity,
    is_method,
    is_opaque,
    parts_of,
    real_of,
    walk,
)

FRAME_READERS = (breakpoint, dir, eval, exec, inspect.currentframe, locals, sys._getframe, vars)
"""Functions that inspect the frames of their callers: these have to hold what the program's frames
would."""


def reads_frames(snapshot: Snapshot) -> bool:
    """Return True if an operand of the instruction that broke is one of `FRAME_READERS`."""
    state = snapshot.frames[-1]
    given = state.stack[len(state.stack) - operands(state.code.instructions[state.pc]) :]
    return any(
        real_of(value) is reader for value in given if value is not NULL for reader in FRAME_READERS
    )


@attrs.define(eq=False)
class Carried:
    """The decision for each value of the frames: its virtualized form, or None to make a real
    object of it.

    `objects`: trackers and generators known to be needed as real objects; `nothing`: all are.
    """

    objects: list[Any]
    nothing: bool = False
    states: list[GeneratorState] = attrs.field(factory=list)
    # the identities of what the frames hold, those of carried generators included
    _in_slots: set[int] = attrs.field(factory=set)
    _on_stacks: set[int] = attrs.field(factory=set)
    # by the identity of a tracker, kept alive
    _parts: dict[int, tuple[Any, Virtualized | None]] = attrs.field(factory=dict)
    _open: set[int] = attrs.field(factory=set)

    def __call__(self, value: VariableTracker) -> GeneratorState | Virtualized | None:
        if self.nothing:
            return None
        if (state := generator_state(value)) is None:
            return self._in_parts(value)
        if any(state is known for known in self.objects):
            return None
        self.states.append(state)
        self.add_frames([state.frame])
        return state

    def add_frames(self, frames: Iterable[Frame]) -> None:
        for frame in frames:
            self._in_slots.update(map(id, frame.slots))
            self._on_stacks.update(map(id, frame.stack))

    def reached(self, emitter: Emitter) -> list[Any]:
        """Return the values that were carried and yet made objects, as something besides the frames
        refers to them."""
        states = [
            state for state in emitter.generators if any(state is known for known in self.states)
        ]
        return states + [
            value
            for value, parts in self._parts.values()
            if parts is not None and not is_identity(value) and emitter.has_made(value)
        ]

    def _in_parts(self, value: VariableTracker) -> Virtualized | None:
        if id(value) not in self._parts:
            if (parts := parts_of(value)) is None:
                return None
            self._parts[id(value)] = (value, None)
            self._parts[id(value)] = (value, self._taken_apart(value, parts))
        return self._parts[id(value)][1]

    def _taken_apart(self, value: VariableTracker, parts: Virtualized) -> Virtualized | None:
        if any(value is known for known in self.objects):
            return None
        if is_identity(value):
            return parts if self._is_in_frames(parts.values[0]) else None
        if is_opaque(value) and any(
            is_opaque(part) and self._in_parts(part) is None for part in parts.values
        ):
            return None
        wanted = is_opaque(value) or self._is_open(value, parts) or self._holds_generator(parts)
        return parts if wanted and not _holds_itself(value, parts) else None

    def _is_open(self, value: VariableTracker, parts: Virtualized) -> bool:
        """Return True for the `__exit__` of an open `with`, the manager that it is bound to, and
        tuples that this holds."""
        on_stack = id(value) in self._on_stacks and id(value) not in self._in_slots
        if not (on_stack and is_method(value)) and id(value) not in self._open:
            return False
        held = (part for part in parts.values if has_few_parts(part))
        self._open.update(id(part) for part in held if not self._is_in_frames(part))
        return True

    def _is_in_frames(self, value: VariableTracker) -> bool:
        return id(value) in self._in_slots or id(value) in self._on_stacks

    def _holds_generator(self, parts: Virtualized) -> bool:
        for part in parts.values:
            if (state := generator_state(part)) is None and self._in_parts(part) is not None:
                return True
            if state is not None and all(state is not known for known in self.objects):
                return True
        return False


def _holds_itself(value: VariableTracker, parts: Virtualized) -> bool:
    """Return True if an object can be reached from itself, through the values that would be
    carried."""
    return any(part is value for part in walk(parts.values, _held))


def _held(part: object) -> Iterator[Any]:
    if (state := generator_state(part)) is not None:
        yield from (*state.frame.slots, *state.frame.stack)
        return
    if (parts := parts_of(part)) is not None:
        yield from parts.values
