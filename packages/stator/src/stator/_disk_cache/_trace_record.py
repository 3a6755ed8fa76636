"""The result of a trace as data: what an entry is made of, but for what the backend makes.

    record = TraceRecord.of(traced, target)       # before the backend gets the graph
    traced = record.result(...)                   # in another process, without interpreting

A record is made of traces of which all that they relied on is guarded or in the table of objects.
"""

from __future__ import annotations

import dis
import itertools
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from types import CodeType, FunctionType, MethodType
from typing import TYPE_CHECKING, Any

import attrs
import stator_variables as variables
import torch
from stator_backends import one_at_a_time
from stator_bytecode import Code, FlatState, FrameLayout, Point
from stator_guards import CANNOT_READ, Guard, GuardSet, Loads, Source, expanded

from stator._capture._trace import TraceResult, new_space, policy_of_backend, quiet
from stator._disk_cache._archive import Differs, Live, is_object_ref
from stator._disk_cache._fingerprint import CONSTANTS, NotCached
from stator._disk_cache._graph_calls import GraphCalls, NoLocation
from stator._disk_cache._graph_inputs import decisions, repeated
from stator._program._call_history import CallEvidence
from stator._settings._options import Options
from stator.errors import Unsupported

if TYPE_CHECKING:
    from stator_subgraphs import CapturedGraph
    from stator_variables import Policy

_OF_TORCH = (torch.dtype, torch.device, torch.layout, torch.memory_format, torch.Size)
_COPIED = (*CONSTANTS, complex, slice, range, type(...), Loads, *_OF_TORCH)


@attrs.frozen(eq=False)
class EntryText:
    """The lines of an entry and what they refer to: the fields of an `Emitter`, whose names they
    have."""

    loads: tuple[str, ...]
    ahead: tuple[str, ...]
    early: tuple[str, ...]
    behind: tuple[str, ...]
    lines: tuple[str, ...]
    loaded: tuple[tuple[Source, str], ...]
    captured: tuple[tuple[str, Any], ...]
    gradients: tuple[Source | None, ...]
    effects_start: int
    fleeting: bool

    @classmethod
    def of(cls, emitter: variables.Emitter) -> EntryText:
        return cls(
            tuple(emitter.loads),
            tuple(emitter.ahead),
            tuple(emitter.early),
            tuple(emitter.behind),
            tuple(emitter.lines),
            tuple(emitter.loaded.items()),
            tuple((name, _kept(value)) for name, value in emitter.captured.items()),
            tuple(emitter.gradients),
            emitter.effects_start,
            emitter.fleeting,
        )

    def emitter(self, tracing: variables.Space, outputs: Sequence[Any]) -> variables.Emitter:
        """Return an emitter that has these lines, and the outputs of the graph."""
        return variables.Emitter.written_before(
            tracing,
            loads=[*self.loads],
            ahead=[*self.ahead],
            early=[*self.early],
            behind=[*self.behind],
            lines=[*self.lines],
            loaded=dict(self.loaded),
            captured={name: _value(kept) for name, kept in self.captured},
            gradients=[*self.gradients],
            effects_start=self.effects_start,
            fleeting=self.fleeting,
            outputs=[*outputs],
        )


@attrs.frozen(eq=False)
class TraceEnd:
    """The end of a trace: the expression of its result, or the place where it breaks, and why."""

    result: str
    point: Point | None
    values: tuple[str, ...]
    raises: str
    leaves: bool
    reason: tuple[Any, ...] | None
    """The fields of the reason."""
    is_error: bool

    @classmethod
    def of(cls, traced: TraceResult) -> TraceEnd:
        """Raises NotCached for a break where objects are carried in parts."""
        point, reason = traced.point, traced.reason
        if point is not None and any(type(each) is not FrameLayout for each in point.carried):
            raise NotCached("it breaks with objects that are carried in parts")
        fields = None if reason is None else tuple(getattr(reason, name) for name in _OF_REASON)
        values = tuple(traced.values)
        return cls(
            traced.result, point, values, traced.raises, traced.leaves, fields, traced.is_error
        )


