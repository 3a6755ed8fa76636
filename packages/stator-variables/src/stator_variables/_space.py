"""State of one trace: graph, guards, heap, journal, and where the program is.

Every function of the data model takes it first, as `t`.
"""

import operator
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, nullcontext
from functools import partial
from typing import Any

import torch
from attrs import Factory, define
from stator_bytecode import VALUE, Frame, Instruction, Invoke, Result, Then, after
from stator_bytecode.errors import NOWHERE, SourceSpan, Unsupported
from stator_guards import (
    AllDistinct,
    CallSource,
    CapturedSource,
    FunctionPartSource,
    Guard,
    InstanceDictSource,
    Kind,
    Length,
    LongerThan,
    ParameterSource,
    PartSource,
    SameObject,
    ShapeExpression,
    Source,
    Truth,
)

from stator_variables._operations import Operations
from stator_variables._runtime._finalizers import (
    are_released_unobserved,
    has_observable_end,
    have_unobservable_ends,
    may_have_observable_end,
    stores,
)
from stator_variables._runtime._support import is_new_in_each_call
from stator_variables._trace._drawn import Streams, is_drawn
from stator_variables._trace._graph import GraphRecorder
from stator_variables._trace._journal import Journal
from stator_variables._trace._late_import import LateImport
from stator_variables._trace._memory import InputMemory
from stator_variables._trace._policy import Policy
from stator_variables._tracker import MISSING, VariableTracker, is_pending, pending

HOLDING = frozenset({"content", "items", "known", "members"})
"""Fields of trackers with what these hold."""


@define(eq=False)
class Progress:
    """The progress of the trace, by which loops without operations are detected."""

    begun: int = 0  # instructions
    steps: int = 0  # since the graph was last seen to grow
    # mark of the graph and frames when patience was last lost
    waited: tuple[Any, list[Frame]] | None = None
    looping: int = 0  # the depth of the frame whose loop was given up


@define(eq=False)
class UserHashResults:
    """The results of `__eq__` and `__hash__` of the program on keys: see `_hashing`."""

    results: Any = None  # in the step that is being done
    # all that ever were, with their operands
    known: dict[Any, Any] = Factory(dict)
    given: list[Any] = Factory(list)  # the results that hold, in their order
    # keys that may be identities, by their place
    numbers: dict[Any, dict[Any, None]] = Factory(dict)


@define(eq=False)
class CachedCalls:
    """Calls of functions with a cache: the entry makes them after the graph."""

    calls: list[Any] = Factory(list)
    trial: dict[Any, Any] | None = None  # while such a call is tried: what others gave inside
    # numbers of results that are others for other symbolic arguments
    varying: set[Source] = Factory(set)


@define(eq=False)
class InferenceModes:
    entered: list[Any] = Factory(list)  # while tracing, outermost first
    ever: bool = False  # some were
    # those that the end of the graph left, for the entry to enter
    left: list[Any] = Factory(list)


@define(eq=False)
class Overrides:
    """The overrides by `__torch_function__` that are active for functions of torch."""

    modes: tuple[Any, ...] = ()  # entered while tracing, the innermost last
    depth: int = 0  # how many of them are under way
    subclasses: bool = False  # one of tensors was met
    off: bool = Factory(lambda: not torch._C._is_torch_function_enabled())  # none is


