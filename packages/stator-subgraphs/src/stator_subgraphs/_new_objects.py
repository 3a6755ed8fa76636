"""New objects among the arguments of equal calls, such as a cache that the program made: what the
first call read of them has to be the same for another one, and what it wrote is written again.

    cache.layers[layer_idx].keys = keys

    read     cache and its `__dict__`; the item of `layers` under the number `layer_idx`; its
             `__dict__`, with all that these hold
    written  the `__dict__` of that item: keys, a value of the call

What was read is compared by an outline: the classes, keys and constants of these objects, in the
order in which they are met, with a number for each object, that of its first occurrence. So two
paths lead to one object in both calls, or to two in both.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

import torch
from attrs import Factory, define, field, frozen
from stator_guards import Source, moved_source
from stator_variables import (
    MISSING,
    AccessLog,
    AccessLogs,
    ConstantTracker,
    ObjectState,
    Space,
    TensorTracker,
    TupleTracker,
    from_traced,
    is_new_object,
    is_pending,
    item_at,
    made_of_state,
    real_of,
    realize,
    source_of,
    state_of,
    wrap,
    write_state,
)
from torch.fx import Node

from stator_subgraphs._fragment import Fragment
from stator_subgraphs._operators._reuse import Facts, RegionCall, ValueOrigin, kind_with_history

Key = tuple[Any, ...] | None
"""The description of a value in an outline; None for one that is not understood."""

PLAIN = (type(None), bool, int, float, complex, str, bytes, type(Ellipsis))
SINGLETONS = (torch.dtype, torch.device, torch.layout, torch.memory_format)


@frozen(eq=False)
class NewObject:
    """A new object among the leaves of a call: those of one class look alike."""

    vt: Any

    def __repr__(self) -> str:
        return f"new {id(self.vt.cls)}"


@frozen(eq=False)
class Unread:
    """An argument that was not looked at: that of an equal call is the same one."""

    vt: Any

    def __repr__(self) -> str:
        return f"unread {id(self.vt)}"


def new_objects(vts: Iterable[Any]) -> list[Any]:
    """Return the new objects among the arguments of a call."""
    return [vt for vt in vts if is_new_object(vt)]


def is_plain(vt: TensorTracker) -> bool:
    """Return True for a tensor to which nothing was attached or assigned."""
    return (
        vt.namespace is None
        and vt.data is MISSING
        and vt.grad is MISSING
        and vt.node is vt.tangent is vt.connected is None
        and not (vt.is_new or vt.is_late or vt.drops_grad)
    )


# -- what was read ---------------------------------------------------------------------------------
@define(eq=False)
class Outline:
    """The values that the arguments of a call lead to, each described once, in the order in which
    they are met."""

    values: list[Any] = Factory(list)
    numbers: dict[int, int] = Factory(dict)
    """Their numbers, by the identities of their trackers."""

    def keys(
        self,
        call: RegionCall,
        state_at: Callable[[int, Any], ObjectState | bool | None],
        selected_at: Callable[[int, Any], dict[Source, tuple[Any, Any]]],
        *,
        reads: bool,
    ) -> Iterator[Key]:
        """Yield the descriptions. `state_at` returns False for a value that was not looked at, None
        for one that is not understood; `reads`: numbers that nobody looked at are read."""
        for leaf in call.leaves:
            yield self._leaf(leaf)
        at = 0

        while at < len(self.values):
            vt = self.values[at]
            state = state_at(at, vt)
            if state is None:
                yield None
            elif isinstance(state, ObjectState):
                yield state.steps
                for part in state.parts:
                    yield self._key(part, reads=reads)
            elif type(vt) is TupleTracker:
                yield (len(vt.items),)
                for part in vt.items:
                    yield self._key(part, reads=reads)

            selected = [*selected_at(at, vt).values()]
            indices = [index for index, _ in selected]
            yield tuple(map(indices.index, indices))
            for _, part in selected:
                yield self._key(part, reads=reads)
            at += 1

    def tensors(self) -> Iterator[tuple[int, Any]]:
        """Yield the tensors, with their numbers."""
        for number, vt in enumerate(self.values):
            if not is_pending(vt) and type(vt) is TensorTracker:
                yield number, vt

    def _leaf(self, leaf: Any) -> Key:
        """Number an argument, which was compared already."""
        vt = leaf
        if type(leaf) is ConstantTracker:
            if not isinstance(leaf.value, NewObject | Unread):
                return ()
            vt = leaf.value.vt
        number = self.numbers.setdefault(id(vt), len(self.values))
        if number == len(self.values):
            self.values.append(vt)
        return (number,)

    def _key(self, vt: Any, *, reads: bool) -> Key:
        if reads and is_pending(vt) and type(real_of(vt)) in PLAIN:
            vt = realize(vt)
        if not is_pending(vt) and type(vt) is ConstantTracker:
            if type(vt.value) in (*PLAIN, *SINGLETONS):
                return type(vt.value), repr(vt.value)
            return ("existing", id(vt.value))

        number = self.numbers.setdefault(id(vt), len(self.values))
        if number < len(self.values):
            return (number,)
        self.values.append(vt)
        kind = _kind_of(vt)
        return None if kind is None else (number, *kind)


def _kind_of(vt: Any) -> Key:
    if is_pending(vt):
        return ("existing", id(real_of(vt)))
    if is_new_object(vt):
        return "new", vt.base, vt.cls
    if type(vt) is TupleTracker and vt.source is None and vt.real is MISSING:
        return ("tuple",) if vt.cls is tuple else None
    if type(vt) is TensorTracker:
        origin = "tensor" if vt.real is MISSING else id(vt.real)
        return (origin, *kind_with_history(vt.example)) if is_plain(vt) else None
    return None if vt.real is MISSING else ("existing", id(vt.real))


@define(eq=False)
class NewObjectAccess:
    """The accesses of a call to new objects, kept until another call looks equal."""

    t: Space
    log: AccessLog
    result: Any
    kinds: dict[int, Key] = field(init=False)
    """The descriptions of the tensors that it read, at its end."""

    @property
    def indices(self) -> set[Source]:
        """The sources of indices that selected something."""
        return {source for found in self.log.selected.values() for source in found}

    @kinds.default
    def _kinds(self) -> dict[int, Key]:
        states = filter(None, self.log.before.values())
        parts = [part for state in states for part in state.parts]
        return {id(vt): _kind_of(vt) for vt in parts if not is_pending(vt) and _is_tensor(vt)}


def _is_tensor(vt: Any) -> bool:
    return type(vt) is TensorTracker


# -- what is written -------------------------------------------------------------------------------
@define(eq=False)
class ValuePlaces:
    """The places of values at the end of a call: what they are made of again."""

    call: RegionCall
    facts: Facts
    fragment: Fragment
    numbers: dict[int, int]
    made: dict[int, ObjectState | None]
    """The states of new objects, by the identities of their trackers."""
    known: dict[int, ValueOrigin] = Factory(dict)
    nodes: set[Node] = Factory(set)
    is_complete: bool = True

    def relative(self, source: Source) -> Source:
        """Return the source of an index, which is that of a part of the objects."""
        found = self.facts.relative_to_objects(source)
        assert found is not None
        return found

    def add(self, vt: Any) -> None:
        """Find the places of a value and of its parts."""
        if id(vt) in self.known:
            return
        found = self._place(vt)
        if found is None:
            self.is_complete = False
            return
        self.known[id(vt)] = found
        kind, where = found
        if kind == "node":
            self.nodes.add(where)
        for part in where.parts if kind == "made" else where.items if kind == "tuple" else ():
            self.add(part)

    def _place(self, vt: Any) -> ValueOrigin | None:
        if id(vt) in self.numbers:
            return "numbered", self.numbers[id(vt)]
        source = source_of(vt)
        if source is not None:
            relative = self.facts.relative_to_objects(source)
            if relative is not None:
                return "part", relative
            return None if self.facts.mentions(source) else ("constant", vt)

        if type(vt) is TensorTracker:
            is_known = is_plain(vt) and vt.before.node in self.fragment.nodes
            return ("node", vt.before.node) if is_known else None
        if type(vt) is TupleTracker:
            return ("tuple", vt) if vt.cls is tuple else None
        if is_new_object(vt):
            state = self.made.get(id(vt))
            return None if state is None else ("made", state)
        is_constant = type(vt) is ConstantTracker or vt.real is not MISSING
        return ("constant", vt) if is_constant else None


@define(eq=False)
class Again:
    """The values that take those places in another call."""

    call: RegionCall
    values: list[Any]
    """The values that the arguments lead to, by their numbers."""
    places: dict[int, ValueOrigin]
    nodes: dict[Node, Any]
    moved: dict[Any, Source]
    read: Callable[[Source], Any]
    known: dict[int, Any] = Factory(dict)

    def of(self, vt: Any) -> Any:
        """Return the value for that of the first call; the same one each time."""
        if id(vt) not in self.known:
            kind, where = self.places[id(vt)]
            if kind == "made":
                return made_of_state(where, self.of, lambda new: self.known.update({id(vt): new}))
            self.known[id(vt)] = self._of(kind, where)
        return self.known[id(vt)]

    def _of(self, kind: str, where: Any) -> Any:
        if kind == "numbered":
            return self.values[where]
        if kind == "node":
            return from_traced(self.call.t, self.nodes[where])
        if kind == "tuple":
            return TupleTracker([*map(self.of, where.items)])
        if kind == "part":
            return wrap(self.call.t, self.read(where), moved_source(where, self.moved))
        if type(where) is ConstantTracker and type(where.value) is torch.device:
            return ConstantTracker(torch.device(str(where.value)))  # each read gives another object
        return where


@frozen(eq=False)
class NewObjectSummary:
    """The accesses of a call to new objects, relative to its arguments."""

    outline: list[Any]
    looked_at: frozenset[int]
    """The numbers of the values that were looked at."""
    selected: dict[int, list[Source]]
    """The indices that selected items, relative to the arguments, by the numbers of the lists."""
    inputs: dict[Node, int]
    """The numbers of tensors, by their nodes in the first call."""
    numbers: dict[int, int]

    @classmethod
    def of(cls, access: NewObjectAccess, call: RegionCall, facts: Facts) -> NewObjectSummary | None:
        """Return None for accesses that cannot be compared."""
        outline, log = Outline(), access.log
        relative = _relative_indices(log, facts)
        if relative is None:
            return None

        def state_at(_: int, vt: Any) -> Any:
            return log.before.get(id(vt), False)

        def selected_at(_: int, vt: Any) -> Any:
            indices = relative.get(id(vt), {}).items()
            return {source: (index, log.items[id(vt), index]) for source, index in indices}

        keys = [*outline.keys(call, state_at, selected_at, reads=False)]
        if None in keys or not outline.numbers.keys() >= {*log.before, *log.selected}:
            return None
        read = (vt for vt in outline.values if id(vt) in access.kinds)
        if any(_kind_of(vt) != access.kinds[id(vt)] for vt in read):
            return None

        numbers = outline.numbers
        return cls(
            keys,
            frozenset(numbers[each] for each in log.before),
            {numbers[each]: [*found] for each, found in relative.items()},
            {vt.traced.node: number for number, vt in outline.tensors()},
            numbers,
        )

    def place(self, traced: Any) -> ValueOrigin | None:
        """Return the place of a tensor that new objects, or the arguments, hold."""
        number = self.inputs.get(traced.node)
        return None if number is None else ("numbered", number)

    def match(self, call: RegionCall, read: Callable[[Source], Any]) -> Outline | None:
        """Return the values that the arguments of another call lead to; None if what the first call
        read is another one there."""
        outline = Outline()

        def state_at(number: int, vt: Any) -> Any:
            return state_of(vt) if number in self.looked_at else False

        def selected_at(number: int, vt: Any) -> Any:
            sources = self.selected.get(number, ())
            return {source: _item_now(vt, read(source)) for source in sources}

        keys = outline.keys(call, state_at, selected_at, reads=True)
        for needed in self.outline:
            if next(keys, None) != needed:
                return None
        return None if next(keys, MISSING) is not MISSING else outline

    def note(
        self,
        logs: AccessLogs,
        outline: Outline,
        read: Callable[[Source], Any],
        moved: dict[Any, Source],
    ) -> None:
        """Note the accesses for the calls around this one, and rely on the indices."""
        for number, sources in self.selected.items():
            for source in sources:
                logs.select(outline.values[number], moved_source(source, moved), read(source))
        for number in self.looked_at:
            logs.note(outline.values[number])


def _relative_indices(log: AccessLog, facts: Facts) -> dict[int, dict[Source, int]] | None:
    """Return the indices by sources relative to the arguments; None if one is of something else."""
    found: dict[int, dict[Source, int]] = {}
    for identity, indices in log.selected.items():
        for source, index in indices.items():
            relative = facts.relative_to_objects(source)
            if relative is None:
                return None
            found.setdefault(identity, {})[relative] = index
    return found


def _item_now(vt: Any, index: object) -> tuple[object, Any]:
    """Return an index and the item under it; what equals no item without one."""
    item = item_at(vt, index)
    return index, ConstantTracker(MISSING) if item is MISSING else item


@frozen(eq=False)
class Write:
    """The parts of a new object that a call changed: of a list all items."""

    number: int
    steps: list[Any]
    parts: list[Any]


@frozen(eq=False)
class NewObjectWrites:
    """The changes of new objects in a call, and its result."""

    writes: list[Write]
    put: list[tuple[int, Source, Any]]
    """The items that were put under indices: the numbers of the containers, the sources of the
    indices relative to the arguments, and the items."""
    places: dict[int, ValueOrigin]
    nodes: set[Node]
    result: Any

    @classmethod
    def of(
        cls, access: NewObjectAccess, places: ValuePlaces, numbers: dict[int, int]
    ) -> NewObjectWrites | None:
        """Return None for changes that cannot be made again."""
        log = access.log
        writes = _writes(log, numbers)
        if writes is None:
            return None

        put: list[tuple[int, Source, Any]] = []
        for identity, items in log.put.items():
            for source, item in items.items():
                put.append((numbers[identity], places.relative(source), item))

        values = [part for write in writes for part in write.parts]
        for value in (*values, *(item for *_, item in put), access.result):
            places.add(value)
        if not places.is_complete:
            return None
        return cls(writes, put, places.known, places.nodes, access.result)

    def again(self, logs: AccessLogs, again: Again) -> Any:
        """Make the changes, and return the result."""
        t = logs.t
        for number, source, item in self.put:
            index, place = again.read(source), moved_source(source, again.moved)
            logs.put(again.values[number], place, index, again.of(item))
        for write in self.writes:
            write_state(t, again.values[write.number], write.steps, [*map(again.of, write.parts)])
        return again.of(self.result)


def _writes(log: AccessLog, numbers: dict[int, int]) -> list[Write] | None:
    """Return the changes of objects that were looked at; None for one that cannot be made again."""
    writes: list[Write] = []
    for identity, before in log.before.items():
        after = log.after.get(identity)
        changed = None if before is None or after is None else _changed(before, after)
        if changed is None:
            return None
        if changed:
            steps, parts = [step for step, _ in changed], [part for _, part in changed]
            writes.append(Write(numbers[identity], steps, parts))
    return writes


def _changed(before: ObjectState, after: ObjectState) -> list[tuple[Any, Any]] | None:
    """Return the parts that were changed, with their places: of a list all items. None for changes
    of other kinds."""
    had, has = _by_step(before), _by_step(after)
    changed = [(step, part) for step, part in has.items() if had.get(step) is not part]
    if not changed and len(had) == len(has):
        return []
    kinds = {kind for (kind, _), _ in changed}
    if after.is_list and kinds <= {"item"}:
        return [(step, part) for step, part in has.items() if step[0] == "item"]
    keeps = after.steps[: len(before.steps)] == before.steps
    return changed if keeps and kinds <= {"key"} else None


def _by_step(state: ObjectState) -> dict[Any, Any]:
    return dict(zip(state.steps, state.parts, strict=True))
