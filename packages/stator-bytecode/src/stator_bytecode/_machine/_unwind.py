"""Propagation of an exception: to the handler of the instruction, else out through the frames that
wait.

A snapshot for `Escaped` is taken only when nothing can catch the exception any more, before the
first frame is dropped. An exception that exists only in the interpreter (`Domain.is_made_here`)
escapes from where it was first raised: raised there natively, it gets the traceback that it would
have.
"""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable, Iterator
from typing import NamedTuple

from stator_bytecode._machine._domain import Raised, Reraised, Result, V, raised_as
from stator_bytecode._machine._frame import (
    NULL,
    Frame,
    GeneratorStatus,
    LastInstruction,
    Parked,
    Snapshot,
)
from stator_bytecode._machine._generator import ENDS
from stator_bytecode._machine._outcome import Escaped
from stator_bytecode._machine._snapshot import frame_values
from stator_bytecode._machine._state import MachineState
from stator_bytecode.errors import Unsupported


def unwind(machine: MachineState, raised: Raised) -> None:
    """Leave the innermost frame at the handler of `raised`, or the outcome at `Escaped`."""
    current: Raised | None = raised
    while current is not None:
        if type(current) is Raised:
            _set_context(machine, current.value)
        current = _propagate(machine, current)
    machine.handing = None


def _set_context(machine: MachineState, value: V) -> None:
    if (handled := machine.handled()) is not None:
        machine.domain.with_context(value, handled)


def _propagate(machine: MachineState, raised: Raised) -> Raised | None:
    """Propagate `raised`; return None when it is handled or has escaped, else what the operation of
    a waiting frame raised in its place."""
    frames, value = machine.frames, raised.value
    lasti = raised.lasti if isinstance(raised, Reraised) else None
    site = _handler_site(machine, value)
    saved = machine.save() if site is None else None
    if site is not None:
        _refuse_visible_growth(machine, raised)
        _release_operands(machine, value, site)
    if type(raised) is Raised and machine.domain.is_made_here(value):
        machine.origins.setdefault(id(value), (value, saved or machine.save()))
    gets_entry = not _is_reraised_here(frames[-1], raised)

    while frames:
        frame = frames[-1]
        if frame.parked is not None:
            parked = machine.unpark(frame)
            if _matches(machine, value, CAUGHT.get(parked.then.kind, ())):
                end = functools.partial(_ended_by, machine, parked, value)
                return _complete_by(machine, value, parked, end)
            if parked.coroutine is not None:
                throw = functools.partial(parked.coroutine.throw, Reraised(value))
                return _complete_by(machine, value, parked, throw)
        if gets_entry and machine.domain.is_made_here(value):
            machine.domain.extend_traceback(value, frame)

        gets_entry = True
        if frame.code.instructions[frame.pc].op == "YIELD_VALUE":
            _arrive_at_yield(machine, frame, value)
        if _enter_handler(frame, value, lasti):
            _note_caught(machine, value, len(frames))
            return None
        lasti = None
        value = _left(machine, frame, value)
        frames.pop()

    assert saved is not None
    _escape(machine, value, saved)
    return None


def _escape(machine: MachineState, value: object, saved: tuple[Snapshot, int]) -> None:
    """Set the outcome of a run that no frame has a handler for."""
    origin = machine.origins.get(id(value))
    leaves = id(value) not in machine.caught
    machine.outcome = Escaped(
        value, machine.go_back(saved if origin is None else origin[1]), leaves
    )


def _is_reraised_here(frame: Frame, raised: Raised) -> bool:
    """Return True for `raise` without an argument and the end of a `finally`: the frame has its
    entry already."""
    op = frame.code.instructions[frame.pc].op
    return type(raised) is Reraised and op in ("RAISE_VARARGS", "RERAISE")


def _note_caught(machine: MachineState, value: V, depth: int | None = None) -> None:
    """A handler of the innermost of `depth` frames took the exception, or an operation: not one
    that is run again."""
    if (origin := machine.origins.get(id(value))) is not None and (
        depth is None or depth > len(origin[1][0].frames)
    ):
        machine.caught.add(id(value))


def _release_operands(machine: MachineState, value: V, site: HandlerSite) -> None:
    """Report the operands that unwinding will release to the Domain, before any is unwound. A
    traceback keeps what is in slots, but of frames that represent C it has no entry; what ends a
    loop keeps nothing."""
    frames, left = machine.frames, machine.frames[site.depth + 1 :]
    released, kept = frames[site.depth].stack[site.operands :], [value]
    for frame in left:
        released += frame.stack
        (released if site.ends or frame.hidden else kept).extend(frame.slots)
    with _unwound(frames[site.depth :], site.operands):
        holders = [*frame_values(frames[: site.depth + 1]), *kept]
        machine.domain.abandon(machine.ran_since(machine.before), released, holders)


