"""Tiers: a graph runs as it is until the backend has compiled it in another thread.

    options={"tiered": True}

The entry is made as for the eager backend, with what the compiled code will need: the guard on the
memory that inputs share, copies for a graph that raises. When the backend is done,
`TierChange.apply` gives the entry a function of the same text that calls the compiled graph. A call
that runs meanwhile goes on with the function that it began with, and so does its backward.

`LaterLowering` is the part of a trace that the thread needs. It refers to no tensor of the program.
"""

from __future__ import annotations

import contextvars
import time
import types
from collections.abc import Callable, Hashable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import attrs
import torch
from stator_backends import (
    AmbientState,
    Lowered,
    PreparedInputs,
    can_be_compiled_later,
    eager,
    prepare_inputs,
    report_failure,
    spec_of,
)
from stator_guards import Entry, Guard, GuardSet, ShapeExpression
from stator_variables import AUTOCAST_NESTING, is_under_level, sets_state_of_kernels

from stator._capture._trace import TraceResult
from stator._capture._uncompiled_operator import check_compiled
from stator._entries._checked_graph import CheckedGraph
from stator._entries._graph_lowering import (
    Outdated,
    completed,
    key_of_graph,
    lowered_for,
    lowered_graph,
    mark_native,
    settings_of,
)
from stator._entries._known_graph import KnownGraph, KnownGraphs
from stator._entries._late_inputs import LateInputs
from stator._entries._layout_guard import layout_guards
from stator._entries._measurement import MeasuredRun
from stator._entries._recovery import Recovery, RollbackPlan
from stator._program._call_history import FirstRuns
from stator._program._target import start_of
from stator._settings._options import Options

if TYPE_CHECKING:
    from stator_subgraphs import CapturedGraph, ShapeFact

    from stator._entries._graph_effects import GraphEffects

WAITS, COMPILES, COMPILED, FAILED, DROPPED = "waits", "compiles", "compiled", "failed", "dropped"


@attrs.define(eq=False)
class Tier:
    """The state of one entry, for reports. Times are in seconds, as `time.time` gives them."""

    backend: str
    began: float = attrs.field(factory=time.time)
    state: str = WAITS
    changed: float = 0.0
    seconds: float = 0.0
    cause: str = ""

    def end(self, state: str, started: float, cause: str = "") -> None:
        self.state, self.cause = state, cause
        self.changed = time.time()
        self.seconds = self.changed - started

    @property
    def is_compiled(self) -> bool:
        return self.state == COMPILED

    def __str__(self) -> str:
        after = f"{self.changed - self.began:.1f} s"
        if self.state == COMPILED:
            spent = f"{self.seconds:.1f} s to compile"
            return f"changed to {self.backend} after {after} ({spent})"
        if self.state == FAILED:
            return f"stays eager, as {self.backend} failed after {after}: {self.cause}"
        if self.state == DROPPED:
            return f"the next call compiles it again: {self.cause}"
        return f"runs as it is while {self.backend} {_DOING[self.state]}"

    def data(self) -> dict[str, Any]:
        """Return the state as values that JSON has."""
        return attrs.asdict(self)


_DOING = {WAITS: "has others to compile", COMPILES: "compiles it"}


def process_state() -> tuple[Any, ...]:
    """Return the state of the process that decides how a graph is compiled, modes of threads
    aside."""
    return (
        torch.get_default_dtype(),
        torch.get_num_threads(),
        torch.get_deterministic_debug_mode(),
        torch.get_float32_matmul_precision(),
        torch._C._get_mkldnn_enabled(),
        torch._C._get_flash_sdp_enabled(),
        torch._C._get_mem_efficient_sdp_enabled(),
        torch._C._get_math_sdp_enabled(),
    )


