"""The source of traces: the program, or the cache on disk if that is switched on."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

import attrs
from stator_bytecode import FlatState
from stator_guards import Entry

from stator._capture._trace import TraceResult, trace
from stator._entries._entry import make_entry
from stator._program._target import Target
from stator._settings._options import Options

if TYPE_CHECKING:
    from stator_variables import Policy


class TraceSource(Protocol):
    """Gives the result of a trace for one call, and makes the entry of it."""

    def traced(self, state: FlatState, policy: Policy) -> TraceResult: ...

    def entry(self, traced: TraceResult, *facts: Any) -> Entry: ...

    def end(self) -> None:
        """End the work on the entry, whether it was made or not."""


@attrs.frozen(eq=False)
class NoLookup:
    """Stands for the lookup where the cache is off."""

    target: Target
    options: Options

    def traced(self, state: FlatState, policy: Policy) -> TraceResult:
        return trace(self.target, state, self.options, policy)

    def entry(self, traced: TraceResult, *facts: Any) -> Entry:
        return make_entry(traced, *facts)

    def end(self) -> None:
        pass


def lookup(target: Target, state: FlatState, options: Options, policy: Policy) -> TraceSource:
    """Return the lookup for a call."""
    if options.shipped is not None:
        return options.shipped.source(target, state, options, policy)  # type: ignore[no-any-return]
    if not options.cache:
        return NoLookup(target, options)

    from stator._disk_cache._disk_cache import lookup_for  # only where it is used

    return lookup_for(target, state, options, policy)
