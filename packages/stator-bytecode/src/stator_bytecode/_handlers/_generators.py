"""Opcodes of generators; what they do to frames is in `_generator.py`."""

from stator_bytecode._codec._instruction import Instruction
from stator_bytecode._handlers._domain_handler import domain_handlers
from stator_bytecode._machine import _generator
from stator_bytecode._machine._domain import Reraised, Resume
from stator_bytecode._machine._frame import NULL, Frame, Then
from stator_bytecode._machine._machine import Machine

generator_ops = domain_handlers(
    {"GET_YIELD_FROM_ITER": lambda domain, frame, _: domain.yield_from_iterator(frame.stack.pop())}
)

_SEND = Then("send")


@generator_ops.handles("RETURN_VALUE")
def return_value(machine: Machine, frame: Frame, instr: Instruction) -> int:
    """The value stays on the callee's stack: if its caller cannot take it, the callee returns once
    more, natively."""
    value = frame.stack[-1]
    if frame.generator is not None:
        return _generator.returned(machine, frame, value)
    if len(machine.frames) > 1:
        callers = machine.frames[:-1]
        for slot in frame.slots:
            if slot is not value:
                machine.domain.drop(slot, callers, value)
    machine.frames.pop()
    if frame.returned is not None:
        frame.returned(value)
    return machine.deliver(frame, value)


@generator_ops.handles("RETURN_GENERATOR")
def return_generator(machine: Machine, frame: Frame, instr: Instruction) -> int:
    return machine.deliver(frame, _generator.create(machine, frame))


@generator_ops.handles("YIELD_VALUE")
def yield_value(machine: Machine, frame: Frame, instr: Instruction) -> int:
    return _generator.suspend(machine, frame, frame.stack.pop())


@generator_ops.handles("SEND")
def send(machine: Machine, frame: Frame, instr: Instruction) -> int | None:
    value, domain = frame.stack.pop(), machine.domain
    receiver = frame.stack[-max(instr.arg, 1)]
    if (state := domain.generator_state(receiver)) is not None:
        return machine.finish(frame, instr, Resume(state, sent=value, then=_SEND))
    return machine.finish(frame, instr, domain.send(receiver, value))


@generator_ops.handles("END_SEND")
def end_send(machine: Machine, frame: Frame, instr: Instruction) -> None:
    del frame.stack[-1 - instr.arg : -1]


@generator_ops.handles("CLEANUP_THROW")
def cleanup_throw(machine: Machine, frame: Frame, instr: Instruction) -> None:
    """`[receiver, last sent, exception]` => `[None, value]` for a StopIteration; any other goes
    on."""
    value, domain = frame.stack[-1], machine.domain
    if not domain.exception_matches(value, domain.constant(StopIteration)):
        raise Reraised(value)
    frame.popn(2 + instr.arg)
    frame.stack += [domain.constant(None), NULL][: instr.arg]
    frame.stack.append(domain.stop_iteration_value(value))
