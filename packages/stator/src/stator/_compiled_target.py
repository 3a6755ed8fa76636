"""The entries of one compiled object for one target, and which of them is expected next."""

from __future__ import annotations

from collections.abc import Hashable

import attrs
from stator_guards import Cache, Entry

from stator._compile_event import FrameIds
from stator._entry_pool import PooledPlace
from stator._target import Target
from stator.errors import SourceSpan

MOST_ROUNDS = 64
"""The rounds of a loop that are counted."""


@attrs.define(eq=False)
class CompiledTarget:
    """The entries of one compiled object for one target."""

    shared: PooledPlace
    target: Target
    cache: Cache
    # for each key the entry used last; for each value of `last` the one that followed
    newest: dict[Hashable, Entry] = attrs.field(factory=dict)
    # where several take turns, as in loops: the one used last, how often, and the one before it
    last: tuple[Entry, Entry, int] | None = None
    # at most one: the same, for calls under function modes
    under_modes: list[CompiledTarget] = attrs.field(factory=list)
    recent: Entry | None = None  # the entry used last
    passed: set[SourceSpan] = attrs.field(factory=set)  # breaks that were to come only once
    lazy_calls: int = 0  # calls that ran eagerly because they initialize lazy modules
    ids: FrameIds = attrs.field(factory=FrameIds)

    def follow(self, last: tuple[Entry, Entry, int], entry: Entry) -> None:
        """Expect `entry` after `last` from now on: a loop that has as many rounds each time ends
        where it is expected to."""
        self.newest[last] = entry
        before, newest, rounds = last
        if entry is not newest:
            self.last = newest, entry, 1
        elif rounds < MOST_ROUNDS:
            self.last = before, entry, rounds + 1
