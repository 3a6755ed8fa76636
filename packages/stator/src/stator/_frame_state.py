"""The values of a broken frame stack that are carried as frame state: generators, iterators, and
the objects that hold them.

`id(thing)` is carried as well if a frame holds the thing: as a number it would differ on every
call.

Only values that nothing but the frames can reach are carried. Whether something else reaches one
turns out when the entry is written.
"""

import inspect
import sys
from collections.abc import Iterator
from typing import Any

import attrs
from stator_bytecode import NULL, GeneratorState, Snapshot, Virtualized, operands
from stator_variables import (
    Emitter,
    VariableTracker,
    generator_state,
    is_identity,
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


def held_by(snapshot: Snapshot) -> frozenset[int]:
    """The identities of what the frames hold themselves."""
    return frozenset(
        id(value) for frame in snapshot.frames for value in (*frame.slots, *frame.stack)
    )


@attrs.define(eq=False)
class Carried:
    """The decision for each value of the frames: its virtualized form, or None to make a real
    object of it.

    `objects`: trackers and generators known to be needed as real objects; `nothing`: all are.
    """

    objects: list[Any]
    in_frames: frozenset[int] = frozenset()  # identities of what the frames hold
    nothing: bool = False
    states: list[GeneratorState] = attrs.field(factory=list)
    # by the identity of a tracker, kept alive
    _parts: dict[int, tuple[Any, Virtualized | None]] = attrs.field(factory=dict)

    def __call__(self, value: VariableTracker) -> GeneratorState | Virtualized | None:
        if self.nothing:
            return None
        if (state := generator_state(value)) is None:
            return self._in_parts(value)
        if any(state is known for known in self.objects):
            return None
        self.states.append(state)
        return state

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
            return parts if id(parts.values[0]) in self.in_frames else None
        if is_opaque(value) and any(
            is_opaque(part) and self._in_parts(part) is None for part in parts.values
        ):
            return None
        wanted = is_opaque(value) or self._holds_generator(parts)
        return parts if wanted and not _holds_itself(value, parts) else None

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
