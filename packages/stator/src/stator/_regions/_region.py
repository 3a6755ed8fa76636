"""A Region: one compiled object with its caches, whose entries may be those of other objects
(`_entry_pool.py`)."""

from __future__ import annotations

import threading
from collections.abc import Callable, Hashable
from functools import partial
from types import SimpleNamespace
from typing import Any

import attrs
from stator_backends import AmbientState, interrupts_compilation, ordinary_signal_handlers
from stator_bytecode import (
    CallSite,
    Dispatch,
    FlatState,
    Goto,
    InnermostFrames,
    Point,
    Site,
    drive,
    passed_over,
)
from stator_guards import Cache, Entry
from stator_variables import Policy, can_be_taken, give_back, taken

from stator._capture._compilation_flag import is_compiling
from stator._capture._compile_event import observed
from stator._capture._dynamic import recorded
from stator._capture._release import without_frames
from stator._capture._retrace import Retrace
from stator._capture._trace import SKIPPED, TraceResult
from stator._capture._uncompiled_operator import requires_compilation
from stator._disk_cache._lookup import TraceSource, lookup
from stator._entries._entry import finishing_entry
from stator._entries._entry_pool import EntryPool, pool_of, renewed, with_options
from stator._entries._graph_lowering import FloatsNeeded, SeparationNeeded
from stator._entries._known_graph import KnownGraph
from stator._program._call_history import ENDS, CallEvidence, FirstRuns, is_inside
from stator._program._callees import Callees, NativeTarget
from stator._program._fallback import EagerFallback, Remainder
from stator._program._lazy import make_parameters
from stator._program._local_ends import observed_ends
from stator._program._target import Root
from stator._program._traceback import OWN_CODES
from stator._regions._compilations import COMPILATIONS, found_or_made
from stator._regions._compiled_target import CompiledTarget
from stator._regions._foreign_call import (
    function_mode_count,
    has_others,
    is_foreign_below,
    is_foreign_call,
)
from stator._regions._recompile_limit import past_limit, recompiled
from stator._regions._single_use import SingleUse
from stator._regions._small_graph import watch_first_calls
from stator._settings._deferred_warning import (
    RUNNERS,
    defer_warning,
    deferred_warnings,
    show_deferred_warnings,
)
from stator._settings._options import Options, disabled_by_environment, with_backend, with_settings
from stator._settings._stance import DEFAULT_STANCE, stance
from stator._settings._torch_settings import setting
from stator.errors import BackendFailed, Unsupported

NOTHING_AFTER = "replaced-builtin"
"""The reason of a break after which no code of ours could run: the whole runs plainly."""

_NEVER: Any = SimpleNamespace(check=lambda *state: False)
NOTHING = Entry(_NEVER, run=lambda *state: None)
"""No entry, where the wrapper looks for one."""


