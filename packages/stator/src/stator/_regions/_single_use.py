"""Entries that serve one call only: their graphs run as they are, and no compiler gets them.

    if not told:                       # guard: told is empty
        told.append(True)              # effect, after which the guard does not hold
        warnings.warn("only once")

The first call of this leaves by an entry that no other call takes. Such are an entry whose own
effects make its guards fail, one that ends at a break whose cause is gone afterwards
(`Unsupported.once`), and one for the continuation of such an entry, which later calls reach in
another trace. So is the first continuation after the call has made the guards of its first entry
fail, which may have been done in a continuation (with a lock held) or natively. They are dropped
when they have run; the next call compiles. Each cause counts once per place: what happens in every
call, as a counter or a cache that is cleared, is compiled when it happens again.

Only guards on what outlives the call count: the next call brings a dict of its own.
"""

from collections.abc import Callable, Hashable, Iterable, Iterator
from threading import get_ident
from types import FunctionType, ModuleType
from typing import Any, Protocol

import attrs
import torch
from stator_backends import spec_of
from stator_bytecode import FlatState, Goto, Point, StepRunner, passed_over
from stator_guards import CapturedSource, Entry, Guard, ParameterSource
from stator_variables import is_of_number

from stator._capture._trace import TraceResult
from stator._program._target import Continuation, Root, Target
from stator._program._traceback import OWN_CODES
from stator._regions._compiled_target import CompiledTarget
from stator._settings._options import Options

_OUTDATED, _BEHIND = "outdated", "behind"
"""The causes, beside the line of a break: effects that make guards fail, and the continuation of an
entry of this kind."""
_LASTING = (torch.nn.Module, torch.optim.Optimizer, type, ModuleType, FunctionType)
_PASSING = (dict, list, set, tuple, torch.Tensor)


def _of_lasting(guards: Iterable[Guard], target: Target, state: FlatState) -> list[Guard]:
    """Return the guards on objects that are likely to be there in the next call."""
    named = dict(zip(target.parameters, state, strict=True))
    return [guard for guard in guards if _is_of_lasting(guard, isinstance(target, Root), named)]


def _is_of_lasting(guard: Guard, is_start: bool, named: dict[str, object]) -> bool:
    if guard.source is None:
        return False
    *_, first = guard.source.steps()
    if isinstance(first, CapturedSource):
        return True
    if not isinstance(first, ParameterSource):
        return False
    value = named[first.parameter]
    if isinstance(value, _LASTING):
        return True
    # of a continuation they are locals
    return is_start and not isinstance(value, _PASSING)


@attrs.define(eq=False)
class SingleUse:
    """The points that calls reached behind an entry which serves no other call, until an entry was
    made there."""

    points: set[Point] = attrs.field(factory=set)
    # for each thread, the entry of the start that its call made
    made: dict[int, Entry] = attrs.field(factory=dict)

    def marked(
        self, traced: TraceResult, place: CompiledTarget, options: Options, state: FlatState
    ) -> TraceResult:
        """Return the trace, with a mark if its entry is to serve one call only."""
        outdated = tuple(_of_lasting(traced.outdated, place.target, state))
        traced = attrs.evolve(traced, outdated=outdated)
        # a checkpoint around the call compares what the first run and the next one save
        is_repeated = torch._C._autograd._top_saved_tensors_default_hooks(True) is not None
        compiles = spec_of(options.backend).compiles and not is_repeated
        causes = {*self._causes(traced, place.target, compiles)} - place.passed
        place.passed |= causes
        return attrs.evolve(traced, serves_one_call=True) if causes else traced

    def _causes(self, traced: TraceResult, target: Target, compiles: bool) -> Iterator[Hashable]:
        if (reason := traced.reason) is not None and reason.once:
            yield reason.where
        if compiles and traced.outdated:
            yield _OUTDATED
        if compiles and isinstance(target, Continuation) and target.point in self.points:
            self.points.discard(target.point)
            yield _BEHIND

    def note(self, entry: Entry, traced: TraceResult) -> None:
        """Note in an entry how it is to be used."""
        entry.data.serves_one_call = traced.serves_one_call
        entry.data.leads_elsewhere = _leads_elsewhere(traced)

    def run(self, entry: Entry, state: FlatState) -> Any:
        """Run an entry that serves no other call."""
        result = entry.run(*state)
        if type(result) is Goto and entry.data.leads_elsewhere:
            return Goto(_NotedSite(result.site, self.points), result.take())
        return result

    def begin(self, entry: Entry) -> None:
        """Note that the call of this thread made its first entry, and goes on behind a break."""
        self.made[get_ident()] = entry

    def dispatch(self, runner: "Dispatching", state: FlatState) -> "Callable[..., Any]":
        """Return what dispatches in a call: where it made its first entry, its continuations are
        observed."""
        entry = self.made.pop(get_ident(), None) if self.made else None
        if entry is None or not spec_of(runner.region.options.backend).compiles:
            return runner.dispatch
        return FirstCall(runner, self.points, state, entry).dispatch


class PlacesOfRegion(Protocol):
    """A region, as a first call needs it."""

    @property
    def options(self) -> Options: ...

    @property
    def places(self) -> dict[Point, CompiledTarget]: ...


class Dispatching(Protocol):
    """The runner of a region, as a first call needs it."""

    @property
    def region(self) -> PlacesOfRegion: ...

    def dispatch(self, point: Point, state: list[Any]) -> object: ...


@attrs.define(eq=False)
class FirstCall:
    """A call whose first entry, made by it, is `entry`, until that does not serve the same call
    again."""

    runner: Dispatching
    points: set[Point]
    state: FlatState
    entry: Entry | None

    def dispatch(self, point: Point, state: list[Any]) -> object:
        """Run a continuation. If none was made there yet, and the program has changed what the
        first entry relies on, it serves this call only."""
        place = self.runner.region.places.get(point)
        if place is None or not place.cache.all_entries():
            self._note(point)
        return self.runner.dispatch(point, state)

    def _note(self, point: Point) -> None:
        # to evaluate guards would call a function mode that the program has entered meanwhile
        if (entry := self.entry) is None or torch._C._len_torch_function_stack():
            return
        if entry.guards.check(*self.state):
            return
        failing = [failure.guard for failure in entry.guards.explain(*self.state)]
        lasting = _of_lasting(failing, entry.data.target, self.state)
        if not all(map(is_of_number, lasting)):
            self.points.add(point)
            self.entry = None


def _leads_elsewhere(traced: TraceResult) -> bool:
    """Return True if later calls do not come to the continuation of a trace by its entry. They may
    if nothing but numbers has changed, which are symbolic then."""
    is_over = traced.reason is not None and traced.reason.once
    return is_over or not all(map(is_of_number, traced.outdated))


@attrs.frozen(eq=False)
class _NotedSite:
    """A site of which the Point after it is noted."""

    site: StepRunner
    points: set[Point]

    def step(self, *state: Any) -> Any:
        try:
            made = [self.site.step(*state)]
        finally:
            # like what was made, it may hold an exception whose traceback holds this frame
            del state
        self.points.add(made[0][0])
        return made.pop()


OWN_CODES.update(passed_over(SingleUse.run, FirstCall.dispatch, _NotedSite.step))