@define(eq=False)
class Space(Operations):
    """See the module.

    `Operations` declares what is done with values; here is what a trace consists of.
    """

    graph: GraphRecorder
    handlers: Mapping[Any, Any]
    policy: Policy = Factory(Policy)
    journal: Journal = Factory(Journal)
    guards: dict[Any, Guard] = Factory(dict)
    heap: dict[int, VariableTracker] = Factory(dict)
    # the trackers of `heap`, by the first path to each
    by_source: dict[Source, VariableTracker] = Factory(dict)
    aliases: list[tuple[Any, Source, Source]] = Factory(list)
    # ids of unread trackers that the entry passes on
    escaped: set[int] = Factory(set)
    alive: list[Any] = Factory(list)  # keeps identities in `heap` valid
    # existing trackers with effects, by id, first changed first
    changed: dict[int, Any] = Factory(dict)
    # existing objects taken for distinct ones, by identity
    assumed_distinct: dict[int, Any] = Factory(dict)
    # new containers and objects whose `id` was read
    named: list[Any] = Factory(list)
    # found in what exists: source, guard, value
    present: list[tuple[Source, Any, Any]] = Factory(list)
    representing: list[Any] = Factory(list)  # containers whose repr is under way
    # transforms of torch.func that are under way, outermost first
    levels: list[str] = Factory(list)
    # settings written while tracing -> their value at the start
    modes: dict[Any, Any] = Factory(dict)
    scripted: int = 0  # calls of scripted functions that are under way
    makes_leaves: bool = False  # `_tensors/_new_leaves.py`
    is_sealed: bool = False  # a compiler can take no further operator into the graph
    inference: InferenceModes = Factory(InferenceModes)
    # those that were made, or came as frame state
    generators: list[Any] = Factory(list)
    # of these, those whose code may see that they are closed
    cleaning_up: list[Any] = Factory(list)
    frame: Frame | None = None
    instruction: Instruction | None = None
    machine: Any = None
    progress: Progress = Factory(Progress)
    lookups: dict[Any, Any] = Factory(dict)  # class attribute lookups already guarded
    shared: dict[Any, Any] = Factory(dict)  # objects that equal requests are to share
    cached: CachedCalls = Factory(CachedCalls)
    late_import: LateImport | None = None  # at which the trace broke, to be made again behind it
    # lifetimes: docs/explanation/object-lifetime.md
    # ids: held by the frames alone, and their end is observable
    observable: set[int] = Factory(set)
    # by id the places of local values at the start
    local_places: dict[int, int] = Factory(dict)
    # of these places, those whose values died, by assumption unobserved
    ended_locals: set[int] = Factory(set)
    # what containers released in the step that is being done
    released: list[Any] = Factory(list)
    # what they released -> whether others may have
    assumed_unobserved: dict[Source, bool] = Factory(dict)
    # of what was released, what the stack alone may hold
    stack_only: list[Any] = Factory(list)
    # from the stack to that, by its identity
    paths: dict[int, list[Any]] = Factory(dict)
    # per open body: what was changed in it, and where
    touched: list[dict[int, Any]] = Factory(list)
    hooks: tuple[Any, ...] = ()  # calls that register hooks for gradients, or take them back
    differentiates: bool = False  # an operator of the graph is a backward
    has_reentrant: bool | None = None  # checkpoint, in the graph; None if it has no checkpoint
    warnings: tuple[Any, ...] = ()  # function, text, category, and where, of each that is given
    user_hashes: UserHashResults = Factory(UserHashResults)
    memory: InputMemory = Factory(InputMemory)
    # of jagged tensors, which share them: by the identity of the fake
    parts: dict[int, Any] = Factory(dict)
    overrides: Overrides = Factory(Overrides)
    streams: Streams = Factory(Streams)  # steps on streams of random numbers
    builders: Any = None  # a `BuilderTable` from outside
    # classes made while tracing, by the identity of what stands there
    made: dict[int, VariableTracker] = Factory(dict)

    # -- where the program is ----------------------------------------------------------------------
    def where(self) -> SourceSpan:
        """The user's line that is being interpreted: where that is in code of ours, the line that
        called it."""
        if self.frame is None or self.instruction is None:
            return NOWHERE
        if self.frame.hidden:
            visible = next(
                (frame for frame in reversed(self.machine.frames) if not frame.hidden), self.frame
            )
            return visible.code.span(visible.pc)
        return self.frame.code.span(self.instruction.index)

    def unsupported(
        self, reason: str, detail: str, hint: str = "", *, once: bool = False
    ) -> Unsupported:
        return Unsupported(reason, detail, hint, self.where(), once)

    def completed(self, result: Result, then: Then) -> Result:
        """Return a result that is completed by `then` (`SymbolicDomain.complete`), a frame's by the
        Machine."""
        if isinstance(result, Invoke) and result.then is VALUE:
            return Invoke(result.frame, then)
        return after(result, partial(self.machine.domain.complete, then))

    # -- guards ------------------------------------------------------------------------------------
    def guard(self, source: Source | None, kind: Kind) -> None:
        """Rely on a fact of an existing value; new values (no source) need none, nor what holds of
        one object."""
        if type(source) is CapturedSource and isinstance(kind, SameObject):
            source, kind = kind.other, type(kind)(source)  # which may be another the next time
        if source is None or (type(source) is CapturedSource and not kind.of_contents):
            return
        if (self.made and self.is_of_made(source)) or (
            self.makes_leaves and is_new_in_each_call(source)
        ):
            return
        if self.streams.steps and is_drawn(source):
            raise self.unsupported(
                "random-value", "a decision by a value that is drawn at random on each call"
            )
        key = (source, type(kind), kind.merge_key)
        if key not in self.guards:
            self.guards[key] = Guard(source, kind, self.where())
        if type(kind) is Length:
            self.guards.pop((source, LongerThan, None), None)  # which follows

    def rely(self, relation: ShapeExpression) -> None:
        """Rely on a relation of several values."""
        self.guards.setdefault(
            (None, type(relation), relation), Guard(None, relation, self.where())
        )

    def need_length(self, source: Source | None, length: int) -> None:
        """Rely on so many items at least."""
        key = (source, LongerThan, None)
        known: Any = None if key not in self.guards else self.guards[key].kind
        if (source, Length, None) not in self.guards and (
            known is None or known.length < length - 1
        ):
            self.guards.pop(key, None)
            self.guard(source, LongerThan(length - 1))

    def is_of_made(self, source: Source) -> bool:
        """Return True if a source reads from a class that was made while tracing: each call makes
        its own."""
        return any(
            isinstance(step, CapturedSource) and id(step.held.get()) in self.made
            for step in source.steps()
        )

    def allow_length(self, length: int, cls: type) -> None:
        """Reading a container guards each item: beyond some number a break costs less."""
        if length > self.policy.patience / 5:
            raise self.unsupported("long-container", f"all {length} items of a {cls.__name__}")

    @contextmanager
    def caller_modes(self) -> Iterator[None]:
        """Global modes as the caller has them: what a guard records has to be what the next call
        finds."""
        with self.inference.entered[0].outside() if self.inference.entered else nullcontext():
            here = {setting: setting.now for setting in self.modes}
            for setting, start in self.modes.items():
                setting.set(start)
            try:
                yield
            finally:
                for setting, now in here.items():
                    setting.set(now)

    # -- the heap ----------------------------------------------------------------------------------
    def track(
        self, real: object, source: Source, build: Callable[[], VariableTracker]
    ) -> VariableTracker:
        """The one tracker of an existing object, made lazily; a second path to it is kept for an
        aliasing guard. None leads to what stands in for a value, while a class of the program is
        written to."""
        if (found := self.heap.get(id(real))) is not None:
            known = source_of(found) if real_of(found) is real else None
            if known is not None and known is not source and known != source:
                self.aliases.append((found, known, source))
            return found
        lazy = self.heap[id(real)] = self.by_source[source] = pending(source, real, build)
        self.alive.append(real)
        return lazy

    def write(self, tracker: VariableTracker, **fields: Any) -> None:
        """A change of an object's state, replayed after the graph and undone by a rollback."""
        for name in HOLDING.intersection(fields):
            self._exchange(_parts(getattr(tracker, name)), _parts(fields[name]), tracker)
        self.journal.assign(tracker, **fields)
        self.mark_mutated(tracker)

    def _exchange(
        self, before: Iterable[Any], after: Iterable[Any], holder: VariableTracker
    ) -> None:
        if type(before) is type(after) is list and _is_part(before, after):
            return
        kept = set(map(id, after))
        for value in before:
            if id(value) not in kept:
                self.note_release(value, holder)

    def note_release(self, value: Any, holder: VariableTracker) -> None:
        """Note that `holder`, a container, releases `value`."""
        if (real := real_of(value)) is MISSING:
            self.released += [value] * bool(self.observable or self.local_places)
        elif is_pending(value) or may_have_observable_end(type(real)):
            source = source_of(value)
            if not self._is_held_where_found(source, real, holder):
                self._note_release(real, source, value, is_whole=type(source) is ParameterSource)

    def note_release_unread(
        self,
        read: Callable[..., Any],
        holder: VariableTracker,
        key: object,
        origin: Source | None = None,
    ) -> None:
        """The same of what nobody has read, `read(holder.real, key)`: a key without an origin stays
        as it is."""
        real, captured = (
            read(holder.real, key),
            CapturedSource("key", key, weak=type(key) is not frozenset),
        )
        whole = CapturedSource("holder", holder.real) if holder.source is None else holder.source
        source = CallSource(read, whole, origin or captured)
        self._note_release(real, source, self.heap.get(id(real)), is_whole=type(real) is list)

    def _note_release(
        self, real: Any, source: Source, tracker: VariableTracker | None, is_whole: bool
    ) -> None:
        if has_observable_end(real):
            self.observable.add(id(real))
            self.released.append(tracker)
        elif not (self.made and self.is_of_made(source)):
            self.assumed_unobserved[source] = is_whole or self.assumed_unobserved.get(source, False)

    def _is_held_where_found(self, source: Source, real: object, holder: VariableTracker) -> bool:
        """Return whether a value is still in the existing container that it was read from, and that
        is not `holder`.

        Then it does not die here: if that container is released as well, the value is checked
        there.
        """
        if not isinstance(source, PartSource):
            return False
        part = (
            source.whole
            if isinstance(source.whole, InstanceDictSource | FunctionPartSource)
            else None
        )
        found = self.by_source.get(source.whole if part is None else part.whole)
        if found is None or found is _owner(holder):
            return False
        owner = real_of(found)
        place = owner if part is None else part.read(owner)
        changed = {id(real_of(each)) for vt in self.changed.values() for each in (vt, _owner(vt))}
        return changed.isdisjoint((id(owner), id(place))) and stores(place, real)

    def has_relevant_end(self, tracker: Any) -> bool:
        """Return whether the end of an existing object has to be known: it may be observable, in
        some call."""
        number = id(real := real_of(tracker))
        is_local = number in self.local_places and (
            is_pending(tracker) or _may_be_observed(tracker, real)
        )
        return is_local or number in self.observable

    def changed_holders(self) -> list[Any]:
        """Return what was changed, but for local values: they may be held by what is being
        released."""
        return [
            vt for vt in self.changed.values() if id(real_of(_owner(vt))) not in self.local_places
        ]

    def end(self, tracker: VariableTracker) -> None:
        """Record that such an object dies here, or refuse it."""
        if tracker is None or id(real_of(tracker)) in self.observable:
            raise self.unsupported(
                "object-dropped", "the release of an object whose end may be observed"
            )
        self.ended_locals.add(self.local_places[id(real_of(tracker))])

    def mark_mutated(self, tracker: VariableTracker) -> None:
        """Note that an object was changed; one that existed before has effects to be replayed."""
        for touched in self.touched:
            touched.setdefault(id(tracker), (tracker, self.where()))
        if tracker.source is None or id(tracker) in self.changed:
            return
        self.journal.put(self.changed, id(tracker), tracker)

    def keep_apart(self, source: Source, tensor: torch.Tensor) -> None:
        """Record an input, which may share memory with another only where guards can detect it."""
        if (refused := self.memory.add(source, tensor)) is not None:
            raise self.unsupported(*refused)

    def finish_guards(self) -> list[Guard]:
        """All guards, with aliasing between paths that were really used and distinctness of what
        was mutated."""
        for tracker, known, other in self.aliases:
            if not is_pending(tracker) or id(tracker) in self.escaped:
                self.guard(other, SameObject(known))
        for source, kept, tracker in self.present:
            if is_pending(tracker):  # else what was read of the value is guarded through the dict
                self.guard(source, kept)
        self._guard_distinctness()
        self._guard_releases()
        for fact in self.memory.facts():
            if not self.graph.is_pure:
                self.guard(fact, Truth(True))
        for fact in self.memory.facts_of_copies():
            self.guard(fact, Truth(True))
        return list(self.guards.values())

    def _guard_releases(self) -> None:
        """Guard that the end of objects which containers release is unobservable.

        Where locals die as well, they may hold the only other references to them: then all of it is
        checked.
        """
        whole = [
            source
            for source, is_whole in self.assumed_unobserved.items()
            if is_whole or self.ended_locals
        ]
        alone = [
            source
            for source, is_whole in self.assumed_unobserved.items()
            if not (is_whole or self.ended_locals)
        ]
        for holds, sources in ((are_released_unobserved, alone), (have_unobservable_ends, whole)):
            if sources:
                self.guard(CallSource(holds, *sources), Truth(True))

    def _guard_distinctness(self) -> None:
        """Guard that changed objects and keys are no other object of their class that this trace
        read."""
        owners = [_owner(tracker) for tracker in self.changed.values()]
        classes = {id(owner.cls) for owner in owners}
        looked_at = [_owner(found) for found in self.heap.values() if not is_pending(found)]
        found = {
            id(vt.real): vt
            for vt in (*self.assumed_distinct.values(), *looked_at)
            if id(vt.cls) in classes
        }
        found |= self.assumed_distinct
        groups: dict[int, list[Source]] = {}
        for vt in found.values():
            if vt.source is not None and not (is_drawn(vt.source) or self.is_of_made(vt.source)):
                groups.setdefault(id(vt.cls), []).append(vt.source)
        for sources in groups.values():
            first = next((each for each in sources if type(each) is not CapturedSource), None)
            if len(sources) > 1 and first is not None:
                others = tuple(source for source in sources if source is not first)
                self.guard(first, AllDistinct(others, first))


