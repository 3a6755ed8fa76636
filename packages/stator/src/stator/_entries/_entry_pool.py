"""Entries that compilations of one code share: of one function, or of the modules of one class,
with equal options.

A compiled object has a cache of its own, so its limits, its report and what it does on a hit
concern no other one. Where its cache has no entry for a call, it takes one from the pool whose
guards hold, before it traces:

    # the first call of the first one compiles
    blocks = [stator.compile(block) for block in model.blocks]

Guards cover everything that may differ between two objects, as a function that is no attribute of
its module is an argument of its entries: closure and code are read from it. What a pool has learned
about sizes and native calls holds for all.

Pools are found by code, class and options. Those that no compiled object uses any more are kept for
the next one (a function that is decorated on every call of another), as long as they are among the
latest `POOLS_KEPT`.
"""

from __future__ import annotations

import threading
import weakref
from collections import OrderedDict, deque
from collections.abc import Hashable, Iterable, Iterator, Sequence
from types import CodeType
from typing import TYPE_CHECKING, Any, Protocol

import attrs
from stator_bytecode import CallSite, Point, Site
from stator_guards import Entry, Source

from stator._capture._dynamic import Shapes
from stator._program._call_history import CallHistory, is_inside
from stator._program._raising_site import RaisingSite
from stator._program._target import Continuation, Root, Target
from stator._settings._options import Options
from stator.errors import Unsupported

if TYPE_CHECKING:
    from weakref import ReferenceType

POOLS_KEPT = 64
"""Pools without a compiled object that are kept, with at most `recompile_limit` entries per place
each."""
PATIENCE = 20_000
"""Instructions without a graph operation after which a loop runs natively, unless one graph was
asked for."""


@attrs.define(eq=False)
class PooledPlace:
    """A target, the shapes seen there, and its entries: the latest ones, and those that somebody
    uses."""

    target: Target
    shapes: Shapes
    latest: deque[Entry]
    refused: list[Unsupported] = attrs.field(factory=list)
    ending: tuple[int, ...] = ()
    """The positions in a state of locals whose end a trace took for unobservable."""
    entries: tuple[ReferenceType[Entry], ...] = ()
    ran_eagerly: bool = False
    """A first call has run eagerly, as the stance `eager_then_compile` requires."""

    @classmethod
    def of(cls, target: Target, options: Options, changing: set[tuple[int, Source]]) -> PooledPlace:
        patience = float("inf") if options.fullgraph else PATIENCE
        shapes = Shapes(
            options.dynamic,
            options.captures_data,
            options.fullgraph,
            patience,
            static_types=options.static_types,
            changing=changing,
        )
        return cls(target, shapes, deque(maxlen=options.recompile_limit))

    def lookup(self, key: Hashable, state: Sequence[object]) -> Entry | None:
        """Return an entry whose guards hold, latest first."""
        for entry in self._living():
            if entry.backend_key == key and entry.guards.check(*state):
                return entry
        return None

    def add(self, entry: Entry) -> None:
        """Let others use an entry, unless it is to be used once."""
        if not entry.data.serves_one_call:
            usable = (other for other in self._living() if not other.guards.is_gone)
            self.entries = (weakref.ref(entry), *map(weakref.ref, usable))
            self.latest.append(entry)

    def add_ending(self, ended: Iterable[int]) -> None:
        """Note the locals that a trace found to end where it can be observed."""
        self.ending = tuple(sorted({*self.ending, *ended}))

    def _living(self) -> Iterator[Entry]:
        return (entry for reference in self.entries if (entry := reference()) is not None)


class Pooling(Protocol):
    """A compiled object, as its pool needs it."""

    def forget_call(self, site: CallSite) -> None: ...


