"""Calls that run natively as a whole, where a break inside of them would gain nothing.

- A function with a long loop: the whole target, if that is where it began. So is what C does with a
  long container.
- A function of torch that repeats until the values of a tensor end it (rejection sampling,
  `lobpcg`): its rounds are few operators each, between two breaks.
- The loop of an optimizer over its parameters, where one of them breaks at data (AdamP, NovoGrad,
  SparseAdam): each round would be a continuation of its own.
- A function of the standard library that breaks before it has added to the graph: `logger.info`
  breaks a dozen times between its formatter and its locks, and none of its continuations has an
  operation.
- A function of the program that can reach no tensor (`_tensorless_call`): one that draws spans by
  NumPy breaks at each draw.

    frames  f, Logger.info, Logger._log, Logger.findCaller before `sys._getframe()`
    =>      f before `logger.info(...)`
"""

import sys
from typing import Any

import stator_variables as variables
from stator_bytecode import NULL, Broke, Frame, Instruction, Machine, Outcome, operands

from stator._program._tensorless_call import reaches_no_tensor

CALLS = frozenset({"CALL", "CALL_FUNCTION_EX"})


def before_loop(outcome: Outcome, machine: Machine, tracing: variables.Space) -> Outcome:
    """Go back to the call of a function that has a long loop, or one that only data ends."""
    reason = outcome.reason.reason if isinstance(outcome, Broke) else ""
    if reason == "long-container":
        depth = _driver(machine, len(machine.frames) - 1, through_loops=False)
        if not machine.frames[depth].hidden:
            return outcome
    elif reason == "long-loop":
        depth = _driver(machine, tracing.state(variables.Progress).looping)
    elif reason == "data-dependent-branch" and len(machine.frames) > 1 and _waits_for_data(machine):
        depth = len(machine.frames) - 1
    else:
        return outcome
    assert isinstance(outcome, Broke)
    if (snapshot := machine.before_call(depth)) is None:
        raise outcome.reason
    return Broke(snapshot, outcome.reason)


def _waits_for_data(machine: Machine) -> bool:
    """Return True if the innermost function is torch's, and has a `while` loop."""
    frame = machine.frames[-1]
    code = frame.code.instructions
    return _package(frame) == "torch" and any(
        0 <= instr.target <= instr.index and code[instr.target].op not in _OF_ITERATION
        for instr in code
    )


_OF_ITERATION = frozenset({"FOR_ITER", "SEND"})
"""Starts of the loops that an iterator ends."""


_OF_ONE_PARAMETER = frozenset(
    {
        "data-dependent-branch",
        "data-dependent-output",
        "data-dependent-shape",
        "no-fake-kernel",
        "operator-error",
    }
)
"""Reasons of breaks that each parameter of an optimizer may have again."""


def _loop_of_optimizer(frames: list[Frame]) -> int:
    """Return the depth of the innermost loop of an optimizer over an iterator; 0 without one."""
    for depth in range(len(frames) - 1, 0, -1):
        if variables.is_of_optimizer(frames[depth]) and _is_in_iteration(frames[depth]):
            return depth
    return 0


def _is_in_iteration(frame: Frame) -> bool:
    return any(
        instr.op == "FOR_ITER" and instr.index < frame.pc < instr.target
        for instr in frame.code.instructions
    )


def _driver(machine: Machine, depth: int, through_loops: bool = True) -> int:
    """The depth of the frame that makes frame `depth` go on: one of C's, or one that loops over a
    generator."""
    frames = machine.frames
    while depth and (
        frames[depth - 1].hidden
        or (through_loops and _loops_over(frames[depth - 1], frames[depth]))
    ):
        depth -= 1
    return depth


def _loops_over(caller: Frame, frame: Frame) -> bool:
    return (
        frame.generator is not None
        and caller.parked is not None
        and caller.parked.instruction.op == "FOR_ITER"
    )