_OF_REASON = ("reason", "detail", "hint", "where", "once", "stack")


@attrs.frozen(eq=False)
class TraceRecord:
    """The parts of a `TraceResult`, and of its emitter, that an entry is made of."""

    graph: GraphCalls
    guards: tuple[Guard, ...]
    """The guards of the trace, and those on sizes that are symbols."""
    text: EntryText
    end: TraceEnd
    ended: tuple[int, ...]
    """The locals of the function whose ends the trace took for unobservable."""
    outdated: tuple[Guard, ...]
    calls_of_entry: tuple[variables.EntryCall, ...]
    settings: tuple[tuple[Any, Any], ...]
    """Modes that the graph changes, and their values at its start."""
    calls: CallEvidence
    equal_calls: tuple[str, ...]
    made: tuple[tuple[Source, variables.MadeState], ...]
    """The states of optimizers that the trace made ahead."""

    @classmethod
    def of(cls, traced: TraceResult, policy: Policy) -> TraceRecord:
        """Raises NotCached with the reason where a trace is not to be kept. `policy` repeats its
        decisions."""
        if (reason := next(_reasons(traced), None)) is not None:
            raise NotCached(reason)

        emitter = traced.emitter
        settings = emitter.t.state(variables.GlobalModes).starts

        return cls(
            GraphCalls.of(traced.captured, emitter.outputs, policy),
            (*expanded(traced.guards), *_shape_guards(traced)),
            EntryText.of(emitter),
            TraceEnd.of(traced),
            tuple(sorted(emitter.t.lifetimes.ended_locals)),
            traced.outdated,
            tuple(emitter.t.state(variables.EntryCalls).calls),
            tuple(settings.items()),
            attrs.evolve(traced.calls, entered=frozenset()),
            traced.equal_calls,
            variables.states_made(emitter.t.states),
        )

    def check(self, guards: GuardSet, named: Mapping[str, object], state: FlatState) -> None:
        """Raise Differs where a guard does not hold. State of optimizers that is missing is made,
        as the trace made it; it stays if all hold then."""
        if guards.check(*state):
            return
        undo = [*self._make_states(named)]
        if undo and guards.check(*state):
            return
        for each in undo:
            each()
        failures = guards.explain(*state)
        raise Differs(str(failures[0]) if failures else "a guard did not hold")

    def _make_states(self, named: Mapping[str, object]) -> Iterator[Callable[[], None]]:
        for source, made in self.made:
            try:
                optimizer = source.evaluate(named)
            except CANNOT_READ:
                return
            if (undo := made.make(optimizer)) is not None:
                yield undo

    def result_for(
        self, state: Mapping[str, object], options: Options, policy: Policy
    ) -> TraceResult:
        """Return what a trace would give: the graph is recorded anew, with the tensors of `state`.

        Raises Differs.
        """
        started = time.perf_counter()
        policy = decisions(policy, self.graph.inputs)
        graph = options.stack.graph(NoLocation(), capture_data=options.captures_data)
        tracing = new_space(options, graph, policy_of_backend(policy, options))
        self._begin(tracing)

        try:
            with one_at_a_time, graph.tracing(), quiet():
                outputs = self.graph.record(graph, lambda source: source.evaluate(state), policy)
                emitter = self.text.emitter(tracing, outputs)
                captured = graph.finish(outputs)
        except (Unsupported, *CANNOT_READ) as error:
            graph.release()
            raise Differs(f"the graph cannot be recorded: {error}") from error
        except BaseException:
            graph.release()
            raise
        finally:
            tracing.restore_modes()

        return self._result(captured, emitter, policy, time.perf_counter() - started)

    def _begin(self, tracing: variables.Space) -> None:
        """Put into the state of a trace what the entry reads of it. Raises Differs."""
        for setting, value in self.settings:
            if (now := setting.now) != value:
                raise Differs(f"{setting.text} was {value} and is {now}")
        tracing.state(variables.GlobalModes).starts.update(self.settings)
        tracing.state(variables.EntryCalls).calls.extend(self.calls_of_entry)
        tracing.lifetimes.ended_locals.update(self.ended)

    def _result(
        self, captured: CapturedGraph, emitter: variables.Emitter, policy: Policy, spent: float
    ) -> TraceResult:
        end = self.end

        return TraceResult(
            captured=captured,
            emitter=emitter,
            guards=[*self.guards],
            result=end.result,
            point=end.point,
            values=[*end.values],
            raises=end.raises,
            leaves=end.leaves,
            reason=None if end.reason is None else Unsupported(*end.reason),
            seconds=spent,
            is_error=end.is_error,
            calls=self.calls,
            outdated=self.outdated,
            equal_calls=self.equal_calls,
            decided=repeated(policy, self.graph.inputs),
        )