@attrs.define(eq=False)
class EntryPool:
    """The places of one code under one set of options, by the Point of a continuation (None: its
    start)."""

    root: Root
    options: Options
    key: tuple[Hashable, ...] | None = None
    """The key by which others find the pool; None: nobody does."""
    places: dict[tuple[Point | None, bool], PooledPlace] = attrs.field(factory=dict)
    sites: dict[tuple[Point, str], Site] = attrs.field(factory=dict)
    """Sites by their Point and the exception that the program raises there."""
    missed: list[Unsupported] = attrs.field(factory=list)
    """Exceptions that were expected and did not come."""
    history: CallHistory = attrs.field(factory=CallHistory)
    changing: set[tuple[int, Source]] = attrs.field(factory=set)
    """See `Shapes.changing`."""
    users: weakref.WeakSet[Pooling] = attrs.field(factory=weakref.WeakSet)
    wrappers: dict[Hashable, CodeType] = attrs.field(factory=dict)
    """Code of wrappers, by the defaults that the function has."""
    lock: Any = attrs.field(factory=threading.RLock)
    """Held while an entry is looked up and made, so that two objects do not make the same one."""

    def place_of(self, point: Point | None, *, under_modes: bool = False) -> PooledPlace:
        """Return the place of a continuation, or of the start; calls under function modes have
        places of their own."""
        if (found := self.places.get((point, under_modes))) is None:
            target = self.root if point is None else Continuation(point)
            made = PooledPlace.of(target, self.options, self.changing)
            found = self.places.setdefault((point, under_modes), made)
        return found

    def site_of(self, point: Point, raises: str = "") -> Site:
        """Return the site of a break, or of an exception that the program raises there."""
        if (found := self.sites.get((point, raises))) is None:
            fullgraph = self.options.fullgraph
            made = (
                RaisingSite(point, raises, self.missed, fullgraph=fullgraph)
                if raises
                else Site(point)
            )
            found = self.sites.setdefault((point, raises), made)
        return found

    def count_ends(self, sites: Iterable[CallSite]) -> None:
        """Count an end of each call; continuations in a call that is native from now on are
        dropped."""
        for site in sites:
            if self.history.count_end(site):
                self.forget_call(site)

    def forget_call(self, site: CallSite) -> None:
        """Drop the continuations inside of a call, here and in all objects."""
        for key in [*self.places]:
            if key[0] is not None and is_inside(key[0], site):
                self.places.pop(key, None)
        for user in [*self.users]:
            user.forget_call(site)


class _Pools:
    """All pools of the process by their keys, and the latest ones."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.known: weakref.WeakValueDictionary[Hashable, EntryPool] = weakref.WeakValueDictionary()
        self.latest: OrderedDict[Hashable, EntryPool] = OrderedDict()

    def find(self, root: Root, options: Options, key: tuple[Hashable, ...]) -> EntryPool:
        """Return the pool of a key, made if there is none."""
        with self.lock:
            if (pool := self.known.get(key)) is None:
                pool = self.known[key] = EntryPool(root, options, key)
            self.latest[key] = pool
            self.latest.move_to_end(key)
            if len(self.latest) > POOLS_KEPT:
                self.latest.popitem(last=False)
            return pool

    def forget(self, pool: EntryPool) -> None:
        """Let nobody find a pool again."""
        with self.lock:
            if self.known.get(pool.key) is pool:
                del self.known[pool.key]

    def clear(self) -> None:
        with self.lock:
            self.known.clear()
            self.latest.clear()


_pools = _Pools()


def pool_of(root: Root, options: Options, owner: type | None = None) -> EntryPool:
    """Return the pool of a function, or of the modules of a class, with these options.

    Options that cannot be compared, and `isolate_recompiles`, have a new one for each compilation.
    """
    if options.sharing is None:
        return EntryPool(root, options)
    cls = None if owner is None else weakref.ref(owner)
    return _pools.find(root, options, (*root.identity, cls, root.name, options.sharing))


def renewed(pool: EntryPool) -> EntryPool:
    """Return a pool for what `pool` is for that has none of its entries: a new one, or that of an
    object which was reset before."""
    if pool.key is None:
        return EntryPool(pool.root, pool.options)
    _pools.forget(pool)
    return _pools.find(pool.root, pool.options, pool.key)


def with_options(pool: EntryPool, options: Options) -> EntryPool:
    """Return the pool for what `pool` is for, under other options."""
    if pool.key is None or options.sharing is None:
        return EntryPool(pool.root, options)
    return _pools.find(pool.root, options, (*pool.key[:-1], options.sharing))


def forget_pools() -> None:
    """Drop all pools; compiled objects keep theirs until they are reset."""
    _pools.clear()


def release_pools_in_child() -> None:
    """Release locks that another thread held when this process was forked."""
    _pools.lock = threading.Lock()
