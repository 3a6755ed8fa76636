"""Generators: one frame each, put on the Machine's stack while it runs and taken off while it is
suspended.

A frame waits for a generator as it waits for a call, parked with a `Then`; only the kinds that
suspend again are here. Throwing into a generator that delegates (`yield from`) goes to the inner
one first; the caller is a barrier then, because no state of the outer generator represents "an
exception is being thrown in".

    YIELD_VALUE of `yield from` is the instruction after SEND; the receiver lies on top of the stack
    while suspended (since 3.15 under an empty slot).
"""

import sys
from collections.abc import Generator
from typing import Any

from stator_bytecode._codec._instruction import Instruction
from stator_bytecode._machine._completion import COMPLETIONS, THENS, sent
from stator_bytecode._machine._domain import (
    Raised,
    Reraised,
    Result,
    Resume,
    V,
    operation,
    raised_as,
    settle,
)
from stator_bytecode._machine._frame import (
    NULL,
    Frame,
    GeneratorState,
    GeneratorStatus,
    Parked,
    Then,
)
from stator_bytecode._machine._outcome import Yielded
from stator_bytecode._machine._state import SWITCHED, Continue, MachineState

CLOSE_GIVES_RESULT = sys.version_info >= (3, 13)
"""True if `close()` returns what the generator returned on its GeneratorExit."""


def create(machine: MachineState, frame: Frame) -> V:
    """RETURN_GENERATOR: `frame` leaves the stack and becomes a generator's."""
    frame.pc += 1
    state = GeneratorState(frame)
    frame.generator = state
    machine.frames.pop()
    return machine.domain.make_generator(state)


def resume(machine: MachineState, request: Resume) -> None:
    """Put the generator's frame on the stack; the frame that waits for it, if any, is parked
    already."""
    state, domain = request.generator, machine.domain
    fresh = state.status is GeneratorStatus.CREATED
    if state.status is GeneratorStatus.RUNNING:
        raise Raised(domain.python_error(ValueError, "generator already executing"))

    if state.status is GeneratorStatus.CLOSED or (
        fresh and request.then.kind in ("close", "closing")
    ):
        _resume_closed(machine, state, request)
    elif request.thrown is not None:
        _throw(machine, state, request.thrown)
    elif fresh and request.sent is not None and not domain.is_none(request.sent):
        raise Raised(
            domain.python_error(TypeError, "can't send non-None value to a just-started generator")
        )
    else:
        _start(machine, state).stack.append(
            domain.constant(None) if request.sent is None else request.sent
        )


def _start(machine: MachineState, state: GeneratorState) -> Frame:
    machine.journal.record(state)
    state.status = GeneratorStatus.RUNNING
    machine.frames.append(state.frame)
    return state.frame


def _resume_closed(machine: MachineState, state: GeneratorState, request: Resume) -> None:
    machine.journal.record(state)
    state.status = GeneratorStatus.CLOSED
    if request.thrown is not None and request.then.kind not in ("close", "closing"):
        _note_origin(machine, request.thrown)
        raise Reraised(request.thrown)
    machine.deliver(state.frame, machine.domain.constant(None), ENDS)


# suspending and returning


def suspend(machine: MachineState, frame: Frame, value: V) -> int:
    """`frame` yields `value`, and so does each generator that passes on what it yields to a thrown
    exception."""
    frames = machine.frames
    while True:
        assert frame.generator is not None
        frame.generator.status = GeneratorStatus.SUSPENDED
        frame.pc += 1
        frames.pop()
        if not frames:
            machine.outcome = Yielded(value)
            return SWITCHED
        waiting = frames[-1].parked
        assert waiting is not None
        if waiting.then.kind != "delegated":
            return machine.deliver(frame, value)
        frame = frames[-1]
        machine.unpark(frame)


def returned(machine: MachineState, frame: Frame, value: V) -> int:
    assert frame.generator is not None
    frame.generator.status = GeneratorStatus.CLOSED
    machine.frames.pop()
    return machine.deliver(frame, value, ENDS)


def end_stops(machine: MachineState, parked: Parked, value: V) -> Result:
    domain = machine.domain
    if domain.is_none(value):
        raise Raised(domain.python_error(StopIteration))
    raise Raised(domain.python_error(StopIteration, value))


def end_close(machine: MachineState, parked: Parked, value: V) -> Result:
    return value if CLOSE_GIVES_RESULT else machine.domain.constant(None)


def end_closing(machine: MachineState, parked: Parked, value: V) -> Result:
    raise Reraised(parked.then.values[0])


def yields_to_close(machine: MachineState, parked: Parked, value: V) -> Result:
    raise Raised(machine.domain.python_error(RuntimeError, "generator ignored GeneratorExit"))


