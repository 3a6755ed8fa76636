"""The Machine: runs neutral instructions over values that only its Domain understands.

Frames are explicit, so a Python-to-Python call pushes a `Frame` and never recurses, and the whole
state can be saved as data (`snapshot`) and given to another Machine. Start with
`_step_until_switch`; what the result of an operation does is in `_completion.py`, where an
exception goes in `_unwind.py`, and the handlers of opcodes, by family, in `_handlers/`.

    Machine(domain, DEFAULT).run([frame])
    =>  Returned(value), Broke(snapshot, reason), Escaped(exception, snapshot)
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import Any, TypeAlias

from stator_bytecode._codec._instruction import Code, Instruction
from stator_bytecode._machine import _snapshot
from stator_bytecode._machine._call_site import CallSite, call_sites
from stator_bytecode._machine._completion import complete_in_domain
from stator_bytecode._machine._domain import (
    Domain,
    Invoke,
    Pending,
    Raised,
    Result,
    Resume,
    V,
    chained,
    raised_as,
)
from stator_bytecode._machine._frame import Frame, GeneratorState, Snapshot
from stator_bytecode._machine._generator import ALL_COMPLETIONS, ALL_THENS, resume
from stator_bytecode._machine._outcome import Broke, Escaped, Outcome, Returned, Yielded
from stator_bytecode._machine._refusal import REFUSED
from stator_bytecode._machine._snapshot import SAFE
from stator_bytecode._machine._state import SWITCHED, Continue, MachineState
from stator_bytecode._machine._unwind import unwind
from stator_bytecode.errors import InternalError, Unsupported

OpcodeHandler: TypeAlias = "Callable[[Machine, Frame, Instruction], int | None]"
"""Run one instruction: the neutral index to go on at, None for the next one, or SWITCHED when the
innermost frame changed.