@contextlib.contextmanager
def _unwound(frames: list[Frame], operands: int) -> Iterator[None]:
    """The first of these has so many of its operands meanwhile, the others have none."""
    stacks = [frame.stack for frame in frames]
    try:
        for frame in frames:
            frame.stack = []
        frames[0].stack = stacks[0][:operands]
        yield
    finally:
        for frame, stack in zip(frames, stacks, strict=True):
            frame.stack = stack


def _refuse_visible_growth(machine: MachineState, raised: Raised) -> None:
    """Refuse a raised exception that is a real object and gets an entry of its traceback on the
    way: raising it natively adds one, and so does each frame that it leaves."""
    if not machine.domain.is_object(raised.value):
        return

    frame = machine.frames[-1]
    if type(raised) is Raised or frame.code.instructions[frame.pc].handler is None:
        raise Unsupported(
            "exception-object", "an exception of the program's own on its way to its handler"
        )


def _arrive_at_yield(machine: MachineState, frame: Frame, value: V) -> None:
    """Thrown in: a None was sent with it, and of what is being handled only this generator's own
    becomes its context."""
    frame.stack.append(machine.domain.constant(None))
    if frame.handled is not None:
        machine.domain.with_context(value, frame.handled)


def _enter_handler(frame: Frame, value: V, lasti: int | None) -> bool:
    if (handler := frame.code.instructions[frame.pc].handler) is None:
        return False
    del frame.stack[handler.depth :]
    if handler.lasti:
        frame.stack.append(LastInstruction(frame.pc if lasti is None else lasti))
    frame.stack.append(value)
    frame.pc = handler.target
    return True


def _left(machine: MachineState, frame: Frame, value: V) -> V:
    """`frame` ended by `value`. Out of a generator no StopIteration comes (since 3.12 its own code
    sees to that)."""
    if frame.generator is None:
        return value
    frame.generator.status = GeneratorStatus.CLOSED
    frame.handled = None
    frame.slots = [NULL] * len(frame.slots)
    return (
        stop_iteration_error(machine, value)
        if _matches(machine, value, (StopIteration,))
        else value
    )


def stop_iteration_error(machine: MachineState, value: V) -> V:
    domain = machine.domain
    error = domain.exception_from(
        domain.python_error(RuntimeError, "generator raised StopIteration"), value
    )
    domain.with_context(error, value)
    return error


def _complete_by(
    machine: MachineState, value: V, parked: Parked, complete: Callable[[], Result]
) -> Raised | None:
    """Go on in the innermost frame's operation, which took the exception; what it raises is raised
    by its instruction."""
    frame = machine.frames[-1]
    try:
        try:
            result, coroutine = complete(), parked.coroutine
        except StopIteration as stop:
            result, coroutine = stop.value, None
        _note_caught(machine, value)
        machine.proceed(frame, machine.finish(frame, parked.instruction, result, coroutine))
    except BaseException as error:
        return raised_as(machine.domain, error)
    return None


class HandlerSite(NamedTuple):
    """The handler or operation that takes an exception first."""

    depth: int
    """The depth of the frame that has the handler, or whose operation takes it."""
    operands: int
    """The number of that frame's operands that stay."""
    ends: bool
    """True if the exception only ends an iteration there."""


def _handler_site(machine: MachineState, value: V) -> HandlerSite | None:
    """Find where the exception is taken; None if neither a handler nor an operation does."""
    stops = True
    for depth in reversed(range(len(machine.frames))):
        frame = machine.frames[depth]
        if (parked := frame.parked) is not None:
            ends = stops and _matches(machine, value, CAUGHT.get(parked.then.kind, ()))
            if ends or parked.coroutine is not None:
                return HandlerSite(depth, len(frame.stack), ends)
        if (handler := frame.code.instructions[frame.pc].handler) is not None:
            return HandlerSite(depth, handler.depth, ends=False)
        if frame.generator is not None and _matches(machine, value, (StopIteration,)):
            stops = False
    return None


def _matches(machine: MachineState, value: V, kinds: tuple[type[BaseException], ...]) -> bool:
    domain = machine.domain
    return any(domain.exception_matches(value, domain.constant(kind)) is True for kind in kinds)


def _ended_by(machine: MachineState, parked: Parked, value: V) -> Result:
    """Complete the waiting operation as the end of a generator does, with StopIteration's value."""
    domain, kind = machine.domain, parked.then.kind
    given = (
        domain.stop_iteration_value(value)
        if kind in ("send", "delegated")
        else domain.constant(None)
    )
    return ENDS[kind](machine, parked, given)


CAUGHT: dict[str, tuple[type[BaseException], ...]] = {
    **dict.fromkeys(("next", "send", "delegated"), (StopIteration,)),
    **dict.fromkeys(("close", "closing"), (GeneratorExit, StopIteration)),
}
"""The exceptions of a callee that complete the waiting instruction, by kind of `Then`."""
