"""State of one trace: graph, guards, heap, journal, and where the program is.

Every function of the data model takes it first, as `t`.
"""

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, nullcontext
from functools import partial
from typing import Any

import torch
from attrs import Factory, define
from stator_bytecode import VALUE, Frame, Instruction, Invoke, Result, Then, after
from stator_bytecode.errors import NOWHERE, SourceSpan, Unsupported
from stator_guards import (
    CapturedSource,
    EqualFacts,
    EqualRoots,
    Guard,
    Kind,
    Length,
    LongerThan,
    SameObject,
    ShapeExpression,
    Source,
    Truth,
)

from stator_variables._operations import Operations
from stator_variables._runtime._support import is_new_in_each_call
from stator_variables._trace._capture_state import CaptureStates, S
from stator_variables._trace._drawn import Streams, is_drawn
from stator_variables._trace._graph import GraphRecorder
from stator_variables._trace._heap import Heap
from stator_variables._trace._journal import Journal
from stator_variables._trace._late_import import LateImport
from stator_variables._trace._lifetimes import Lifetimes
from stator_variables._trace._memory import InputMemory
from stator_variables._trace._policy import Policy
from stator_variables._tracker import VariableTracker, real_of

# with a separator, as torch_geometric is not of torch
_TORCH = os.path.join(os.path.dirname(torch.__file__), "")

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