def _owner(tracker: VariableTracker) -> VariableTracker:
    """The object itself, for an instance dictionary."""
    return tracker if (owner := getattr(tracker, "owner", None)) is None else owner


def _may_be_observed(tracker: Any, real: object) -> bool:
    """Return whether the end of an existing object may be observable; an iterator at its end refers
    to nothing."""
    is_at_end = getattr(tracker, "kind", "") == "existing" and tracker.exhausted
    return not is_at_end and may_have_observable_end(type(real))


def _parts(held: Any) -> Iterable[Any]:
    return held.values() if type(held) is dict else held if type(held) is list else (held,)


def _is_part(before: list[Any], after: list[Any]) -> bool:
    """Return True if the one begins or ends the other, as after most changes of long lists."""
    same = len(before) <= len(after) and all(map(operator.is_, before, after))
    return same or (
        len(before) <= len(after) and all(map(operator.is_, reversed(before), reversed(after)))
    )


def source_of(tracker: Any) -> Source:
    """Return the source of an existing value, realized or not."""
    found: Source = tracker.__dict__["_pending"][0] if is_pending(tracker) else tracker.source
    return found


def real_of(tracker: Any) -> Any:
    """Return the object behind an existing value, realized or not; MISSING for a new one.

    Installs no guard, so rely on nothing but identity.
    """
    if is_pending(tracker):
        return tracker.__dict__["_pending"][1]
    return getattr(tracker, "real", MISSING)