def before_library(outcome: Broke, machine: Machine, domain: Any) -> Broke | None:
    """Go back to the outermost call of a library function that led to the break without a graph
    operation, or of a function that can reach no tensor, or to that of an optimizer's loop; None
    where the break is in no such call, or may not come again.

    A trace should be made again up to there: what was guarded since then are facts about the
    library.
    """
    if outcome.reason.reason == "stress":  # which is there to break everywhere
        return None
    frames = machine.frames[: len(outcome.snapshot.frames)]
    if outcome.reason.reason in _OF_ONE_PARAMETER and (depth := _loop_of_optimizer(frames)):
        looping = machine.before_call(depth)
        return None if looping is None else Broke(looping, outcome.reason)

    depths = [_first_of_library(frames, outcome, domain), _first_without_tensors(frames)]
    if not any(depths):
        return None
    snapshot = machine.before_call(min(filter(None, depths)))
    return None if snapshot is None else Broke(snapshot, outcome.reason)


def _first_of_library(frames: list[Frame], outcome: Broke, domain: Any) -> int:
    """Return the depth of the outermost call of a library function under way, made since the graph
    gained its last operation; 0 without one."""
    outermost = len(frames)
    while outermost and (
        frames[outermost - 1].hidden
        or _is_library(frames[outermost - 1])
        or _makes_of_constants(frames, outermost - 1)
    ):
        outermost -= 1

    for depth in range(max(outermost, 1), len(frames)):
        if (parked := _call_of(frames[depth - 1])) is None:
            continue
        stack, mark, *_ = parked.before
        if (
            _runs_as_one(frames, depth)
            and not _calls_back(stack, parked.instruction)
            and domain.is_same_graph(mark, outcome.snapshot.mark)
        ):
            return depth
    return 0


def _call_of(caller: Frame) -> Any:
    """Return the state of the call that a frame waits for, if it made it in this trace."""
    parked = caller.parked
    if parked is None or parked.before is None or parked.instruction.op not in CALLS:
        return None
    return parked


def _first_without_tensors(frames: list[Frame]) -> int:
    """Return the depth of the outermost call under way that can reach no tensor; 0 without one."""
    for depth in range(1, len(frames)):
        parked = _call_of(frames[depth - 1])
        if parked is None or not _runs_as_one(frames, depth):
            continue
        if reaches_no_tensor(_operands(parked)):
            return depth
    return 0


def _is_library(code: object) -> bool:
    """Return True for a frame or a function of the standard library."""
    return _package(code) in sys.stdlib_module_names


def _package(code: Any) -> str:
    return str(code.globals.real.get("__name__", "")).partition(".")[0]


def _makes_of_constants(frames: list[Frame], depth: int) -> bool:
    """Return True for the `__init__` of an object made of constants, such as a configuration."""
    parked = frames[depth - 1].parked if depth else None
    if parked is None or parked.before is None or frames[depth].code.raw.co_name != "__init__":
        return False
    made_of, *given = _operands(parked)
    return isinstance(variables.real_of(made_of), type) and all(
        vt.constant() is not variables.MISSING for vt in given
    )


def _operands(parked: Any) -> list[Any]:
    """Return what a call works on, the callable first."""
    stack, *_ = parked.before
    return [vt for vt in stack[-operands(parked.instruction) :] if vt is not NULL]


def _runs_as_one(frames: list[Frame], depth: int) -> bool:
    """Return True if frame `depth` may run natively as a whole.

    A frame that handles an exception is on a rare path (a key missing in its cache): the next call
    takes another.
    """
    if frames[depth - 1].hidden or frames[depth].hidden or frames[depth].generator is not None:
        return False
    return all(inner.handled is None for inner in frames[depth:])


def _calls_back(stack: list[Any], call: Instruction) -> bool:
    """Return True if a call hands over functions of the program: those are to be captured."""
    return any(_is_of_program(vt) for vt in stack[-operands(call) :])


def _is_of_program(vt: object) -> bool:
    if variables.is_a(vt, variables.MethodTracker):
        vt = vt.function
    return variables.is_a(vt, variables.FunctionTracker) and not _is_library(vt)