FEWEST_ALIKE = 3
"""The number of objects from which on equal facts about them are one guard."""


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
    alike: dict[EqualFacts, dict[Source, None]] = Factory(dict)  # of several objects each
    heap: Heap = Factory(Heap)
    lifetimes: Lifetimes = Factory(lambda self: Lifetimes(self.heap), takes_self=True)
    states: CaptureStates = Factory(CaptureStates)  # of captures
    # transforms of torch.func that are under way, outermost first
    levels: list[str] = Factory(list)
    # settings written while tracing -> their value at the start
    modes: dict[Any, Any] = Factory(dict)
    makes_leaves: bool = False  # `_tensors/_new_leaves.py`
    is_sealed: bool = False  # a compiler can take no further operator into the graph
    inference: InferenceModes = Factory(InferenceModes)
    frame: Frame | None = None
    instruction: Instruction | None = None
    machine: Any = None
    progress: Progress = Factory(Progress)
    lookups: dict[Any, Any] = Factory(dict)  # class attribute lookups already guarded
    shared: dict[Any, Any] = Factory(dict)  # objects that equal requests are to share
    late_import: LateImport | None = None  # at which the trace broke, to be made again behind it
    read_twice: bool = False  # a tensor, by two of the paths that a break carried: `_paths.py`
    # per open body: what was changed in it, and where
    touched: list[dict[int, Any]] = Factory(list)
    hooks: tuple[Any, ...] = ()  # calls that register hooks for gradients, or take them back
    differentiates: bool = False  # an operator of the graph is a backward
    has_reentrant: bool | None = None  # checkpoint, in the graph; None if it has no checkpoint
    assumes: bool = False  # a result that the program has declared to hold for all calls
    memory: InputMemory = Factory(InputMemory)
    overrides: Overrides = Factory(Overrides)
    streams: Streams = Factory(Streams)  # steps on streams of random numbers
    builders: Any = None  # a `BuilderTable` from outside
    equal_calls: Any = None  # a `CallRepeater`, or None: each call is interpreted

    def state(self, cls: type[S]) -> S:
        """Return the state of a capture in this trace."""
        return self.states.get(cls)

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

    def program_line(self) -> SourceSpan:
        """The innermost line outside of torch; that of `where` if there is none."""
        place = self.where()
        if not place.filename.startswith(_TORCH):
            return place
        visible = (frame for frame in reversed(self.machine.frames) if not frame.hidden)
        for frame in visible:
            place_outside: SourceSpan = frame.code.span(frame.pc)
            if not place_outside.filename.startswith(_TORCH):
                return place_outside
        return place

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
    def guard(self, source: Source | None, kind: Kind, where: SourceSpan | None = None) -> None:
        """Rely on a fact of an existing value; new values (no source) need none, nor what holds of
        one object. `where` is the line that needs it, by default the one that is interpreted."""
        if type(source) is CapturedSource and isinstance(kind, SameObject):
            source, kind = kind.other, type(kind)(source)  # which may be another the next time
        if source is None or (type(source) is CapturedSource and not kind.of_contents):
            return
        if self.heap.is_of_made(source) or (self.makes_leaves and is_new_in_each_call(source)):
            return
        if self.streams.steps and is_drawn(source):
            raise self.unsupported(
                "random-value", "a decision by a value that is drawn at random on each call"
            )
        key = (source, type(kind), kind.merge_key)
        if key not in self.guards:
            self.guards[key] = Guard(source, kind, self.program_line() if where is None else where)
        if type(kind) is Length:
            self.guards.pop((source, LongerThan, None), None)  # which follows

    def guard_alike(self, facts: EqualFacts, root: Source) -> None:
        """Rely on facts of an existing object that are known of others."""
        self.alike.setdefault(facts, {})[root] = None

    def every_guard(self) -> Iterator[Guard]:
        """Yield the guards so far, those on several objects alike with a copy for each object."""
        yield from self.guards.values()
        for facts, roots in self.alike.items():
            for root in roots:
                yield from facts.about(root)

    def rely(self, relation: ShapeExpression) -> None:
        """Rely on a relation of several values."""
        self.guards.setdefault(
            (None, type(relation), relation), Guard(None, relation, self.program_line())
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
    def write(self, tracker: VariableTracker, **fields: Any) -> None:
        """A change of an object's state, replayed after the graph and undone by a rollback."""
        for name in HOLDING.intersection(fields):
            self.lifetimes.exchange(getattr(tracker, name), fields[name], tracker)
        self.journal.assign(tracker, **fields)
        self.mark_mutated(tracker)

    def end(self, tracker: VariableTracker) -> None:
        """Record that an object with a relevant end dies here, or refuse it."""
        if tracker is None or id(real_of(tracker)) in self.lifetimes.observable:
            raise self.unsupported(
                "object-dropped", "the release of an object whose end may be observed"
            )
        self.lifetimes.ended_locals.add(self.lifetimes.local_places[id(real_of(tracker))])

    def mark_mutated(self, tracker: VariableTracker) -> None:
        """Note that an object was changed; one that existed before has effects to be replayed."""
        self.heap.writes.append(tracker)
        for touched in self.touched:
            touched.setdefault(id(tracker), (tracker, self.where()))
        if tracker.source is None or id(tracker) in self.heap.changed:
            return
        self.journal.put(self.heap.changed, id(tracker), tracker)

    def keep_apart(self, source: Source, tensor: torch.Tensor) -> None:
        """Record an input, which may share memory with another only where guards can detect it."""
        if (refused := self.memory.add(source, tensor)) is not None:
            raise self.unsupported(*refused)

    def finish_guards(self) -> list[Guard]:
        """Return all guards, with those on identities, ends and memory; equal facts about several
        objects are one guard."""
        for source, kind in self.heap.facts():
            self.guard(source, kind)
        for fact in self.lifetimes.facts():
            self.guard(fact, Truth(True))
        for fact in self.memory.facts():
            if not self.graph.is_pure:
                self.guard(fact, Truth(True))
        for fact in self.memory.facts_of_copies():
            self.guard(fact, Truth(True))

        equal = []
        for facts, roots in self.alike.items():
            if len(roots) >= FEWEST_ALIKE:
                equal.append(EqualRoots.guard(facts, roots))
                continue
            for guard in (guard for root in roots for guard in facts.about(root)):
                self.guard(guard.source, guard.kind, guard.where)
        return [*self.guards.values(), *equal]
