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
)
from stator_bytecode.errors import InternalError, SourceSpan, StatorError, Unsupported
from stator_guards import Guard, expanded

from stator._capture._emission import emission_of
from stator._capture._release import release, without_frames
from stator._program._call_history import CallEvidence, CallsUnderWay, visible_calls
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


SKIPPED = "skipped-frame"
"""The reason of a break at which the frame as a whole is to run natively."""


def trace(
    target: Target, state: FlatState, options: Options, policy: variables.Policy
) -> TraceResult:
    """Trace `target` on `state`. Raises Unsupported when not even the start can be written down."""
    # torch's tracing state is global, and so is the interpreter's lock: nothing is lost
    with one_at_a_time:
        result = _Attempt.of(target, state, options, policy).run()
    if not isinstance(result, _Retry):
        return result

    if result.late is not None:
        result.late.load()
    return trace(target, state, options, result.policy)


@attrs.frozen(eq=False)
class _Retry:
    """A trace is to be made again: up to where it broke, or behind an import."""

    policy: variables.Policy
    late: variables.LateImport | None = None


@attrs.frozen(eq=False)
class _Attempt:
    """One trace of a call, with a policy that it may show to be wrong."""

    target: Target
    state: FlatState
    options: Options
    policy: variables.Policy
    graph: Any
    space: variables.Space
    domain: Any
    machine: Machine
    places: MachineLocations
    started: float

    @classmethod
    def of(
        cls, target: Target, state: FlatState, options: Options, policy: variables.Policy
    ) -> _Attempt:
        started = time.perf_counter()
        places = MachineLocations()
        graph = options.stack.graph(places, capture_data=options.captures_data)
        policy = policy_of_backend(policy, options)
        space = new_space(options, graph, policy)
        domain = options.stack.domain(space)
        machine = Machine(domain, options.opcodes, sys.getrecursionlimit(), policy.native_calls)

        places.machine = space.machine = machine
        places.tracing = space
        return cls(target, state, options, policy, graph, space, domain, machine, places, started)

    def run(self) -> TraceResult | _Retry:
        try:
            with self.graph.tracing(), quiet(), _own_faults(self.space):
                variables.enter_taken(self.space)
                result = self._interpret()
        except BaseException:
            self.graph.release()  # an unused graph must keep no object alive
            if self.space.state(variables.CarriedPaths).are_read_twice:
                return self._retry_with_joined_paths()
            raise
        finally:
            self.space.restore_modes()
            release(self.space, self.machine, self.places)

        if isinstance(result, _Retry):
            self.graph.release()
        return result

    def _interpret(self) -> TraceResult | _Retry:
        space, machine, policy = self.space, self.machine, self.policy
        frames = self.target.frames(space, self.domain, self.state)
        self._guard_shapes()
        under_way = CallsUnderWay.of(frames)
        outcome = machine.run(frames)
        if space.state(variables.CarriedPaths).are_read_twice:
            return self._retry_with_joined_paths()

        outcome = before_loop(outcome, machine, space)
        finished = under_way.finished(machine.frames)
        if isinstance(outcome, Broke) and (retry := self._retry_after(outcome)) is not None:
            return retry

        is_error = isinstance(outcome, Broke) and raises_on_break(space)
        traced = _written_down(outcome, machine, space, self.graph, self.started)
        calls = _evidence(traced, self.places, finished, machine.entered)
        reads = tuple(space.heap.trackers) if policy.is_whole else ()
        return attrs.evolve(traced, calls=calls, is_error=is_error, reads=reads)

    def _guard_shapes(self) -> None:
        spec = self.options.shapes_spec
        if spec is not None and isinstance(self.target, Root):
            spec.guard(self.space, self.target, self.state)

    # -- other policies ----------------------------------------------------------------------------
    def _retry_with_joined_paths(self) -> _Retry:
        """A tensor was read by two of the paths that a break carried."""
        return _Retry(attrs.evolve(self.policy, joins_paths=True))

    def _retry_after(self, outcome: Broke) -> _Retry | None:
        """Return the retry where another trace gets further than this break, or does without a
        fact that this one added; None if the break stands."""
        without_frames(outcome.reason)
        outcome.reason.hint = outcome.reason.hint or hint_for(outcome.reason.reason)
        policy, domain = self.policy, self.domain
        if self._skips_callee(outcome):
            return _Retry(policy)

        late = domain.t.state(variables.LateImports).wanted
        if late is not None:
            return _Retry(attrs.evolve(policy, imported={*policy.imported, late}), late)
        stop = domain.learned_in_vain(outcome)
        if stop is not None:
            return _Retry(attrs.evolve(policy, stop=stop))
        return self._retry_before_library(outcome)

    def _retry_before_library(self, outcome: Broke) -> _Retry | None:
        """Break at the call of a library function instead of inside of it, in a trace that has not
        looked into it."""
        policy = self.policy
        if policy.stop is not None or policy.is_whole:
            return None
        earlier = before_library(outcome, self.machine, self.domain)
        if earlier is None:
            return None
        return _Retry(attrs.evolve(policy, stop=self.domain.stop_at(earlier)))

    def _skips_callee(self, outcome: Broke) -> bool:
        """Return True if the break ends a frame that was called, which is then run natively. Raises
        the reason if it ends the first one."""
        callees, frames = self.policy.callees, self.machine.frames
        if outcome.reason.reason != SKIPPED or callees is None:
            return False
        if len(frames) == 1:
            raise outcome.reason

        code, parked = frames[-1].code.raw, frames[-2].parked
        was_called = parked is not None and parked.before is not None
        if not was_called or code in callees.skipped:
            return False
        callees.skipped.add(code)
        return True


def new_space(options: Options, graph: Any, policy: variables.Policy) -> variables.Space:
    """Return the state of a trace that records into `graph`."""
    handlers, builders = options.stack.tables(options.without)
    space = variables.StandardSpace(graph, handlers, policy, variables.Journal(), builders=builders)
    repeats = getattr(graph, "equal_calls", None)  # a graph layer may have none
    if repeats is not None and options.regions != "off":
        space.state(variables.RepeatedCalls).repeater = repeats(space)
    return space


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
    outcome: Outcome, machine: Machine, space: variables.Space, graph: Any, started: float
) -> TraceResult:
    _refuse_deep(outcome)
    ends = isinstance(outcome, Escaped)  # which is the program's own way to end, and no break
    emission = emission_of(outcome, machine, space, graph)
    outcome, emitter = emission.outcome, emission.emitter

    space.states.complete_graph(emitter)
    captured = graph.finish(emitter.outputs)
    guards = space.finish_guards()
    outdated = tuple(variables.outdated_guards(space, expanded(guards)))

    return TraceResult(
        captured,
        emitter,
        guards,
        emission.result,
        emission.point,
        emission.values,
        raises=outcome.exception.cls.__name__ if isinstance(outcome, Escaped) else "",
        leaves=isinstance(outcome, Escaped) and outcome.leaves,
        reason=outcome.reason if isinstance(outcome, Broke) and not ends else None,
        seconds=time.perf_counter() - started,
        outdated=outdated,
        equal_calls=_lines_of_equal_calls(space),
    )


def _lines_of_equal_calls(tracing: variables.Space) -> tuple[str, ...]:
    """Return the record of equal calls; a graph layer may keep none."""
    record = getattr(tracing.state(variables.RepeatedCalls).repeater, "record", None)
    return () if record is None else tuple(record.lines())