@attrs.define(eq=False)
class LaterLowering:
    """A graph that the backend compiles later, with all that this depends on as it is now.

    `key` finds it among the `known` graphs of its region.
    """

    traced: TraceResult
    options: Options
    ambient: AmbientState
    effects: GraphEffects
    prepared: PreparedInputs
    key: Hashable | None
    known: KnownGraphs
    shape_guards: Callable[..., list[ShapeFact]]
    context: contextvars.Context = attrs.field(factory=contextvars.copy_context)
    process: tuple[Any, ...] = attrs.field(factory=process_state)

    @classmethod
    def of(
        cls,
        traced: TraceResult,
        options: Options,
        ambient: AmbientState,
        effects: GraphEffects,
        known: KnownGraphs,
    ) -> LaterLowering | None:
        """Return None for a graph that is compiled in the call, or was compiled before."""
        captured = traced.captured
        if not _can_wait(traced, options, effects):
            return None
        mark_native(captured, effects)
        key = key_of_graph(captured, ambient, options, effects)
        if key is not None and key in known.graphs:
            return None

        from stator_subgraphs import add_fake_kernels, copied_module, needs_fake_kernels

        space = traced.emitter.t
        prepared = prepare_inputs(
            captured.module,
            captured.example_inputs(),
            space.graph.fake_mode,
            contexts=captured.contexts,
            add_fake_kernels=add_fake_kernels if needs_fake_kernels(captured.module) else None,
            hides_floats=space.policy.hides_floats,
        )

        module = copied_module(captured.module)
        copied = attrs.evolve(
            captured,
            graph=module.graph,
            make_module=lambda: module,
            example_inputs=lambda: [*prepared.inputs],
            contexts={},
        )
        kept = attrs.evolve(traced, captured=copied, guards=[], values=[], outdated=())
        shape_guards = captured.later_shape_guards()
        return cls(kept, options, ambient, effects, prepared, key, known, shape_guards)

    def as_it_is(self, traced: TraceResult) -> tuple[Lowered, Any]:
        """Lower the graph for the eager backend."""
        options = attrs.evolve(self.options, backend=eager)
        lowered, ran = lowered_graph(traced, options, self.ambient, self.effects, KnownGraphs())
        return attrs.evolve(lowered, guards=self.prepared.guards), ran

    def check_process(self) -> None:
        """Raise Outdated where a compiler sees another state than the call did."""
        if process_state() != self.process:
            raise Outdated

    def lower(self) -> KnownGraph:
        """Lower the graph for its own backend, unless an equal one was compiled meanwhile.

        Raises BackendFailed, FloatsNeeded, SeparationNeeded.
        """
        if self.key is not None and self.key in self.known.graphs:
            return self.known.graphs[self.key]
        return self.context.run(
            lowered_for,
            self.traced,
            self.options,
            self.ambient,
            self.effects,
            self.known,
            self.prepared,
        )

    def remember(self, graph: KnownGraph) -> None:
        """Let equal graphs of the region use what was compiled."""
        if self.key is not None and not graph.lowered.shape_guards:
            self.known.graphs[self.key] = graph


def _can_wait(traced: TraceResult, options: Options, effects: GraphEffects) -> bool:
    """Return False where a compilation beside the program could be observed, or has no use."""
    captured = traced.captured
    if not spec_of(options.backend).compiles or traced.serves_one_call:
        return False
    if effects.catches_foreign or captured.keeps_history or is_under_level():
        return False
    if any(sets_state_of_kernels(node.target) for node in captured.graph.nodes):
        return False
    settings = [setting for setting in settings_of(traced) if setting != AUTOCAST_NESTING]
    are_of_thread = all(getattr(each, "read", None) in _OF_THREAD for each in settings)
    return are_of_thread and can_be_compiled_later(captured.module, options.backend)


_OF_THREAD = (
    torch.is_grad_enabled,
    torch.is_autocast_enabled,
    torch.get_autocast_dtype,
    torch.is_autocast_cache_enabled,
)
"""The modes that each thread has for itself, beside the depth of autocast."""


class NoGuards:
    """Guards that never hold: of an entry in whose place there is another one, or none."""

    is_gone = True
    guards: tuple[Guard, ...] = ()

    def check(self, *state: object) -> bool:
        return False

    def mend(self, *state: object) -> bool:
        return False

    def explain(self, *state: object) -> list[Any]:
        return []

    def state(self, values: Sequence[object]) -> Any:
        return {}


