"""A Region: the entries of one compiled object, which may be those of other objects, too
(`_entry_pool.py`).

Four objects work on it, with a verb each:

    RegionRunner    runs a call, and what follows its breaks          `_region_runner.py`
    EntryLookup     finds the entry of a call                         `_entry_lookup.py`
    EntryCompiler   compiles one where there is none                  `_entry_compiler.py`
    StanceRules     permit that, or replace the backend               `_stance_rules.py`
"""

from __future__ import annotations

import threading
from collections.abc import Hashable
from types import SimpleNamespace
from typing import Any

import attrs
from stator_bytecode import CallSite, FlatState, Point
from stator_guards import Cache, Entry

from stator._entries._entry_pool import EntryPool, pool_of, renewed, with_options
from stator._entries._known_graph import KnownGraphs
from stator._program._call_history import is_inside
from stator._program._callees import Callees
from stator._program._local_ends import observed_ends
from stator._program._target import Root
from stator._regions._compilations import COMPILATIONS
from stator._regions._compiled_target import CompiledTarget
from stator._regions._single_use import SingleUse
from stator._settings._deferred_warning import defer_warning
from stator._settings._options import Options, with_settings
from stator._settings._stance import DEFAULT_STANCE, stance
from stator._settings._torch_settings import setting

_NEVER: Any = SimpleNamespace(check=lambda *state: False)
NOTHING = Entry(_NEVER, run=lambda *state: None)
"""No entry, where the wrapper looks for one."""


@attrs.frozen(eq=False)
class CompiledTrace:
    """The file that has the trace of an entry, or the reasons why there is none."""

    name: str
    file: Any
    notes: tuple[str, ...]


@attrs.define(eq=False)
class Region:
    """The entries of one compiled object, by the points of its program.

    The wrapper tries the entry in `newest` before all else, without a call of ours.
    """

    pool: EntryPool
    options: Options
    root: CompiledTarget
    # one item: the entry of `root` used last
    newest: list[Entry] = attrs.field(factory=lambda: [NOTHING])
    places: dict[Point, CompiledTarget] = attrs.field(factory=dict)
    forced: dict[int, Region] = attrs.field(factory=dict)  # for backends that a stance forced
    graphs: KnownGraphs = attrs.field(factory=KnownGraphs)  # those that were compiled
    single_use: SingleUse = attrs.field(factory=SingleUse)
    compiled: list[CompiledTrace] = attrs.field(factory=list)
    """All traces that were compiled, those of dropped entries included, for `save`."""
    callees: Callees | None = None  # of functions that run natively
    _lock: Any = attrs.field(factory=threading.Lock)

    @classmethod
    def of(cls, target: Root, options: Options, owner: type | None = None) -> Region:
        pool = pool_of(target, options, owner)
        region = cls(pool, pool.options, _place(pool, None))
        pool.users.add(region)
        return region

    # -- places ------------------------------------------------------------------------------------
    def place_of(self, point: Point) -> CompiledTarget:
        place = self.places.get(point)
        if place is None:
            with self._lock:
                place = self.places.setdefault(point, _place(self.pool, point))
        return place

    def under_modes(self, place: CompiledTarget) -> CompiledTarget:
        """Return the place of the same target for calls under function modes."""
        with self._lock:
            if not place.under_modes:
                target = place.target
                point = None if isinstance(target, Root) else target.point
                place.under_modes.append(_place(self.pool, point, under_modes=True))
            return place.under_modes[0]

    def all_places(self) -> list[CompiledTarget]:
        places = [self.root, *self.places.values()]
        return [each for place in places for each in (place, *place.under_modes)]

    def refuses_breaks(self, place: CompiledTarget) -> bool:
        """Return True where a break is an error: `fullgraph` promises one graph. What comes after
        the start does not raise it: the effects are done."""
        return self.options.fullgraph and isinstance(place.target, Root)

    # -- entries -----------------------------------------------------------------------------------
    def key_of(self, place: CompiledTarget, state: FlatState) -> Hashable:
        """Return the key of the entries that may serve a state, where locals end observably."""
        ending = observed_ends(state, place.shared.ending)
        return (self.options.key, ending) if ending else self.options.key

    def note_file(self, entry: Entry) -> None:
        """Note where the trace of an entry is, if traces are kept."""
        data = entry.data
        if self.options.cache:
            made = CompiledTrace(str(data.target.name), data.file, data.cache_notes)
            self.compiled.append(made)

    def expect(self, place: CompiledTarget, key: Hashable, entry: Entry) -> None:
        """Note the entry that a call uses, which the next one tries first."""
        if entry.data.serves_one_call:
            place.cache.remove(entry)
            place.served = (entry,)
            return
        if place is not self.root:
            if key == self.options.key:
                place.use(key, entry)
            else:
                place.newest[key] = entry
            return

        # the wrapper tries it, unless calls alternate among several: then the cache is faster
        repeated = place.recent is entry or len(place.cache.entries(key)) <= 2
        place.recent = entry
        self.newest[0] = entry if repeated and stance() is DEFAULT_STANCE else NOTHING
        if place is not self.root:  # reset meanwhile by another thread
            self.newest[0] = NOTHING

    def forget_newest(self) -> None:
        """Let each call of the wrapper be looked up until an entry is expected again."""
        self.newest[0] = NOTHING

    def forget_call(self, site: CallSite) -> None:
        """Drop the continuations inside of a call that is native from now on."""
        with self._lock:
            for point in [*self.places]:
                if is_inside(point, site):
                    self.places.pop(point, None)

    # -- changes from outside ----------------------------------------------------------------------
    def follow_settings(self) -> None:
        """Compile by the settings of torch as they are now; what was compiled stays."""
        if (options := with_settings(self.options)) is self.options:
            return

        with self._lock:
            self.options = options
            self.pool = with_options(self.pool, options)
            self.pool.users.add(self)
            for place in self.all_places():
                point = None if isinstance(place.target, Root) else place.target.point
                is_under = place is not (self.root if point is None else self.places.get(point))
                place.shared = self.pool.place_of(point, under_modes=is_under)
                _limit(place.cache, options)

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
        self.compiled.clear()
        COMPILATIONS.drop(self)


def _place(pool: EntryPool, point: Point | None, *, under_modes: bool = False) -> CompiledTarget:
    shared = pool.place_of(point, under_modes=under_modes)
    cache = Cache(shared.target.name)
    _limit(cache, pool.options)
    return CompiledTarget(shared, shared.target, cache)


def _limit(cache: Cache, options: Options) -> None:
    raises = options.fullgraph or setting("fail_on_recompile_limit_hit")
    cache.limit, cache.total_limit = options.recompile_limit, options.total_limit
    cache.warn = None if raises else defer_warning
