"""The entries of one compiled object for one target, and which of them is expected next."""

from __future__ import annotations

from collections.abc import Hashable

import attrs
from stator_bytecode import Unsupported
from stator_guards import Cache, Entry

from stator._capture._compile_event import FrameIds
from stator._entries._entry_pool import PooledPlace
from stator._program._target import Target

MOST_ROUNDS = 64
"""The rounds of a loop that are counted."""

LAZY = "uninitialized-parameter"
"""The reason of a break at the first call of a lazy module."""
LAZY_CALLS = 4
"""The number of such calls that run eagerly as a whole: an entry for one is of no use to the next,
which finds other classes and parameters."""

_Turn = tuple[Entry, Entry, int]


@attrs.define(eq=False)
class CompiledTarget:
    """The entries of one compiled object for one target."""

    shared: PooledPlace
    target: Target
    cache: Cache
    # for each key the entry used last
    newest: dict[Hashable, Entry] = attrs.field(factory=dict)
    # for each value of `last`, and for each entry, the one that followed
    following: dict[_Turn | Entry, Entry] = attrs.field(factory=dict)
    # where several take turns, as in loops: the one used last, how often, and the one before it
    last: _Turn | None = None
    # at most one: the same, for calls under function modes
    under_modes: list[CompiledTarget] = attrs.field(factory=list)
    recent: Entry | None = None  # the entry used last
    # causes that were to come only once, see `_single_use`
    passed: set[Hashable] = attrs.field(factory=set)
    served: tuple[Entry, ...] = ()  # for reports: the last entry, if it served one call only
    lazy_calls: int = 0  # calls that ran eagerly because they initialize lazy modules
    ids: FrameIds = attrs.field(factory=FrameIds)

    def initializes(self, reason: Unsupported | None) -> bool:
        """Return True if the trace ended where a lazy module makes its parameters, and count the
        call."""
        if reason is None or reason.reason != LAZY or self.lazy_calls >= LAZY_CALLS:
            return False
        self.lazy_calls += 1
        return True

    def expected(self, last: _Turn) -> Entry | None:
        """Return the entry that followed `last`, or at least its entry, so far."""
        return self.following.get(last) or self.following.get(last[1])

    def use(self, key: Hashable, entry: Entry) -> None:
        """Note that another entry than the expected one is used: if there are several, they take
        turns."""
        used = self.newest.get(key, entry)
        self.newest[key] = entry
        if self.last is None and used is entry:
            return

        last = self.last or (used, used, 1)
        self.following[last[1]] = entry
        self.follow(last, entry)

    def forget_dropped(self) -> None:
        """Expect no entry that the cache has no longer. Other threads use the tables meanwhile."""
        kept = set(self.cache.all_entries())
        latest = self.last
        if latest is not None and not kept.issuperset(latest[:2]):
            self.last = None
        newest, following = self.newest.copy(), self.following.copy()
        self.newest = {key: entry for key, entry in newest.items() if entry in kept}
        self.following = {
            last: entry
            for last, entry in following.items()
            if kept.issuperset((entry, *(last[:2] if isinstance(last, tuple) else (last,))))
        }

    def follow(self, last: _Turn, entry: Entry) -> None:
        """Expect `entry` after `last` from now on: a loop that has as many rounds each time ends
        where it is expected to."""
        self.following[last] = entry
        before, newest, rounds = last
        if entry is not newest:
            self.last = newest, entry, 1
        elif rounds < MOST_ROUNDS:
            self.last = before, entry, rounds + 1