@attrs.define(eq=False)
class TierChange:
    """The parts of an entry that change when it runs compiled code in place of the graph."""

    entry: Entry
    later: LaterLowering
    lowered: Lowered
    recovery: Recovery
    run: Callable[..., Any]
    guards: tuple[Guard, ...]
    compile_guards: Callable[[list[Guard]], GuardSet]

    @property
    def tier(self) -> Tier:
        tier: Tier = self.entry.data.tier
        return tier

    def apply(self, graph: KnownGraph) -> Entry | None:
        """Let the next calls run the compiled graph.

        Returns the entry that takes the place of this one, if the backend requires more guards.
        """
        data, traced = self.entry.data, self.later.traced
        lowered = completed(graph.lowered, traced)
        name, options = data.target.name, self.later.options
        data.uncompiled = check_compiled(name, lowered, data.op_count, options)
        run = self._function(lowered, graph.module)
        data.pieces = lowered.pieces
        data.namespace = {name: run.__globals__[name] for name in data.namespace}

        guards = [*self._added(lowered, traced.captured)]
        if not guards:
            _replace_run(self.entry, self.run, run)
            return None
        checked = self.compile_guards([*self.guards, *guards])
        stricter = attrs.evolve(self.entry, guards=checked, run=run)
        if data.measured is not None:
            stricter.run = data.measured = attrs.evolve(data.measured, run=run, guards=checked)
        return stricter

    def retire(self) -> None:
        """Let no call use the entry again."""
        self.entry.guards = NoGuards()

    def _function(self, lowered: Lowered, ran: Any) -> types.FunctionType:
        """Return the function of the entry with the compiled graph, and with what recovers from its
        errors."""
        late = LateInputs.of(lowered.late, self.later.traced.captured)
        plan = self.recovery.plan and self._plan(late)
        changes: dict[str, Any] = {"late": late, "plan": plan, "ran": ran}
        recovery = attrs.evolve(self.recovery, **changes, resumptions={}, continuations={})
        graph: Any = lowered.callable
        if lowered.spec.compiles and lowered.count:
            backend = self.later.options.backend
            script = partial(report_failure, self.entry.data.graph, backend=backend)
            graph = CheckedGraph(lowered, script)

        namespace = {**self.run.__globals__}
        for name, value in self.entry.data.namespace.items():
            if value is self.lowered.callable:
                namespace[name] = graph
                if type(graph) is CheckedGraph:
                    graph.name, graph.namespace = name, namespace
            elif value is self.recovery:
                namespace[name] = recovery
        return types.FunctionType(self.run.__code__, namespace)

    def _plan(self, late: LateInputs) -> RollbackPlan:
        """Return the copies that are needed: the inputs that are written to behind the graph need
        none."""
        plan = self.recovery.plan
        assert plan is not None
        written = tuple(each for each in plan.written if each not in late.positions)
        return attrs.evolve(plan, written=written)

    def _added(self, lowered: Lowered, captured: CapturedGraph) -> list[Guard]:
        """Return the guards that the backend requires besides those of the entry."""
        target = self.entry.data.target
        others = [guard for guard in lowered.guards if guard not in self.later.prepared.guards]
        added = [*layout_guards(others, captured, start_of(target))]
        if lowered.shape_guards:
            known = [guard.kind for guard in self.guards if type(guard.kind) is ShapeExpression]
            facts = self.later.shape_guards(bool(self.later.traced.raises))
            new = [Guard(None, fact.expression, fact.where) for fact in facts]
            added += [guard for guard in new if guard.kind not in known]
        return added


def _replace_run(entry: Entry, before: Callable[..., Any], run: Callable[..., Any]) -> None:
    """Replace the function of an entry; not one that runs natively by now."""
    holder: Any = entry
    while type(holder.run) in (FirstRuns, MeasuredRun):
        holder = holder.run
    if holder.run is before:
        holder.run = run
