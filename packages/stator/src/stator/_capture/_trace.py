"""One trace: run the Machine over trackers, then write down what it found as the parts of an
entry."""

from __future__ import annotations

import logging
import sys
import threading
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import attrs
import stator_variables as variables
from stator_backends import one_at_a_time, spec_of
from stator_bytecode import (
    Broke,
    CallSite,
    Code,
    Escaped,
    FlatState,
    Machine,
    Outcome,
    Point,
    Returned,
    layout_of,
)
from stator_bytecode.errors import NOWHERE, InternalError, SourceSpan, StatorError, Unsupported
from stator_guards import Guard, expanded

from stator._capture._gradient_hooks import has_hook_outside, place_hooks
from stator._capture._release import release, without_frames
from stator._capture._remaining_history import keep_remaining_history
from stator._program._call_history import CallEvidence, CallsUnderWay, visible_calls
from stator._program._frame_state import Carried, reads_frames
from stator._program._installed_code import is_installed
from stator._program._native_call import before_library, before_loop
from stator._program._target import Root, Target
from stator._program._trace_location import MachineLocations
from stator._reasons import hint_for
from stator._settings._break_policy import raises_on_break
from stator._settings._options import Options

if TYPE_CHECKING:
    from stator_subgraphs import CapturedGraph


@attrs.frozen(eq=False)
class TraceResult:
    """The result of one trace.

    `point` is None when the target ran to its end; `result` is then the expression of its value.
    `raises` names the exception that ended the trace, if one did; it `leaves` the instruction at
    `point` to run natively.
    """

    captured: CapturedGraph
    emitter: variables.Emitter
    guards: list[Guard]
    result: str
    point: Point | None
    values: list[str]
    raises: str
    leaves: bool
    reason: Unsupported | None
    seconds: float
    is_error: bool = False
    """The program requires an error in place of the break."""
    calls: CallEvidence = attrs.field(factory=CallEvidence)
    reads: tuple[int, ...] = ()
    """The ids of existing objects in the order in which the program reads them; of a whole graph.
    """
    outdated: tuple[Guard, ...] = ()
    """The guards that do not hold any more when the entry has run, because of its effects."""
    equal_calls: tuple[str, ...] = ()
    """Lines about calls that were recorded like earlier ones, and about those that were not."""
    serves_one_call: bool = False
    """No later call takes the entry, so that its graph is not compiled."""
    decided: variables.Policy | None = None
    """The decisions of an earlier trace, of which this is the result."""


def trace(
    target: Target, state: FlatState, options: Options, policy: variables.Policy
) -> TraceResult:
    """Trace `target` on `state`. Raises Unsupported when not even the start can be written down."""
    while True:
        # torch's tracing state is global, and so is the interpreter's lock: nothing is lost
        with one_at_a_time:
            try:
                return _traced(target, state, options, policy)
            except _Again as again:
                policy, late = again.policy, again.late
        if late is not None:
            late.load()


@attrs.define(eq=False)
class _Again(StatorError):
    """A trace is to be made again: up to where it broke, or behind an import."""

    policy: variables.Policy
    late: variables.LateImport | None = None


def _traced(
    target: Target, state: FlatState, options: Options, policy: variables.Policy
) -> TraceResult:
    started = time.perf_counter()
    places = MachineLocations()
    graph = options.stack.graph(places, capture_data=options.captures_data)
    policy = policy_of_backend(policy, options)
    tracing = new_space(options, graph, policy)
    domain = options.stack.domain(tracing)
    depth_limit = sys.getrecursionlimit()
    machine = Machine(domain, options.opcodes, depth_limit, policy.native_calls)
    places.machine = tracing.machine = machine
    places.tracing = tracing
    try:
        with graph.tracing(), quiet(), _own_faults(tracing):
            variables.enter_taken(tracing)
            frames = target.frames(tracing, domain, state)
            _guard_shapes(target, state, options, tracing)
            under_way = CallsUnderWay.of(frames)
            outcome = machine.run(frames)
            _refuse_separate_paths(tracing, policy)
            outcome = before_loop(outcome, machine, tracing)
            finished = under_way.finished(machine.frames)
            if isinstance(outcome, Broke):
                _refuse_in_vain(outcome, machine, domain, policy)
                if policy.stop is None and not policy.is_whole:
                    outcome = _without_library(outcome, machine, domain, policy)
            is_error = isinstance(outcome, Broke) and raises_on_break(tracing)
            traced = _written_down(outcome, machine, tracing, graph, started)
            calls = _evidence(traced, places, finished, machine.entered)
            reads = tuple(tracing.heap.trackers) if policy.is_whole else ()
            return attrs.evolve(traced, calls=calls, is_error=is_error, reads=reads)
    except BaseException:  # raised again: an unused graph must keep no object alive
        graph.release()
        _refuse_separate_paths(tracing, policy)
        raise
    finally:
        tracing.restore_modes()
        release(tracing, machine, places)