One that fails may leave the stack in any state, unless it is listed in SAFE (`_snapshot.py`).
"""

PreparedInstruction = tuple[OpcodeHandler, Instruction, bool]
_SUSPENDING = frozenset({Invoke, Resume, Pending})


class Machine(MachineState):
    """One run of interpreted code at a time. Handlers reach everything through it; a Domain may
    take `snapshot()`.

    `handlers` has the handler of each opcode: `DEFAULT`, or a table made from it.
    """

    def __init__(
        self,
        domain: Domain,
        handlers: Mapping[str, OpcodeHandler],
        depth_limit: int | None = None,
        native_calls: Collection[CallSite] = (),
    ) -> None:
        super().__init__(domain)
        self.handlers = handlers
        self.depth_limit = depth_limit
        self.native_calls = native_calls  # calls before which a run breaks
        self.entered: set[Code] = set()  # called functions; app-level code represents C
        self._steps: dict[Code, dict[int, PreparedInstruction]] = {}

    def run(self, frames: list[Frame]) -> Outcome:
        """Run until the outermost of `frames` returns. Frames but the last must be parked without a
        coroutine."""
        self.frames, self.outcome = frames, None
        if isinstance(outcome := self._run(), Yielded):
            raise InternalError("a generator frame was run, not resumed")
        return outcome

    def resume(self, request: Resume) -> Outcome | Yielded:
        """Run a generator alone, until it yields, returns or raises."""
        self.frames, self.outcome = [], None
        try:
            resume(self, request)
        except Raised as raised:
            if not self.frames:
                return Escaped(raised.value, Snapshot((), self.domain.mark()))
            unwind(self, raised)
        return self._run()

    def nested(self) -> Machine:
        """Another Machine over the same domain, for what foreign code calls while this one is under
        way."""
        machine = Machine(self.domain, self.handlers, self.depth_limit, self.native_calls)
        machine.outer, machine._steps = self, self._steps
        return machine

    def _run(self) -> Outcome | Yielded:
        caught: BaseException | None

        while self.outcome is None:
            try:
                self._step_until_switch(self.frames[-1])
                continue
            except Unsupported as reason:
                return self._broke(reason)
            except BaseException as error:
                caught = error

            try:
                unwind(self, raised_as(self.domain, caught))
            except Unsupported as reason:
                return self._broke(reason)
            finally:
                caught = None  # or the exception, and all that its traceback holds, would live on

        return self.outcome

    def _step_until_switch(self, frame: Frame) -> None:
        steps = self._steps.setdefault(frame.code, {})
        mark, at, journal = self.domain.mark, self.domain.at, self.journal.entries
        while True:
            handler, instr, can_fail = steps.get(frame.pc) or self._prepare(steps, frame)
            if can_fail:
                self.before = (frame.stack[:], mark(), len(journal), None)
                at(frame, instr)
            target = handler(self, frame, instr)
            if target is None:
                frame.pc += 1
            elif target >= 0:
                frame.pc = target
            else:
                return

    def _prepare(self, steps: dict[int, PreparedInstruction], frame: Frame) -> PreparedInstruction:
        """An instruction that is reached for the first time: of a long function a continuation may
        run a few alone."""
        instr = frame.code.instructions[frame.pc]
        step = steps[frame.pc] = (self.handlers.get(instr.op, _refuse), instr, instr.op not in SAFE)
        return step

    # completing instructions

    def finish(
        self, frame: Frame, instr: Instruction, result: Result, coroutine: Any = None
    ) -> int | None:
        """Complete `instr` with the result of an operation: at once, or when the frames that it
        awaits have run."""
        while type(result) in _SUSPENDING or coroutine is not None:
            if type(result) is Pending:
                coroutine = (
                    result.coroutine if coroutine is None else chained(coroutine, result.coroutine)
                )
                result, coroutine = _advance(coroutine, None)
            elif type(result) in _SUSPENDING:
                self.park(frame, instr, result.then, coroutine)
                self.enter(result)
                return SWITCHED
            else:
                result, coroutine = _advance(coroutine, result)

        if (complete := ALL_COMPLETIONS.get(instr.op)) is None:
            frame.stack.append(result)
            return None
        return complete(self, frame, instr, result)

    def enter(self, request: Invoke | Resume) -> None:
        """Push the frame that a parked one waits for."""
        if self.depth_limit is not None and len(self.frames) >= self.depth_limit:
            raise Raised(
                self.domain.python_error(RecursionError, "maximum recursion depth exceeded")
            )
        if type(request) is Invoke:
            self._refuse_native(request.frame)
            if not request.frame.hidden:
                self.entered.add(request.frame.code)
            self.frames.append(request.frame)
        else:
            assert type(request) is Resume
            self._refuse_native(request.generator.frame)
            resume(self, request)

    def _refuse_native(self, callee: Frame) -> None:
        if self.native_calls and self.frames:
            (site,) = call_sites((self.frames[-1], callee))
            if site in self.native_calls:
                name = callee.code.raw.co_qualname
                raise Unsupported("native-call", f"{name}, in which no graph gained an operation")

    def deliver(self, callee: Frame, value: V, thens: Mapping[str, Continue] = ALL_THENS) -> int:
        """`callee`, no longer on the stack, gives `value` to the frame that waits for it; the
        outermost, to `run`."""
        if not self.frames:
            self.outcome = Returned(value)
            return SWITCHED
        frame = self.frames[-1]
        parked = frame.parked
        assert parked is not None
        self.before = parked.before
        if parked.before is None:
            # Continued from a saved stack: how the instruction began is not known, so its callee
            # will return once more.
            self.before, self.handing = self._now(frame), (callee, value, parked)
        # While this can raise the frame still waits: an exception goes through its coroutine first.
        result = thens.get(parked.then.kind, complete_in_domain)(self, parked, value)
        begun = self.before
        frame.parked = None
        target = self.finish(frame, parked.instruction, result, parked.coroutine)
        if callee.generator is not None and target != SWITCHED:
            self.domain.abandon(
                [callee.generator, *self.ran_since(begun)], [], _snapshot.frame_values(self.frames)
            )
        self.proceed(frame, target)
        self.handing = None
        return SWITCHED

    def before_resumption(self, state: GeneratorState) -> Snapshot | None:
        """Undo all since the generator `state`, which is running, was resumed; None when a snapshot
        resumed it."""
        return self.before_call(
            next((i for i, frame in enumerate(self.frames) if frame.generator is state), 0)
        )

    def before_call(self, depth: int) -> Snapshot | None:
        """Undo all since frame `depth` was called or resumed; None when that is where this run
        began."""
        parked = self.frames[depth - 1].parked if depth else None
        if parked is None or parked.before is None:
            return None
        self.frames = self.frames[:depth]
        return self.go_back(_snapshot.save_frames(self.frames, parked.before))

    def _broke(self, reason: Unsupported) -> Broke:
        stack = _snapshot.stack_of(self.frames)
        reason = _end_operations(self.frames, reason)
        reason.stack = reason.stack or stack
        snapshot = self.go_back(self.save())
        if reason.where.line is None:
            reason.where = _snapshot.span_of(snapshot)
        return Broke(snapshot, reason)


def _end_operations(frames: list[Frame], reason: Unsupported) -> Unsupported:
    """End the operations that wait, innermost first: each puts back what it holds, and may give the
    reason in its own words."""
    for frame in reversed(frames):
        coroutine = None if frame.parked is None else frame.parked.coroutine
        if coroutine is not None:
            try:
                coroutine.throw(reason)
            except Unsupported as replaced:
                reason = replaced
            else:
                raise InternalError("an operation went on after a break")
    return reason


def _refuse(machine: Machine, frame: Frame, instr: Instruction) -> int | None:
    raise Unsupported(
        "refused-instruction", f"{instr.op}: {REFUSED.get(instr.op, 'no handler for it')}"
    )


def _advance(coroutine: Any, value: V) -> tuple[Result, Any]:
    """Send `value` in. Return the request of the coroutine, and itself; or its result, and None."""
    try:
        return coroutine.send(value), coroutine
    except StopIteration as stop:
        return stop.value, None
