"""Tracing: what one compilation knows while it traces: graph, guards, heap, journal, and where the program is.

Every function of the data model takes it first, as `t`.
"""

import itertools
import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, nullcontext
from typing import Any

import attrs
import torch
from stator_bytecode import Code, Frame, Instruction
from stator_bytecode.errors import NOWHERE, SourceSpan, Unsupported
from stator_guards import (
    AttrAbsent,
    CallSource,
    CapturedSource,
    Custom,
    DistinctObject,
    Guard,
    KeyAbsent,
    KeyPresent,
    KeysAre,
    Length,
    LongerThan,
    SameObject,
    Source,
    Truth,
)

from stator_variables._graph import Dim, GraphRecorder
from stator_variables._tracker import MISSING, LazyTracker, VariableTracker, is_pending, pending_real

CONTENTS = (AttrAbsent, KeyAbsent, KeyPresent, KeysAre, Length)
"""What may change of an object that itself stays the same."""

MANY_PER_SOURCE = (KeyAbsent, KeyPresent, AttrAbsent, SameObject, DistinctObject, Custom)


@attrs.frozen(eq=False)
class Stop:
    """The instruction that a trace broke at: how many began before it, and which it is."""

    begun: int
    code: Code
    index: int
    reason: Unsupported


@attrs.define(eq=False)
class Policy:
    """What the facade decides per compilation: which inputs are symbolic, and what is captured at all."""

    dims: Callable[[Source, Any], list[Dim]] = lambda source, tensor: [Dim()] * tensor.dim()
    number_is_symbolic: Callable[[Source, Any], bool] = lambda source, value: False
    capture_data: bool = False  # results that depend on data become unbacked symbols
    is_whole: bool = False  # a break is an error, so what a break would have run is run while tracing where possible
    patience: float = math.inf  # so many instructions without an operation of the graph are a long loop
    stop: Stop | None = None  # where an earlier trace of the same broke


@attrs.define(eq=False)
class Journal:
    """Undo records of every change to tracked state, in order; a mark is their number so far.

    A graph under construction has one of its own, which its tracers share.
    """

    undo: list[Callable[[], object]] = attrs.field(factory=list)

    def record(self, undo: Callable[[], object]) -> None:
        self.undo.append(undo)

    def put(self, table: dict[Any, Any], key: Any, value: Any) -> None:
        """Add an item to `table`, which a rollback takes out."""
        table[key] = value
        self.undo.append(lambda: table.pop(key))

    def assign(self, thing: Any, **fields: Any) -> None:
        """Set attributes of `thing`, which a rollback sets back."""
        before = [(name, getattr(thing, name)) for name in fields]
        self.undo.append(lambda: _set(thing, before))
        _set(thing, fields.items())

    def mark(self) -> int:
        return len(self.undo)

    def rollback(self, mark: int) -> None:
        """Undo the newest first, so that each record meets the state it was written in."""
        while len(self.undo) > mark:
            self.undo.pop()()


def _set(thing: Any, fields: Iterable[tuple[str, Any]]) -> None:
    for name, value in fields:
        setattr(thing, name, value)