def new_space(options: Options, graph: Any, policy: variables.Policy) -> variables.Space:
    """Return the state of a trace that records into `graph`."""
    handlers, builders = options.stack.tables(options.without)
    space = variables.StandardSpace(graph, handlers, policy, variables.Journal(), builders=builders)
    repeats = getattr(graph, "equal_calls", None)  # a graph layer may have none
    if repeats is not None and options.regions != "off":
        space.state(variables.RepeatedCalls).repeater = repeats(space)
    return space


def _guard_shapes(
    target: Target, state: FlatState, options: Options, tracing: variables.Space
) -> None:
    if options.shapes_spec is not None and isinstance(target, Root):
        options.shapes_spec.guard(tracing, target, state)


def _refuse_in_vain(
    outcome: Broke, machine: Machine, domain: Any, policy: variables.Policy
) -> None:
    """Raise `_Again` where another trace gets further, or does without a fact that this one
    added."""
    without_frames(outcome.reason)
    outcome.reason.hint = outcome.reason.hint or hint_for(outcome.reason.reason)
    _skip_frame(outcome, machine, policy)
    if (late := domain.t.state(variables.LateImports).wanted) is not None:
        raise _Again(attrs.evolve(policy, imported={*policy.imported, late}), late)
    if (stop := domain.learned_in_vain(outcome)) is not None:
        raise _Again(attrs.evolve(policy, stop=stop))


def _refuse_separate_paths(tracing: variables.Space, policy: variables.Policy) -> None:
    """Raise `_Again` where a tensor was read by two of the paths that a break carried."""
    if tracing.state(variables.CarriedPaths).are_read_twice:
        raise _Again(attrs.evolve(policy, joins_paths=True)) from None


SKIPPED = "skipped-frame"
"""The reason of a break at which the frame as a whole is to run natively."""


def _skip_frame(outcome: Broke, machine: Machine, policy: variables.Policy) -> None:
    """Raise the reason if it ends the first frame; `_Again` if it ends one that was called."""
    callees, depth = policy.callees, len(machine.frames) - 1
    if outcome.reason.reason != SKIPPED or callees is None:
        return
    if depth == 0:
        raise outcome.reason
    code, parked = machine.frames[-1].code.raw, machine.frames[-2].parked
    was_called = parked is not None and parked.before is not None
    if was_called and code not in callees.skipped:
        callees.skipped.add(code)
        raise _Again(policy)


def policy_of_backend(policy: variables.Policy, options: Options) -> variables.Policy:
    """Return the decisions of a trace, with those that follow from the backend."""
    in_order = not spec_of(options.backend).compiles
    return attrs.evolve(policy, runs_in_order=in_order, repeats_effects=options.repeat_effects)


def _evidence(
    traced: TraceResult,
    places: MachineLocations,
    finished: list[CallSite],
    entered: Iterable[Code],
) -> CallEvidence:
    """Return what the trace shows of the calls in it."""
    contributing = places.contributing(traced.captured.graph.nodes)
    frames = () if traced.point is None else traced.point.frames
    under_way = [site for _, site in visible_calls(frames)]
    return CallEvidence(
        contributing,
        broken=tuple(site for site in under_way if site not in contributing),
        finished=tuple(site for site in finished if site not in under_way),
        enters_program=not all(is_installed(code.raw.co_filename) for code in entered),
        entered=frozenset(entered),
    )


def _without_library(
    outcome: Broke, machine: Machine, domain: Any, policy: variables.Policy
) -> Broke:
    """Break at the call of a library function instead of inside of it, in a trace that has not
    looked into it."""
    if (earlier := before_library(outcome, machine, domain)) is None:
        return outcome
    raise _Again(attrs.evolve(policy, stop=domain.stop_at(earlier)))


@contextmanager
def _own_faults(tracing: variables.Space) -> Iterator[None]:
    """Convert an exception of the tracing code itself into InternalError.

    Exceptions of the program are values to the Machine, so any other exception raised here is a
    fault of stator.
    """
    try:
        yield
    except StatorError:
        raise
    except RecursionError:
        raise tracing.unsupported(
            "too-deep", "values nested deeper than can be written down"
        ) from None
    except Exception as error:
        raise InternalError(f"{type(error).__name__}: {error}", tracing.where()) from error


@contextmanager
def quiet() -> Iterator[None]:
    """torch logs an operator that fails on fake tensors; the program may expect it to, and handles
    the error itself."""
    logger, here = logging.getLogger("torch._subclasses.fake_tensor"), threading.get_ident()

    def of_another_thread(record: logging.LogRecord) -> bool:
        return record.thread != here

    logger.addFilter(of_another_thread)
    try:
        yield
    finally:
        logger.removeFilter(of_another_thread)


DEEPEST = 200
"""More frames than this are not carried over a break: the function runs plainly instead."""


def _refuse_deep(outcome: Outcome) -> None:
    if isinstance(outcome, Broke | Escaped) and len(outcome.snapshot.frames) > DEEPEST:
        where = SourceSpan.of(outcome.snapshot.frames[0].code.raw)
        raise Unsupported(
            "too-deep", f"a break {len(outcome.snapshot.frames)} calls deep", "", where
        )