@attrs.define(eq=False)
class Region:
    """`run(state)` is the compiled function; the wrapper tries the entry in `newest` before,
    without a call of ours."""

    pool: EntryPool
    options: Options
    root: CompiledTarget
    # one item: the entry of `root` used last
    newest: list[Entry] = attrs.field(factory=lambda: [NOTHING])
    places: dict[Point, CompiledTarget] = attrs.field(factory=dict)
    forced: dict[int, Region] = attrs.field(factory=dict)  # for backends that a stance forced
    graphs: dict[Hashable, KnownGraph] = attrs.field(factory=dict)  # those that were compiled
    single_use: SingleUse = attrs.field(factory=SingleUse)
    callees: Callees | None = None  # of functions that run natively
    _lock: Any = attrs.field(factory=threading.Lock)

    @classmethod
    def of(cls, target: Root, options: Options, owner: type | None = None) -> Region:
        pool = pool_of(target, options, owner)
        made = cls(pool, pool.options, _place(pool, None))
        pool.users.add(made)
        return made

    # -- running -----------------------------------------------------------------------------------
    def run(self, state: FlatState) -> Any:
        """Call the compiled function: no entry was found by the fast way."""
        now = stance()
        if now.backend is not None:
            other = self._with_backend(now.backend)
            return other.run_entered(state)
        if now.name == "force_eager":
            return EagerFallback(self.root.target, state).run()
        return self.run_entered(state)

    def run_entered(self, state: FlatState) -> Any:
        """Run the entry for a state, and what follows it."""
        result = self.enter(self.root, state)
        return self.finish(result, self.single_use.dispatch(self, state))

    def _with_backend(self, backend: str | Callable[..., Any]) -> Region:
        """Return the region that takes the place of this one while a stance forces a backend."""
        options = with_backend(self.options, backend)
        if options.key not in self.forced:
            self.forced[options.key] = Region.of(self.pool.root, options)
        return self.forced[options.key]

    def forget_newest(self) -> None:
        """Let each call come here until an entry is remembered again."""
        self.newest[0] = NOTHING

    def finish(self, result: object, dispatch: Dispatch | None = None) -> Any:
        """Drive what an entry gave to the end."""
        if type(result) is Goto:
            result = drive(result.site, result.take(), dispatch or self.dispatch)
        elif type(result) is EagerFallback:
            result = result.run()
        if deferred_warnings.waiting:
            show_deferred_warnings()
        return result

    def dispatch(self, point: Point, state: list[Any]) -> object:
        """The continuation at `point`: a value, or the next Goto. Tries the entry used there last
        before all else, as the wrapper does for the root: its guards do not hold under modes and in
        other tracers."""
        values = tuple(state)
        state.clear()
        place = self.places.get(point) or self.place_of(point)
        last = place.last
        entry = place.expected(last) if last else None
        if entry is None:
            entry = place.newest.get(self.options.key, NOTHING)
        if entry.guards.check(*values) and not entry.data.ends.are_observed(values):
            if last:
                place.follow(last, entry)
            result = entry.run(*values)
        else:
            result = self.enter(place, values, entry)
        del values
        return result.run() if type(result) is EagerFallback else result

    def enter(
        self,
        place: CompiledTarget,
        state: FlatState,
        failed: Entry = NOTHING,
    ) -> object:
        """Run the entry for a state: not `failed`, which does not serve it."""
        if function_mode_count() and can_be_taken() and not is_foreign_below():
            return self._enter_under_modes(place, state)
        return self._entered(place, state, failed)

    def _enter_under_modes(self, place: CompiledTarget, state: FlatState) -> Any:
        """An entry puts modes back itself, those that are then entered; what runs plainly finds
        them as they were."""
        with taken() as modes:
            result = self._entered(self._under_modes(place), state)
            if type(result) is EagerFallback:
                give_back(modes)
            return result

    def _under_modes(self, place: CompiledTarget) -> CompiledTarget:
        with self._lock:
            if not place.under_modes:
                target = place.target
                point = None if isinstance(target, Root) else target.point
                place.under_modes.append(_place(self.pool, point, under_modes=True))
            return place.under_modes[0]

    def _entered(
        self,
        place: CompiledTarget,
        state: FlatState,
        failed: Entry = NOTHING,
    ) -> object:
        key = self._key(place, state)
        entry = found = place.cache.lookup(key, state, failed)
        if entry is None and not place.cache.is_full(key) and self._may_compile(place, state, key):
            if place is self.root:
                make_parameters(place.target, state)
            make = lambda: self._pooled(place, state, key)  # noqa: E731
            entry = found_or_made(place.cache, key, state, make, waits=not self.options.tiered)
            place.forget_dropped()
            place.served = ()
            if entry is not None and not entry.data.has_begun and not entry.guards.check(*state):
                # while it was made, another thread or the collector changed what it stands on
                entry = None
        if entry is None:
            raises = self._refuses(place) or setting("fail_on_recompile_limit_hit")
            if raises and place.cache.is_full(key):
                raise past_limit(place.cache, key, state)
            return EagerFallback(self._native(place), state)
        if entry.data.serves_one_call:
            place.cache.remove(entry)
            place.served = (entry,)
            return self.single_use.run(entry, state)
        if place is self.root:
            self._remember(place, key, entry)
        elif key == self.options.key:
            place.use(key, entry)
        else:
            place.newest[key] = entry
        result = _first_run(entry, state) if entry.data.has_begun else entry.run(*state)
        if found is None and place is self.root and type(result) is Goto:
            self.single_use.begin(entry)
        return result

    def _native(self, place: CompiledTarget) -> Any:
        """Return what runs where no entry does."""
        skips = any(refusal.reason == SKIPPED for refusal in place.shared.refused)
        if skips and self.callees is not None:
            return NativeTarget(place.target, self.callees)
        return place.target

    def _may_compile(self, place: CompiledTarget, state: FlatState, key: Hashable) -> bool:
        """Return whether a call that no entry accepts is compiled. Raises InvalidUse where that is
        an error."""
        is_off = interrupts_compilation() or disabled_by_environment()
        if _must_not_compile(place, state) or is_off:
            return False
        self._follow_settings()
        name = stance().name
        is_recompile = bool(place.cache.entries(key)) and setting("error_on_recompile")
        if name == "fail_on_recompile" or is_recompile:
            raise recompiled(place.cache, key, state)
        delays = name.endswith("eager_then_compile") and place is self.root
        if delays and not place.shared.ran_eagerly:
            place.shared.ran_eagerly = True
            named = zip(place.target.parameters, state, strict=True)
            place.shared.shapes.observe(dict(named))
            return False
        return name != "eager_on_recompile"

    def _follow_settings(self) -> None:
        """Compile by the settings of torch as they are now; what was compiled stays."""
        if (options := with_settings(self.options)) is self.options:
            return
        with self._lock:
            self.options, self.pool = options, with_options(self.pool, options)
            self.pool.users.add(self)
            for place in self.all_places():
                point = None if isinstance(place.target, Root) else place.target.point
                is_under = place is not (self.root if point is None else self.places.get(point))
                place.shared = self.pool.place_of(point, under_modes=is_under)
                _limit(place.cache, options)

    def _remember(self, place: CompiledTarget, key: Hashable, entry: Entry) -> None:
        """Let the wrapper try the entry first, unless calls alternate among several: then the cache
        finds it sooner."""
        repeated = place.recent is entry or len(place.cache.entries(key)) <= 2
        place.recent = entry
        self.newest[0] = entry if repeated and stance() is DEFAULT_STANCE else NOTHING
        if place is not self.root:  # reset meanwhile by another thread
            self.newest[0] = NOTHING

    def _key(self, place: CompiledTarget, state: FlatState) -> Hashable:
        ending = observed_ends(state, place.shared.ending) if place.shared.ending else ()
        return (self.options.key, ending) if ending else self.options.key

    # -- making ------------------------------------------------------------------------------------
    def _pooled(self, place: CompiledTarget, state: FlatState, key: Hashable) -> Entry | None:
        """Take the entry of another compiled object, or make one that others may take."""
        shared = place.shared
        with self.pool.lock:
            if (found := shared.lookup(key, state)) is not None:
                return found
            if (made := self._make(place, state, key)) is not None:
                shared.add(made)
            return made

    def _make(self, place: CompiledTarget, state: FlatState, key: Hashable) -> Entry | None:
        with observed(place, key, state) as made, ordinary_signal_handlers():
            finishing = self._finishing(place, state, key)
            made.entry = finishing or self._made_for_backend(place, state, key)
        return made.entry

    def _made_for_backend(
        self, place: CompiledTarget, state: FlatState, key: Hashable
    ) -> Entry | None:
        while True:
            try:
                return self._made(place, state, key)
            except FloatsNeeded:
                place.shared.shapes.need_floats()
            except SeparationNeeded:
                place.shared.shapes.separates_steps = True

    def _made(self, place: CompiledTarget, state: FlatState, key: Hashable) -> Entry | None:
        ambient = AmbientState.capture()
        named = dict(zip(place.target.parameters, state, strict=True))
        policy, again = recorded(self._policy(place, named))
        refuses = self._refuses(place)
        try:
            source = lookup(place.target, state, self.options, policy)
            traced = source.traced(state, policy)
            try:
                if place.initializes(traced.reason):
                    return None
                refuses = refuses or traced.is_error
                if traced.reason is not None and (refuses or _ends_all(traced.reason)):
                    raise traced.reason
                traced = self.single_use.marked(traced, place, self.options, state)
                retrace = Retrace(place.target, self.options, traced.decided or again)
                return self._noted_entry(traced, place, retrace, ambient, key, named, source)
            finally:
                traced.captured.release()
                del traced  # it holds the reason, whose traceback holds this frame
        except Unsupported as reason:
            if place.initializes(reason):
                return None
            if refuses or requires_compilation(reason):
                raise
            place.shared.refused.append(without_frames(reason))
        except BackendFailed as failure:
            if not self.options.fallback:
                raise
            place.shared.refused.append(Unsupported("backend-failed", str(failure)))
        finally:
            # read by the policy while tracing; the result may outlive this call, the state must not
            named.clear()
        return None

    def _noted_entry(
        self,
        traced: TraceResult,
        place: CompiledTarget,
        retrace: Retrace,
        ambient: AmbientState,
        key: Hashable,
        named: dict[str, object],
        source: TraceSource,
    ) -> Entry:
        """Make the entry of a trace, and note what later calls and reports need of it."""
        place.shared.add_ending(traced.emitter.t.lifetimes.ended_locals)
        entry = source.entry(traced, retrace, self._site(traced), ambient, key, self.graphs, named)

        self.single_use.note(entry, traced)
        COMPILATIONS.note(entry, place, self.pool, self)
        self._count_calls(traced.calls, entry, place)
        return entry

    def _policy(self, place: CompiledTarget, named: dict[str, object]) -> Policy:
        policy = place.shared.shapes.policy(named)
        spec, target = self.options.shapes_spec, place.target
        if spec is not None and isinstance(target, Root):
            policy = spec.policy(target, tuple(named.values()), policy)
        native = self.pool.history.native
        return attrs.evolve(policy, native_calls=native, callees=self.callees)

    def _site(self, traced: TraceResult) -> Site | None:
        """Return the site where a trace broke; None if it reached the end."""
        if traced.point is None:
            return None
        return self.pool.site_of(traced.point, traced.raises if traced.leaves else "")

    def _count_calls(self, calls: CallEvidence, entry: Entry, place: CompiledTarget) -> None:
        self.pool.history.record(calls)
        if place is self.root:
            watch_first_calls(entry, place.target, self.pool)
        if suspected := self.pool.history.suspected(calls.finished):
            FirstRuns.install(entry, self.pool, partial(_count_ends, suspected), ENDS)

    def forget_call(self, site: CallSite) -> None:
        """Drop the continuations inside of a call that is native from now on."""
        with self._lock:
            for point in [*self.places]:
                if is_inside(point, site):
                    self.places.pop(point, None)

    def _finishing(self, place: CompiledTarget, state: FlatState, key: Hashable) -> Entry | None:
        """The entry that leaves a native call to Python; None outside of such calls."""
        target, known = place.target, self.pool.history.native
        if isinstance(target, Root):
            return None
        if (first := self.pool.history.first_native(target.point, state)) is None:
            return None
        for site in self.pool.history.native - known:
            self.pool.forget_call(site)
        try:
            remainder = Remainder(InnermostFrames(target.point, first))
        except Unsupported:
            return None  # for example a generator: this round of it is traced
        layout = target.point.frames[first]
        detail = f"{layout.raw.co_qualname}, in which no graph gained an operation"
        reason = Unsupported("native-call", detail, "", layout.code.span(layout.pc))
        return finishing_entry(target, remainder, self.options, key, reason)

    def _refuses(self, place: CompiledTarget) -> bool:
        """`fullgraph` promises one graph or an error. What comes after lets out an exception: the
        effects are done."""
        return self.options.fullgraph and isinstance(place.target, Root)

    def place_of(self, point: Point) -> CompiledTarget:
        if (found := self.places.get(point)) is None:
            with self._lock:
                found = self.places.setdefault(point, _place(self.pool, point))
        return found

    def all_places(self) -> list[CompiledTarget]:
        places = [self.root, *self.places.values()]
        return [each for place in places for each in (place, *place.under_modes)]

    def release_in_child(self) -> None:
        """Release locks that another thread held when this process was forked: it does not exist
        here."""
        self._lock, self.pool.lock = threading.Lock(), threading.RLock()
        for place in self.all_places():
            place.cache.release_in_child()

    def reset(self) -> None:
        """Discard everything compiled; other objects keep what they have."""
        self.pool = renewed(self.pool)
        self.pool.users.add(self)
        self.root = _place(self.pool, None)
        self.newest[0] = NOTHING
        self.places.clear()
        self.graphs.clear()
        self.forced.clear()
        COMPILATIONS.drop(self)


