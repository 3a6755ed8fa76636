"""State of one trace: graph, guards, heap, journal, and where the program is.

Every function of the data model takes it first, as `t`.
"""

import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from functools import partial
from itertools import chain
from typing import Any

import torch
from attrs import Factory, define
from stator_bytecode import VALUE, Frame, Instruction, Invoke, Result, Then, after
from stator_bytecode.errors import NOWHERE, SourceSpan, Unsupported
from stator_guards import (
    CapturedSource,
    Guard,
    Kind,
    Length,
    LongerThan,
    SameObject,
    ShapeExpression,
    Source,
)

from stator_variables._operations import Operations
from stator_variables._trace._capture_state import CaptureStates, S
from stator_variables._trace._equal_objects import EqualObjects
from stator_variables._trace._graph import GraphRecorder
from stator_variables._trace._heap import Heap
from stator_variables._trace._journal import Journal
from stator_variables._trace._lifetimes import Lifetimes
from stator_variables._trace._memory import InputMemory
from stator_variables._trace._policy import Policy
from stator_variables._tracker import VariableTracker, real_of

# with a separator, as torch_geometric is not of torch
_TORCH = os.path.join(os.path.dirname(torch.__file__), "")

HOLDING = frozenset({"content", "items", "known", "members"})
"""Fields of trackers with what these hold."""


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
    heap: Heap = Factory(Heap)
    lifetimes: Lifetimes = Factory(lambda self: Lifetimes(self.heap), takes_self=True)
    states: CaptureStates = Factory(CaptureStates)  # of captures
    frame: Frame | None = None
    instruction: Instruction | None = None
    machine: Any = None
    shared: dict[Any, Any] = Factory(dict)  # objects that equal requests are to share
    # per open body: what was changed in it, and where
    touched: list[dict[int, Any]] = Factory(list)
    builders: Any = None  # a `BuilderTable` from outside

    def state(self, cls: type[S]) -> S:
        """Return the state of a capture in this trace."""
        made: Any = self.states.made.get(cls)
        return self.states.make(cls) if made is None else made

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
        if self.heap.is_of_made(source):
            return
        for state in self.states.of_sources:
            if not state.needs_guard(self, source):
                return
        key = (source, type(kind), kind.merge_key)
        if key not in self.guards:
            self.guards[key] = Guard(source, kind, self.program_line() if where is None else where)
        if type(kind) is Length:
            self.guards.pop((source, LongerThan, None), None)  # which follows

    def needs_item(self, source: Source, kind: Any, tracker: Any) -> None:
        """Rely on a container's item that may be passed on unread."""
        self.heap.present.append((Guard(source, kind, self.program_line()), tracker))

    def every_guard(self, fits: Callable[[Source], bool] | None = None) -> Iterator[Guard]:
        """Yield the guards so far, those on several objects alike with a copy for each object; the
        copies only for objects that fit."""
        yield from self.guards.values()
        yield from self.state(EqualObjects).guards(fits)

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
        with ExitStack() as stack:
            for state in self.states.of_modes:
                stack.enter_context(state.outside())
            yield

    def restore_modes(self) -> None:
        """Put global modes back as they were when tracing started."""
        for state in self.states.of_modes:
            state.restore()

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
        if (refused := self.state(InputMemory).add(source, tensor)) is not None:
            raise self.unsupported(*refused)

    def finish_guards(self) -> list[Guard]:
        """Return all guards, with those on identities, ends and memory; equal facts about several
        objects are one guard."""
        for guard in self.heap.guards_on_unread():
            self.guard(guard.source, guard.kind, guard.where)
        parts = self.heap.facts(), self.lifetimes.facts(), self.states.facts(self)
        for source, kind in chain.from_iterable(parts):
            self.guard(source, kind)
        joined = self.state(EqualObjects).finish(self)
        return [*self.guards.values(), *joined]
