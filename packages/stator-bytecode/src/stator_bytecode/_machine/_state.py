"""The state of a Machine, as opcode handlers, completions, generators and unwinding read and change
it.

`Machine` (`_machine.py`) extends it by the loop that runs instructions. Modules below the loop
import this one, so that none of them imports the loop that calls them.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

from stator_bytecode._codec._instruction import Instruction
from stator_bytecode._machine import _snapshot
from stator_bytecode._machine._domain import Domain, Result, V
from stator_bytecode._machine._frame import VALUE, Frame, GeneratorState, Parked, Snapshot, Then
from stator_bytecode._machine._outcome import Outcome, Yielded

SWITCHED = -1
"""Returned by a handler that changed which frame is innermost (or moved the pc itself)."""

Completion: TypeAlias = "Callable[[MachineState, Frame, Instruction, Any], int | None]"
"""Complete an instruction with the result of its operation; returns what a handler returns."""

Continue: TypeAlias = "Callable[[MachineState, Parked, Any], Result]"
"""Turn the return value of a callee into the result of the operation that waits for it."""


class MachineState(ABC):
    """`frames` is the live stack, outermost first. `before` is the state at the start of the
    innermost instruction when that is one that can fail.
    """

    def __init__(self, domain: Domain) -> None:
        self.domain = domain
        self.frames: list[Frame] = []
        self.before: _snapshot.InstructionStart | None = None
        # the callee whose value a waiting frame is taking
        self.handing: _snapshot.Handing | None = None
        self.outcome: Outcome | Yielded | None = None
        self.journal = _snapshot.GeneratorJournal()
        # where exceptions made here were first raised
        self.origins: dict[int, tuple[V, tuple[Snapshot, int]]] = {}
        # those of them that did not leave the instruction that was under way there
        self.caught: set[int] = set()
        self.outer: MachineState | None = None

    @abstractmethod
    def finish(
        self, frame: Frame, instr: Instruction, result: Result, coroutine: Any = None
    ) -> int | None:
        """Complete `instr` with the result of its operation: at once, or when the frames that the
        result needs have run."""

    @abstractmethod
    def deliver(self, callee: Frame, value: V, thens: Mapping[str, Continue] = ...) -> int:
        """Give `value`, of `callee`, which is no longer on the stack, to the frame that waits for
        it; that of the outermost frame is the outcome."""

    # waiting frames

    def park(
        self, frame: Frame, instr: Instruction, then: Then = VALUE, coroutine: Any = None
    ) -> None:
        before = None if self.before is None else self._begun()
        frame.parked = Parked(instr, then, coroutine, before)
        frame.pc = instr.index

    def unpark(self, frame: Frame) -> Parked:
        parked = frame.parked
        assert parked is not None
        frame.parked = None
        self.before = parked.before
        return parked

    def proceed(self, frame: Frame, target: int | None) -> None:
        """Move `frame`, which was parked, on to the next instruction."""
        if target is None:
            frame.pc += 1
        elif target >= 0:
            frame.pc = target

    def ran_since(self, begun: _snapshot.InstructionStart | None) -> list[GeneratorState]:
        """Return the generators that were resumed since an instruction began."""
        return [] if begun is None else [entry[0] for entry in self.journal.entries[begun[2] :]]

    def handled(self) -> V | None:
        """Return the exception being handled, as `sys.exception()` has it."""
        for frame in reversed(self.frames):
            if frame.handled is not None:
                return frame.handled
        return None if self.outer is None else self.outer.handled()

    # saving and going back

    def snapshot(self) -> Snapshot:
        """The stack before the innermost instruction that can be run again; domain values are
        shared, not copied."""
        return self.save()[0]

    def save(self) -> tuple[Snapshot, int]:
        """The snapshot, and the length of the generator journal that belongs to it."""
        frame = self.frames[-1]
        if frame.code.instructions[frame.pc].op in _snapshot.SAFE:
            return _snapshot.save_frames(self.frames, self._now(frame))
        return _snapshot.save_frames(self.frames, self._begun())

    def _now(self, frame: Frame) -> _snapshot.InstructionStart:
        return frame.stack[:], self.domain.mark(), len(self.journal.entries), None

    def _begun(self) -> _snapshot.InstructionStart:
        """Return where the instruction under way began."""
        assert self.before is not None
        if self.handing is None:
            return self.before
        return (*self.before[:3], _snapshot.handing_state(self.handing))

    def go_back(self, saved: tuple[Snapshot, int]) -> Snapshot:
        """Undo all that was done since `saved`."""
        snapshot, journal = saved
        self.journal.rollback(journal)
        self.domain.rollback(snapshot.mark)
        return snapshot
