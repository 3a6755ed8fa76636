"""Calls that are not worth tracing: the function broke repeatedly, and no graph gained an operation
from it.

The evidence is counted per call site (caller, instruction, callee), while tracing and in the first
runs of an entry:

- `contributing`: an operator of a graph was recorded in the function, or below it. Such a call is
  always traced.
- `breaks`: traces that broke in the function or below it.
- `ends`: times that it came to its end after a break. One that broke four times, and came to its
  end twice without an operator, is called natively from then on; so is what is left of it where it
  is under way (`stator_bytecode.InnermostFrames`).
- One that breaks many times before its first end is finished natively at once, if none of its
  locals is a tensor or a module: drawing a figure breaks a thousand times.

Time plays no part, so equal programs are compiled equally. Other code in the place of caller or
callee is another call site, whose count begins at zero.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any
from weakref import ReferenceType, ref

import attrs
import torch
from stator_bytecode import CallSite, Code, Frame, Point, call_sites, passed_over

from stator._program._traceback import OWN_CODES

if TYPE_CHECKING:
    from stator_guards import Entry

BREAKS = 4
ENDS = 2
BREAKS_AT_ONCE = 16


@attrs.frozen
class CallEvidence:
    """The evidence of one trace. `finished` are calls that were under way when it began."""

    contributing: frozenset[CallSite] = frozenset()
    broken: tuple[CallSite, ...] = ()
    finished: tuple[CallSite, ...] = ()
    enters_program: bool = False
    """A function of the program was traced in another."""
    entered: frozenset[Code] = frozenset()
    """The code of the functions that were called."""


def visible_calls(frames: Sequence[Any]) -> list[tuple[int, CallSite]]:
    """Return the number of each called frame and its call site; app-level frames represent C and
    have none."""
    numbered = enumerate(call_sites(frames), 1)
    return [
        (depth, site)
        for depth, site in numbered
        if not frames[depth].hidden and not frames[depth - 1].hidden
    ]


def is_inside(point: Point, site: CallSite) -> bool:
    """Return True for a continuation with a call of this site under way."""
    return any(site == other for _, other in visible_calls(point.frames))


@attrs.frozen(eq=False)
class CallsUnderWay:
    """The called frames at the start of a trace, each with its call site: callers move on."""

    calls: tuple[tuple[Frame, CallSite], ...]

    @classmethod
    def of(cls, frames: Sequence[Frame]) -> CallsUnderWay:
        return cls(tuple((frames[depth], site) for depth, site in visible_calls(frames)))

    def finished(self, frames: Sequence[Frame]) -> list[CallSite]:
        """Return the calls whose frames are no longer among `frames`."""
        left = {id(frame) for frame in frames}
        return [site for frame, site in self.calls if id(frame) not in left]


@attrs.define(eq=False)
class CallHistory:
    """The calls of one region. `native` is replaced, never changed: a trace keeps the one that it
    began with."""

    native: frozenset[CallSite] = frozenset()
    contributing: set[CallSite] = attrs.field(factory=set)
    breaks: Counter[CallSite] = attrs.field(factory=Counter)
    ends: Counter[CallSite] = attrs.field(factory=Counter)
    enters_program: bool = False

    def record(self, evidence: CallEvidence) -> None:
        self.contributing |= evidence.contributing
        self.breaks.update(evidence.broken)
        self.enters_program |= evidence.enters_program

    def suspected(self, sites: Iterable[CallSite]) -> list[CallSite]:
        """Return the calls that broke often enough and have contributed nothing yet."""
        return [site for site in sites if self._is_suspected(site)]

    def _is_suspected(self, site: CallSite) -> bool:
        return (
            self.breaks[site] >= BREAKS
            and site not in self.contributing
            and site not in self.native
        )

    def count_end(self, site: CallSite) -> bool:
        """Return True if the call is native from now on, after one more end without an operator."""
        self.ends[site] += 1
        if self.ends[site] < ENDS or not self._is_suspected(site):
            return False
        self.native |= {site}
        return True

    def first_native(self, point: Point, state: Sequence[object]) -> int | None:
        """Return the number of the outermost frame that is to be finished natively."""
        for depth, site in visible_calls(point.frames):
            if site not in self.native and self._breaks_at_once(point, depth, site, state):
                self.native |= {site}
            if site in self.native:
                return depth
        return None

    def _breaks_at_once(
        self, point: Point, depth: int, site: CallSite, state: Sequence[object]
    ) -> bool:
        if not self._is_suspected(site) or self.breaks[site] < BREAKS_AT_ONCE:
            return False
        places = [place for place in point.places[depth].slots if place is not None]
        return not any(_is_of_torch(state[place]) for place in places)


def _is_of_torch(value: object) -> bool:
    return isinstance(value, torch.Tensor | torch.nn.Module)


@attrs.define(eq=False)
class FirstRuns:
    """Takes the place of `entry.run` until the entry has run often enough to decide; `count` gets
    the entry, its pool, and how many of these runs are left.

    Both own this object, so it refers to them weakly; while the entry runs they exist.
    """

    entry: ReferenceType[Entry]
    pool: ReferenceType[Any]
    run: Callable[..., Any]
    count: Callable[[Entry, Any, int], None]
    left: int

    @classmethod
    def install(
        cls, entry: Entry, pool: object, count: Callable[[Entry, Any, int], None], runs: int
    ) -> None:
        entry.run = cls(ref(entry), ref(pool), entry.run, count, runs)

    def __call__(self, *state: object) -> Any:
        entry, pool = self.entry(), self.pool()
        self.left -= 1
        if entry is not None and pool is not None:
            while not self.left and entry.run is not self.run:
                entry.run = (
                    self.run
                )  # a thread that has compiled the graph may replace it meanwhile
            self.count(entry, pool, self.left)
        return self.run(*state)


OWN_CODES.update(passed_over(FirstRuns.__call__))