def _count_ends(sites: list[CallSite], entry: Entry, pool: EntryPool, left: int) -> None:
    pool.count_ends(sites)


def _first_run(entry: Entry, state: FlatState) -> object:
    """Run an entry whose trace made calls of cached functions. Its guards hold only then; to check
    them once plans how they are watched, which the second call would have to do."""
    entry.data.has_begun = False
    result = entry.run(*state)
    entry.guards.check(*state)
    return result


def _place(pool: EntryPool, point: Point | None, *, under_modes: bool = False) -> CompiledTarget:
    shared = pool.place_of(point, under_modes=under_modes)
    cache = Cache(shared.target.name)
    _limit(cache, pool.options)
    return CompiledTarget(shared, shared.target, cache)


def _limit(cache: Cache, options: Options) -> None:
    raises = options.fullgraph or setting("fail_on_recompile_limit_hit")
    cache.limit, cache.total_limit = options.recompile_limit, options.total_limit
    cache.warn = None if raises else defer_warning


def _ends_all(reason: Unsupported) -> bool:
    """Return True for the break after which no code of ours could run."""
    return reason.reason == NOTHING_AFTER


def _must_not_compile(place: CompiledTarget, state: FlatState) -> bool:
    """Return whether a call that no entry accepts runs eagerly."""
    return bool(
        place.shared.refused
        or place.target.is_stale(state)
        or is_compiling()
        or is_foreign_call()
        or has_others()
    )


_RUNNING = (
    Region.run,
    Region.run_entered,
    Region.enter,
    Region._entered,
    Region.finish,
    Region.dispatch,
)
OWN_CODES.update(passed_over(*_RUNNING, EagerFallback.run, make_parameters))
passed_over(Region._enter_under_modes, _first_run)
RUNNERS.add(Region.finish.__code__)