ENDS: dict[str, Continue] = {
    "value": end_stops,
    "next": lambda machine, parked, value: NULL,
    **dict.fromkeys(("send", "delegated"), lambda machine, parked, value: (NULL, value)),
    "close": end_close,
    "closing": end_closing,
}
"""Effects of a generator's end on the frame that waits for it."""

ALL_THENS: dict[str, Continue] = {**THENS, "close": yields_to_close, "closing": yields_to_close}


# throwing in


def _throw(machine: MachineState, state: GeneratorState, thrown: V) -> None:
    """Raise `thrown` where the generator is suspended, or first in the generator that it delegates
    to."""
    _note_origin(machine, thrown)
    frame = state.frame
    instructions = frame.code.instructions
    send = instructions[frame.pc - 2] if frame.pc > 1 else None
    if send is not None and send.op == "SEND" and instructions[frame.pc - 1].op == "YIELD_VALUE":
        _throw_through(machine, state, thrown)
        return
    if instructions[frame.pc - 1].handler is None:
        # It ends here. Raised at the caller, whose instruction can be run again; this frame's yield
        # cannot.
        machine.journal.record(state)
        state.status = GeneratorStatus.CLOSED
        raise Reraised(thrown)
    _start(machine, state).pc -= 1
    raise Reraised(thrown)


def _note_origin(machine: MachineState, thrown: V) -> None:
    """Record where an exception was thrown in, for its traceback if it is thrown in again."""
    if machine.frames and machine.domain.is_made_here(thrown):
        machine.origins.setdefault(id(thrown), (thrown, machine.save()))


def _throw_through(machine: MachineState, state: GeneratorState, thrown: V) -> None:
    _be_barrier(machine)
    frame, domain = _start(machine, state), machine.domain
    frame.pc -= 1
    instr = frame.code.instructions[frame.pc]
    inner = frame.stack[-max(frame.code.instructions[frame.pc - 1].arg, 1)]
    inner_state = domain.generator_state(inner)

    closing = domain.exception_matches(thrown, domain.constant(GeneratorExit))
    if inner_state is None:
        machine.finish(
            frame, instr, (_close_foreign if closing else _throw_foreign)(machine, inner, thrown)
        )
    elif inner_state.status is GeneratorStatus.RUNNING and closing:
        raise Raised(domain.python_error(ValueError, "generator already executing"))
    else:
        then = Then("closing", (thrown,)) if closing else Then("delegated")
        machine.finish(frame, instr, Resume(inner_state, thrown=thrown, then=then))


def _be_barrier(machine: MachineState) -> None:
    """Make the waiting frame one that a break rolls back to."""
    parked = machine.frames[-1].parked if machine.frames else None
    if parked is not None and parked.coroutine is None:
        machine.unpark(machine.frames[-1])
        relay = _relay()
        relay.send(None)
        machine.before = parked.before
        machine.park(machine.frames[-1], parked.instruction, parked.then, relay)


def _relay() -> Generator[Any, Any, V]:
    return (yield)


@operation
def _throw_foreign(machine: MachineState, inner: V, thrown: V) -> Generator[Any, Any, Any]:
    """`(yielded, NULL)` or `(NULL, returned)`."""
    domain = machine.domain
    if (method := (yield from _method(machine, inner, "throw"))) is NULL:
        raise Reraised(thrown)
    try:
        return (yield from settle(domain.call(method, [thrown], {}))), NULL
    except BaseException as error:
        return NULL, _stop_value(machine, raised_as(domain, error))


@operation
def _close_foreign(machine: MachineState, inner: V, thrown: V) -> Generator[Any, Any, Any]:
    try:
        method = yield from _method(machine, inner, "close")
    except Raised:
        method = NULL  # CPython reports this one as unraisable, and goes on
    if method is not NULL:
        yield from settle(machine.domain.call(method, [], {}))
    raise Reraised(thrown)


def _method(machine: MachineState, value: V, name: str) -> Generator[Any, Any, V]:
    domain = machine.domain
    try:
        return (yield from settle(domain.get_attribute(value, name)))
    except BaseException as error:
        raised = raised_as(domain, error)
        if not domain.exception_matches(raised.value, domain.constant(AttributeError)):
            raise raised from None
        return NULL


def _stop_value(machine: MachineState, raised: Raised) -> V:
    domain = machine.domain
    if not domain.exception_matches(raised.value, domain.constant(StopIteration)):
        raise raised
    return domain.stop_iteration_value(raised.value)


def delegated(
    machine: MachineState, frame: Frame, instr: Instruction, result: tuple[V, V]
) -> int | None:
    """YIELD_VALUE of `yield from` after a throw: pass on what the inner one yielded, or leave the
    SEND loop."""
    yielded, _ = result
    if yielded is not NULL:
        return suspend(machine, frame, yielded)
    return sent(machine, frame, frame.code.instructions[instr.index - 1], result)


ALL_COMPLETIONS = {**COMPLETIONS, "YIELD_VALUE": delegated}