def _written_down(
    outcome: Outcome, machine: Machine, tracing: variables.Space, graph: Any, started: float
) -> TraceResult:
    _refuse_deep(outcome)
    ends = isinstance(outcome, Escaped)  # which is the program's own way to end, and no break
    outcome, emitter, point, values, result = _settled(outcome, machine, tracing, graph)

    place_hooks(emitter, graph)
    captured = graph.finish(emitter.outputs)
    guards = tracing.finish_guards()
    outdated = tuple(variables.outdated_guards(tracing, expanded(guards)))
    return TraceResult(
        captured,
        emitter,
        guards,
        result,
        point,
        values,
        raises=outcome.exception.cls.__name__ if isinstance(outcome, Escaped) else "",
        leaves=isinstance(outcome, Escaped) and outcome.leaves,
        reason=outcome.reason if isinstance(outcome, Broke) and not ends else None,
        seconds=time.perf_counter() - started,
        outdated=outdated,
        equal_calls=_lines_of_equal_calls(tracing),
    )


def _settled(
    outcome: Outcome, machine: Machine, tracing: variables.Space, graph: Any
) -> tuple[Outcome, variables.Emitter, Point | None, list[str], str]:
    """Return the outcome, or the earlier break that it turns out to need, with what was emitted
    for it."""
    while True:
        try:
            emitter, point, values, result = _emitted(outcome, tracing)
            if has_hook_outside(emitter, graph):
                continue
            keep_remaining_history(emitter, graph)
            if (other := variables.first_changed_user_hash(emitter)) is None:
                return outcome, emitter, point, values, result
            outcome = _broken_at_answer(other, machine)
        except variables.RaisedBefore as needed:
            outcome = _broken_at_raise(needed, outcome, machine)
        except variables.StillRunning as running:
            outcome = _broken_at_resumption(running, outcome, machine)
        except variables.StaysInGraph as function:
            outcome = Broke(machine.go_back(function.begun), function.refusal)
            machine.frames = []


def _lines_of_equal_calls(tracing: variables.Space) -> tuple[str, ...]:
    """Return the record of equal calls; a graph layer may keep none."""
    record = getattr(tracing.state(variables.RepeatedCalls).repeater, "record", None)
    return () if record is None else tuple(record.lines())


def _broken_at_raise(needed: variables.RaisedBefore, outcome: Outcome, machine: Machine) -> Broke:
    """Go back to where an exception was first raised, and break there: raised natively, it has its
    traceback."""
    _, saved = machine.origins.pop(id(needed.tracker))
    snapshot = machine.go_back(saved)
    machine.frames = []  # they are of a later moment
    where = outcome.reason.where if isinstance(outcome, Broke) else NOWHERE
    reason = Unsupported("exception-object", "an exception that outlives the graph", "", where)
    return Broke(snapshot, reason)


def _broken_at_answer(given: variables.UserHashReplay, machine: Machine) -> Broke:
    """Go back to where a key was hashed or compared that gives another result by now, and break
    there.

    The container that the key was put into is real after the break.
    """
    machine.frames = []
    detail = (
        f"a key of class {given.operands[0].cls.__name__}, "
        "which is hashed or compared otherwise later"
    )
    return Broke(machine.go_back(given.begun), Unsupported("user-hash", detail, "", given.where))


def _broken_at_resumption(
    running: variables.StillRunning, outcome: Outcome, machine: Machine
) -> Broke:
    """Go back to where a running generator was resumed, and break there: its frame is then its own
    again."""
    snapshot = machine.before_resumption(running.state)
    if snapshot is None or not isinstance(outcome, Broke):
        raise running.refusal
    return Broke(snapshot, outcome.reason)


def _emitted(
    outcome: Outcome, tracing: variables.Space
) -> tuple[variables.Emitter, Point | None, list[str], str]:
    """The text of the entry. A generator that only the frames see is carried as state; one that
    something else can reach has to be an object, which shows when that something is written: then
    it is written again."""
    objects: list[Any] = []
    while True:
        emitter = variables.Emitter(tracing, makes_tracebacks=isinstance(outcome, Returned))
        point, values, result = None, [], ""
        carried = Carried(objects)
        if isinstance(outcome, Returned):
            result = emitter.expr(outcome.value)
        else:
            assert isinstance(outcome, Broke | Escaped)
            carried.nothing = reads_frames(outcome.snapshot)
            carried.add_frames(outcome.snapshot.frames)
            point, trackers = layout_of(outcome.snapshot, carried, lambda frame: frame.globals.real)
            values = [emitter.expr(vt) for vt in trackers]
        emitter.effects_start = len(emitter.lines)
        variables.emit_effects(emitter)
        variables.finalize_generators(emitter, carried.states)
        if not (reached := carried.reached(emitter)):
            return emitter, point, values, result
        objects += reached
