"""Compile the entry of a call: trace it, lower its graph, and note what later calls need."""

from __future__ import annotations

from collections.abc import Hashable
from functools import partial

import attrs
from stator_backends import AmbientState, ordinary_signal_handlers
from stator_bytecode import CallSite, FlatState, InnermostFrames, Site
from stator_guards import Entry
from stator_variables import Policy

from stator._capture._compile_event import observed
from stator._capture._dynamic import recorded
from stator._capture._release import without_frames
from stator._capture._retrace import Retrace
from stator._capture._trace import TraceResult
from stator._capture._uncompiled_operator import requires_compilation
from stator._disk_cache._lookup import TraceSource, lookup
from stator._entries._entry import finishing_entry
from stator._entries._entry_pool import EntryPool
from stator._entries._graph_lowering import FloatsNeeded, SeparationNeeded
from stator._program._call_history import ENDS, CallEvidence, FirstRuns
from stator._program._fallback import Remainder
from stator._program._target import Root
from stator._regions._compilations import COMPILATIONS
from stator._regions._compiled_target import CompiledTarget
from stator._regions._region import Region
from stator._regions._small_graph import watch_first_calls
from stator.errors import BackendFailed, Unsupported

NOTHING_AFTER = "replaced-builtin"
"""The reason of a break after which no code of ours could run: the whole runs plainly."""


@attrs.frozen(eq=False)
class EntryRequest:
    """A call that no entry accepts: its place, its state, and the key of its entries."""

    place: CompiledTarget
    state: FlatState
    key: Hashable


@attrs.frozen(eq=False)
class EntryCompiler:
    """The compilation of entries for one region."""

    region: Region

    def compile(self, place: CompiledTarget, state: FlatState, key: Hashable) -> Entry | None:
        """Take the entry of another compiled object, or compile one that others may take; None
        for a call that runs eagerly."""
        request = EntryRequest(place, state, key)
        with self.region.pool.lock:
            shared_entry = place.shared.lookup(key, state)
            if shared_entry is not None:
                self.region.note_file(shared_entry)
                return shared_entry

            with observed(place, key, state) as event, ordinary_signal_handlers():
                event.entry = self._finish_native_call(request) or self._lower_as_needed(request)
            if event.entry is not None:
                place.shared.add(event.entry)
                self.region.note_file(event.entry)
            return event.entry

    def _lower_as_needed(self, request: EntryRequest) -> Entry | None:
        """Trace and lower; again in another way where the backend turns out to need that."""
        shapes = request.place.shared.shapes
        try:
            return self._trace_and_lower(request)
        except FloatsNeeded:
            shapes.need_floats()
        except SeparationNeeded:
            shapes.separates_steps = True
        return self._lower_as_needed(request)

    def _trace_and_lower(self, request: EntryRequest) -> Entry | None:
        place, state = request.place, request.state
        ambient = AmbientState.capture()
        named = dict(zip(place.target.parameters, state, strict=True))
        policy, again = recorded(self._policy(place, named))
        is_error = self.region.refuses_breaks(place)
        source = lookup(place.target, state, self.region.options, policy)

        try:
            traced = source.traced(state, policy)
            retrace = Retrace(place.target, self.region.options, traced.decided or again)
            is_error = is_error or traced.is_error

            try:
                if place.initializes(traced.reason):
                    return None
                if traced.reason is not None and (is_error or _ends_all(traced.reason)):
                    raise traced.reason
                return self._lower(traced, request, retrace, ambient, named, source)
            finally:
                traced.captured.release()
                del traced  # it holds the reason, whose traceback holds this frame
        except Unsupported as reason:
            if place.initializes(reason):
                return None
            if is_error or requires_compilation(reason):
                raise
            place.shared.refused.append(without_frames(reason))
        except BackendFailed as failure:
            if not self.region.options.fallback:
                raise
            place.shared.refused.append(Unsupported("backend-failed", str(failure)))
        finally:
            source.end()
            # read by the policy while tracing; the result may outlive this call, the state must not
            named.clear()

        return None

    def _lower(
        self,
        traced: TraceResult,
        request: EntryRequest,
        retrace: Retrace,
        ambient: AmbientState,
        named: dict[str, object],
        source: TraceSource,
    ) -> Entry:
        """Lower the graph of a trace, and note what later calls and reports need of it."""
        region, place = self.region, request.place
        traced = region.single_use.marked(traced, place, region.options, request.state)
        place.shared.add_ending(traced.emitter.t.lifetimes.ended_locals)
        site = self._site(traced)
        entry = source.entry(traced, retrace, site, ambient, request.key, region.graphs, named)

        region.single_use.note(entry, traced)
        COMPILATIONS.note(entry, place, region.pool, region)
        self._count_calls(traced.calls, entry, place)
        return entry

    def _policy(self, place: CompiledTarget, named: dict[str, object]) -> Policy:
        policy = place.shared.shapes.policy(named)
        spec, target = self.region.options.shapes_spec, place.target
        if spec is not None and isinstance(target, Root):
            policy = spec.policy(target, tuple(named.values()), policy)
        native = self.region.pool.history.native
        return attrs.evolve(policy, native_calls=native, callees=self.region.callees)

    def _site(self, traced: TraceResult) -> Site | None:
        """Return the site where a trace broke; None if it reached the end."""
        if traced.point is None:
            return None
        return self.region.pool.site_of(traced.point, traced.raises if traced.leaves else "")

    def _count_calls(self, calls: CallEvidence, entry: Entry, place: CompiledTarget) -> None:
        pool = self.region.pool
        pool.history.record(calls)
        if place is self.region.root:
            watch_first_calls(entry, place.target, pool)
        if suspected := pool.history.suspected(calls.finished):
            FirstRuns.install(entry, pool, partial(_count_ends, suspected), ENDS)

    def _finish_native_call(self, request: EntryRequest) -> Entry | None:
        """Return the entry that leaves a native call to Python; None outside of such calls."""
        pool, target = self.region.pool, request.place.target
        if isinstance(target, Root):
            return None
        known = pool.history.native
        if (first := pool.history.first_native(target.point, request.state)) is None:
            return None

        for site in pool.history.native - known:
            pool.forget_call(site)
        try:
            remainder = Remainder(InnermostFrames(target.point, first))
        except Unsupported:
            return None  # for example a generator: this round of it is traced
        layout = target.point.frames[first]
        detail = f"{layout.raw.co_qualname}, in which no graph gained an operation"
        reason = Unsupported("native-call", detail, "", layout.code.span(layout.pc))
        return finishing_entry(target, remainder, self.region.options, request.key, reason)


def _count_ends(sites: list[CallSite], entry: Entry, pool: EntryPool, left: int) -> None:
    pool.count_ends(sites)


def _ends_all(reason: Unsupported) -> bool:
    """Return True for the break after which no code of ours could run."""
    return reason.reason == NOTHING_AFTER