def _shape_guards(traced: TraceResult) -> Iterator[Guard]:
    """Yield the facts about sizes and numbers that the trace relies on; compilers add others."""
    with one_at_a_time:
        facts = traced.captured.shape_guards(bool(traced.raises))
    for fact in facts:
        yield Guard(None, fact.expression, fact.where)


@attrs.frozen(eq=False)
class KeptGetter:
    """The method by which an entry reads an object that it does not keep alive."""

    reference: Any


def _kept(value: Any) -> Any:
    """Return a constant of an entry as it is written: an object of the program is never copied."""
    if type(value) is MethodType and is_object_ref(value.__self__):
        return KeptGetter(value.__self__)
    if type(value) in _COPIED:
        return value
    if type(value) in (tuple, frozenset):
        is_copied = all(type(item) in _COPIED for item in value)
        return value if is_copied else Live(value)
    return Live(value)


def _value(kept: Any) -> Any:
    if type(kept) is KeptGetter:
        return kept.reference.get
    return kept.value if type(kept) is Live else kept


def _reasons(traced: TraceResult) -> Iterator[str]:
    """Yield what keeps a trace from being written."""
    emitter = traced.emitter
    if emitter.generators:
        yield "it makes generators"
    yield from emitter.t.states.bound_to_process()


def check_hashes(codes: Iterable[CodeType], known: Iterable[object]) -> None:
    """Raise NotCached where a result may follow from hashes of texts or of None: another process
    has others. The order of a new set is guarded, that of a constant of code is not."""
    if any(each is hash for each in known):
        raise NotCached("it computes hashes, which differ between processes")
    for code in codes:
        if {"hash", "__hash__"} & {*code.co_names} or _reads_constant_set(code):
            raise NotCached(f"{code.co_qualname} may read hashes, which differ between processes")


def _reads_constant_set(code: CodeType) -> bool:
    """Return True for code that does more with a constant set than to look for members."""
    if not any(type(item) is frozenset for item in code.co_consts):
        return False
    for one, following in itertools.pairwise(dis.get_instructions(code)):
        is_set = type(one.argval) is frozenset
        if is_set and following.opname not in ("CONTAINS_OP", "SET_UPDATE"):
            return True
    return False


def check_codes(
    codes: Iterable[Code], known: Iterable[object], targets: Sequence[CodeType]
) -> None:
    """Raise NotCached for code that was interpreted and that no object of the table has: a change
    of it would not be noticed."""
    known = [*known]
    check_hashes([*targets, *(code.raw for code in codes)], known)
    covered: set[CodeType] = set()
    functions = [each for each in known if type(each) is FunctionType]
    pending = [*targets, *known, *(each.__code__ for each in functions)]
    while pending:
        code = pending.pop()
        if type(code) is CodeType and code not in covered:
            covered.add(code)
            pending += code.co_consts
    for code in (each.raw for each in codes):
        if code not in covered and not code.co_filename.startswith(_VERSIONED):
            raise NotCached(f"the code of {code.co_qualname} is not guarded")


_VERSIONED = tuple(
    str(Path(str(module.__file__)).parent) + "/" for module in (torch, attrs, variables)
)
"""Folders of which the version is noted as a whole."""