@attrs.define(eq=False)
class Tracing:
    """See the module. `call` and the like live in the data model, not here."""

    graph: GraphRecorder
    handlers: Mapping[Any, Any]
    policy: Policy = attrs.field(factory=Policy)
    journal: Journal = attrs.field(factory=Journal)
    guards: dict[Any, Guard] = attrs.field(factory=dict)
    heap: dict[int, Any] = attrs.field(factory=dict)
    aliases: list[tuple[Any, Source, Source]] = attrs.field(factory=list)
    handed_on: set[int] = attrs.field(factory=set)  # ids of trackers that nobody looked at, but the entry gives on
    alive: list[Any] = attrs.field(factory=list)  # keeps identities in `heap` valid
    changed: dict[int, Any] = attrs.field(factory=dict)  # existing trackers with effects, by id, first changed first
    told_apart: dict[int, Any] = attrs.field(factory=dict)  # existing objects taken for distinct ones, by identity
    present: list[tuple[Source, Any, Any]] = attrs.field(factory=list)  # found in what exists: source, guard, value
    representing: list[Any] = attrs.field(factory=list)  # containers whose repr is under way
    levels: list[str] = attrs.field(factory=list)  # transforms of torch.func that are under way, outermost first
    modes: dict[Any, Any] = attrs.field(factory=dict)  # settings written while tracing -> their value at the start
    inference: list[Any] = attrs.field(factory=list)  # inference modes that were entered while tracing, outermost first
    infers: bool = False  # some were
    left: list[Any] = attrs.field(factory=list)  # those of them that the end of the graph left, for the entry to enter
    generators: list[Any] = attrs.field(factory=list)  # those that were made, or came as frame state
    frame: Frame | None = None
    instruction: Instruction | None = None
    machine: Any = None
    begun: int = 0  # instructions
    steps: int = 0  # since the graph was last seen to grow
    waited: tuple[Any, list[Frame]] | None = None  # mark of the graph and frames when patience was last lost
    looping: int = 0  # the depth of the frame whose loop was given up
    lookups: dict[Any, Any] = attrs.field(factory=dict)  # class attribute lookups already guarded
    shared: dict[Any, Any] = attrs.field(factory=dict)  # objects that equal requests are to share
    calls: list[Any] = attrs.field(factory=list)  # of cached functions: the entry makes them after the graph
    trial: dict[Any, Any] | None = None  # while such a call is tried: what others gave inside
    mortal: set[int] = attrs.field(factory=set)  # ids: held by the frames alone, and their end may be noticed
    touched: list[dict[int, Any]] = attrs.field(factory=list)  # per open body: what was changed in it, and where
    answers: Any = None  # to questions about keys, in the step that is being done: see `hashing`
    answered: dict[Any, Any] = attrs.field(factory=dict)  # all that ever were, with the objects asked about
    given: list[Any] = attrs.field(factory=list)  # the answers that hold, in their order
    memory: dict[Source, Any] = attrs.field(factory=dict)  # the tensors that are inputs
    holds_arrays: bool = False  # some of them are over memory of NumPy's
    holds_wrappers: bool = False  # some of them are inside others
    knows_subclasses: bool = False  # a subclass of tensors was met
    functions_off: bool = attrs.field(factory=lambda: not torch._C._is_torch_function_enabled())  # none is asked now
    function_modes: tuple[Any, ...] = ()  # entered while tracing, the innermost last
    asking: int = 0  # how many of those are under way
    made: dict[int, Any] = attrs.field(factory=dict)  # classes made while tracing, by the identity of what stands there

    # -- where the program is ---------------------------------------------------------------------------------------
    def where(self) -> SourceSpan:
        """The user's line that is being interpreted: where that is in code of ours, the line that called it."""
        if self.frame is None:
            return NOWHERE
        if self.frame.hidden:
            visible = next((frame for frame in reversed(self.machine.frames) if not frame.hidden), self.frame)
            return span_of(visible, visible.code.instructions[visible.pc])
        return span_of(self.frame, self.instruction)

    def unsupported(self, reason: str, detail: str, hint: str = "") -> Unsupported:
        return Unsupported(reason, detail, hint, self.where())

    # -- guards -----------------------------------------------------------------------------------------------------
    def guard(self, source: Source | None, kind: Any) -> None:
        """Rely on a fact of an existing value; new values (no source) need none, nor what holds of one object."""
        if type(source) is CapturedSource and isinstance(kind, SameObject):
            source, kind = kind.other, type(kind)(source)  # which may be another the next time
        if source is None or (type(source) is CapturedSource and not isinstance(kind, CONTENTS)):
            return
        if self.made and self.is_of_made(source):
            return
        extra = kind if isinstance(kind, MANY_PER_SOURCE) else None
        key = (source, type(kind), _guard_argument(extra))
        if key not in self.guards:
            self.guards[key] = Guard(source, kind, self.where())
        if type(kind) is Length:
            self.guards.pop((source, LongerThan, None), None)  # which follows

    def need_length(self, source: Source | None, length: int) -> None:
        """Rely on so many items at least."""
        key = (source, LongerThan, None)
        known: Any = None if key not in self.guards else self.guards[key].kind
        if (source, Length, None) not in self.guards and (known is None or known.length < length - 1):
            self.guards.pop(key, None)
            self.guard(source, LongerThan(length - 1))

    def is_of_made(self, source: Source) -> bool:
        """Whether something is read of a class that was made while tracing: each call makes its own."""
        return any(isinstance(step, CapturedSource) and id(step.held.get()) in self.made for step in source.steps())

    def allow_length(self, length: int, cls: type) -> None:
        """Reading a container guards each item: beyond some number a break costs less."""
        if length > self.policy.patience / 5:
            raise self.unsupported("long-container", f"all {length} items of a {cls.__name__}")

    @contextmanager
    def caller_modes(self) -> Iterator[None]:
        """Global modes as the caller has them: what a guard records has to be what the next call finds."""
        with self.inference[0].outside() if self.inference else nullcontext():
            here = {setting: setting.now for setting in self.modes}
            for setting, start in self.modes.items():
                setting.set(start)
            try:
                yield
            finally:
                for setting, now in here.items():
                    setting.set(now)

    # -- the heap ---------------------------------------------------------------------------------------------------
    def adopt(self, real: Any, source: Source, build: Callable[[], VariableTracker]) -> Any:
        """The one tracker of an existing object, made lazily; a second path to it is kept for an aliasing guard."""
        if (found := self.heap.get(id(real))) is not None:
            known = source_of(found)
            if known is not None and known is not source and known != source:
                self.aliases.append((found, known, source))
            return found
        lazy = LazyTracker(source, real, build)
        self.heap[id(real)] = lazy
        self.alive.append(real)
        return lazy

    def write(self, tracker: Any, **fields: Any) -> None:
        """A change of an object's state, replayed after the graph and undone by a rollback."""
        self.journal.assign(tracker, **fields)
        self.change(tracker)

    def change(self, tracker: Any) -> None:
        """Note that an object was changed; one that existed before has effects to be replayed."""
        for touched in self.touched:
            touched.setdefault(id(tracker), (tracker, self.where()))
        if tracker.source is None or id(tracker) in self.changed:
            return
        self.journal.put(self.changed, id(tracker), tracker)

    def keep_apart(self, source: Source, tensor: Any) -> None:
        """Note an input. That one is over memory of another shows in their storages, but not where NumPy has a hand."""
        self.memory[source] = tensor
        if self.holds_arrays and not are_apart(*self.memory.values()):
            hint = "make a copy of one"
            raise self.unsupported("numpy", "an array and a tensor, or two arrays, over the same memory", hint)
        if self.holds_wrappers and not share_nothing(*self.memory.values()):
            raise self.unsupported("tensor-subclass", "a part of a tensor that shares memory with another input")

    def finish_guards(self) -> list[Guard]:
        """All guards, with aliasing between paths that were really used and distinctness of what was mutated."""
        for tracker, known, other in self.aliases:
            if not is_pending(tracker) or id(tracker) in self.handed_on:
                self.guard(other, SameObject(known))
        for source, kept, tracker in self.present:
            if is_pending(tracker):  # else what was read of the value is guarded through the dict
                self.guard(source, kept)
        self._guard_distinctness()
        if self.holds_arrays and not self.graph.is_pure:
            self.guard(CallSource(are_apart, *self.memory), Truth(True))
        if self.holds_wrappers and not self.graph.is_pure:
            self.guard(CallSource(share_nothing, *self.memory), Truth(True))
        return list(self.guards.values())

    def _guard_distinctness(self) -> None:
        """What was changed, and what was a key, is no other object of its class that this trace looked at."""
        owners = [_owner(tracker) for tracker in self.changed.values()]
        classes = {owner.cls for owner in owners}
        looked_at = [_owner(found) for found in self.heap.values() if not is_pending(found)]
        found = {id(vt.real): vt for vt in (*self.told_apart.values(), *looked_at) if vt.cls in classes}
        found |= self.told_apart
        groups: dict[type, list[Source]] = {}
        for vt in found.values():
            if vt.source is not None and not self.is_of_made(vt.source):
                groups.setdefault(vt.cls, []).append(vt.source)
        for sources in groups.values():
            if len(sources) > 1 and any(type(source) is not CapturedSource for source in sources):
                self.guard(CallSource(all_distinct, *sources), Truth(True))


