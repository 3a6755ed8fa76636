"""Opcodes of raising, handling and of `with`."""

from stator_bytecode._codec._instruction import Instruction
from stator_bytecode._handlers._domain_handler import domain_handlers
from stator_bytecode._machine._domain import Domain, Raised, Reraised, Result, V, after
from stator_bytecode._machine._frame import NULL, Frame, LastInstruction, PreviousExc
from stator_bytecode._machine._machine import Machine
from stator_bytecode._machine._unwind import stop_iteration_error


def before_with(domain: Domain, frame: Frame, two_slots: bool) -> Result:
    """`[manager]` => `[exit, entered]`, or `[exit, NULL, entered]`. While `__enter__` runs, `exit`
    is on the stack already."""

    def entering(found: tuple[V, Result]) -> Result:
        exit_method, entered = found
        frame.stack += [exit_method, NULL] if two_slots else [exit_method]
        return entered

    return after(domain.enter_context(frame.stack.pop()), entering)


def with_except_start(domain: Domain, frame: Frame, two_slots: bool) -> Result:
    """`[exit, lasti, previous, exception]`, and the result of `exit(type, exception, traceback)` on
    top. There may be a NULL above `exit`."""
    exit_method, value = frame.stack[-4 - two_slots], frame.stack[-1]
    return domain.call(
        exit_method, [domain.exception_type(value), value, domain.exception_traceback(value)], {}
    )


exception_ops = domain_handlers(
    {
        "BEFORE_WITH": before_with,
        "WITH_EXCEPT_START": with_except_start,
        "CHECK_EXC_MATCH": lambda domain, frame, _: domain.exception_matches(
            frame.stack[-2], frame.stack.pop()
        ),
        "CHECK_EG_MATCH": lambda domain, frame, _: domain.match_group(*frame.popn(2)),
        "PREP_RERAISE_STAR": lambda domain, frame, _: domain.prepare_reraise(*frame.popn(2)),
    }
)


@exception_ops.handles("RAISE_VARARGS")
def raise_varargs(machine: Machine, frame: Frame, instr: Instruction) -> int | None:
    if not instr.arg:
        if (handled := machine.handled()) is None:
            raise Raised(
                machine.domain.python_error(RuntimeError, "No active exception to reraise")
            )
        raise Reraised(handled)
    value, *causes = frame.popn(instr.arg)
    cause = causes[0] if causes else None
    return machine.finish(frame, instr, machine.domain.exception_from(value, cause))


@exception_ops.handles("RERAISE")
def reraise(machine: Machine, frame: Frame, instr: Instruction) -> int | None:
    """Raise an exception again.

    With an argument, the traceback continues at the instruction whose index lies that deep (under
    the exception).
    """
    marker = frame.stack[-1 - instr.arg] if instr.arg else None
    raise Reraised(frame.stack[-1], marker.index if isinstance(marker, LastInstruction) else None)


@exception_ops.handles("PUSH_EXC_INFO")
def push_exc_info(machine: Machine, frame: Frame, instr: Instruction) -> None:
    value = frame.stack[-1]
    frame.stack[-1] = PreviousExc(frame.handled)
    frame.stack.append(value)
    frame.handled = value


@exception_ops.handles("POP_EXCEPT")
def pop_except(machine: Machine, frame: Frame, instr: Instruction) -> None:
    frame.handled = frame.stack.pop().value


@exception_ops.handles("STOPITERATION_ERROR")
def stopiteration_error(machine: Machine, frame: Frame, instr: Instruction) -> int | None:
    value, domain = frame.stack.pop(), machine.domain
    if domain.exception_matches(value, domain.constant(StopIteration)):
        value = stop_iteration_error(machine, value)
    frame.stack.append(value)
    return None
