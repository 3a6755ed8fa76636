"""Saving the state of a Machine: what a break is emitted from.

A frame that waits for a coroutine (a barrier) cannot be saved in its middle, so the state saved is
that before the instruction of the outermost barrier. Generators that ran since then are put back by
the `GeneratorJournal`; what the Domain changed, by its own `rollback(mark)`.
"""

from typing import Any

import attrs

from stator_bytecode._machine._frame import (
    Frame,
    GeneratorState,
    GeneratorStatus,
    Parked,
    Snapshot,
    Then,
)
from stator_bytecode.errors import NOWHERE, SourceSpan

Handing = tuple[Frame, Any, Parked]
"""A callee that gave a value, the value, and what the frame under it waits for."""
InstructionStart = tuple[list[Any], Any, int, tuple[Then, Frame] | None]
"""The state at which an instruction began: the stack, the domain's mark, the length of the
generator journal. If that is not known (the frame was continued from a saved stack while it
waited): the callee to put back on top, and what the frame waited for."""

SAFE = frozenset(
    """
    NOP POP_TOP PUSH_NULL COPY SWAP LOAD_CONST JUMP
    LOAD_FAST LOAD_FAST_AND_CLEAR STORE_FAST DELETE_FAST
    MAKE_CELL COPY_FREE_VARS LOAD_CLOSURE LOAD_DEREF
    PUSH_EXC_INFO POP_EXCEPT RETURN_VALUE RETURN_GENERATOR YIELD_VALUE END_SEND
    BUILD_TUPLE LIST_TO_TUPLE RERAISE
    """.split()
)
"""Instructions that leave the stack as it was when they fail, and call nothing: no checkpoint
before them."""


@attrs.define(eq=False)
class GeneratorJournal:
    """The states of generators before they ran on. Kept to the end: the instruction that let one
    run on may be run again, natively, long after, when the exception that it raised has to become
    an object."""

    entries: list[tuple[GeneratorState, GeneratorStatus, int, list[Any], list[Any], Any]] = (
        attrs.Factory(list)
    )

    def record(self, state: GeneratorState) -> None:
        frame = state.frame
        self.entries.append(
            (state, state.status, frame.pc, frame.slots[:], frame.stack[:], frame.handled)
        )

    def rollback(self, length: int) -> None:
        while len(self.entries) > length:
            state, status, pc, slots, stack, handled = self.entries.pop()
            state.status = status

            frame = state.frame
            frame.pc = pc
            frame.slots = slots
            frame.stack = stack
            frame.handled = handled
            frame.parked = None


def frame_values(frames: list[Frame]) -> list[Any]:
    """Return the values of frames, the innermost's last. An operation under way has its operands; a
    called function owns them."""
    held: list[Any] = []
    for frame in frames:
        parked = frame.parked
        if parked is not None and parked.coroutine is not None and parked.before is not None:
            held += parked.before[0]
        held += [frame.handled, *frame.slots, *frame.stack]
    return held


def save_frames(frames: list[Frame], begun: InstructionStart) -> tuple[Snapshot, int]:
    """The snapshot of the innermost place that can be run again, and the journal's length there;
    `begun` is how the innermost instruction began."""
    for depth, frame in enumerate(frames):
        if (parked := frame.parked) is not None and parked.coroutine is not None:
            return _save(frames[: depth + 1], parked.before)
    return _save(frames, begun)


def _save(frames: list[Frame], begun: InstructionStart) -> tuple[Snapshot, int]:
    stack, mark, journal, handing = begun
    copies = [frame.copy() for frame in frames]
    then, callee = (None, ()) if handing is None else (handing[0], (handing[1],))
    copies[-1].stack = stack[:]
    copies[-1].wait(then)
    return Snapshot((*copies, *callee), mark), journal


def handing_state(handing: Handing) -> tuple[Then, Frame]:
    """The callee before the instruction that gave its value: a return left it there, a yield moved
    on."""
    callee, value, parked = handing
    before = callee.copy()
    if callee.generator is not None and callee.generator.status is GeneratorStatus.SUSPENDED:
        before.pc -= 1
        before.stack.append(value)
    return parked.then, before


def stack_of(frames: list[Frame]) -> tuple[SourceSpan, ...]:
    """Return the lines at which the program's frames are, outermost first."""
    return tuple(frame.code.span(frame.pc) for frame in frames if not frame.hidden)


def span_of(snapshot: Snapshot) -> SourceSpan:
    """The user's line of a snapshot: app-level frames are not shown."""
    for state in reversed(snapshot.frames):
        if not state.hidden:
            return state.code.span(state.pc)
    return NOWHERE


def restore_frames(snapshot: Snapshot) -> list[Frame]:
    """Live frames that go on from `snapshot`; its values are shared. Generators that run in it run
    in these frames now."""
    return [_restore(state) for state in snapshot.frames]


def _restore(saved: Frame) -> Frame:
    frame = saved.copy()
    if frame.generator is not None:
        frame.generator.frame, frame.generator.status = frame, GeneratorStatus.RUNNING
    return frame