def _owner(tracker: Any) -> Any:
    """The object itself, for an instance dictionary."""
    return tracker if (owner := getattr(tracker, "owner", None)) is None else owner


def are_apart(*tensors: Any) -> bool:
    """Whether tensors that have no storage in common are over different memory."""
    spans: dict[int, tuple[int, int]] = {}  # of each storage, for one view of it may lie within another
    for tensor in tensors:
        if tensor.layout is torch.strided and tensor.numel():
            start, stop = _span(tensor)
            known = spans.setdefault(tensor.untyped_storage()._cdata, (start, stop))
            spans[tensor.untyped_storage()._cdata] = min(start, known[0]), max(stop, known[1])
    return all(stop <= start for (_, stop), (start, _) in itertools.pairwise(sorted(spans.values())))


def share_nothing(*tensors: Any) -> bool:
    """Whether each has memory of its own."""
    storages = [tensor.untyped_storage()._cdata for tensor in tensors if tensor.layout is torch.strided]
    return len(set(storages)) == len(storages)


def _span(tensor: Any) -> tuple[int, int]:
    last = sum((size - 1) * step for size, step in zip(tensor.shape, tensor.stride(), strict=True))
    start: int = tensor.data_ptr()
    return start, start + (last + 1) * tensor.element_size()


def all_distinct(*objects: object) -> bool:
    return len(set(map(id, objects))) == len(objects)


def _guard_argument(kind: Any) -> Any:
    if kind is None:
        return None
    value = kind.description if isinstance(kind, Custom) else getattr(kind, kind.__match_args__[0])
    return (type(value), value)


def source_of(tracker: Any) -> Source:
    """The source of an existing value, looked at or not."""
    found: Source = tracker.__dict__["_pending"][0] if is_pending(tracker) else tracker.source
    return found


def real_of(tracker: Any) -> Any:
    """The object behind an existing value, looked at or not; MISSING for a new one."""
    return pending_real(tracker) if is_pending(tracker) else getattr(tracker, "real", MISSING)


def span_of(frame: Frame, instruction: Instruction | None) -> SourceSpan:
    """The user's place of an instruction of a frame."""
    return SourceSpan.of(frame.code.raw, *(() if instruction is None else (instruction.positions,)))
