"""A call of a module that was interpreted, and what of it is repeated for equal ones.

`InterpretedCall.repeat` makes the `Summary` of the call when the first call looks equal: the facts
that its objects and tensors had, its fragment of the graph, and its result.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from attrs import define, evolve, field
from stator_bytecode.errors import Unsupported
from stator_guards import CANNOT_READ, Guard, PartSource, Source, TensorMatch, moved_source
from stator_variables import (
    MISSING,
    AccessLogs,
    Args,
    ConstantTracker,
    EqualObjects,
    GraphValue,
    Kwargs,
    Space,
    TensorTracker,
    TupleTracker,
    from_traced,
    is_a,
    is_new_object,
    is_pending,
    owner_of,
    real_of,
    source_of,
    wrap,
)
from torch.fx import Node
from torch.utils._pytree import SUPPORTED_NODES

from stator_subgraphs._alike_facts import AlikeFacts
from stator_subgraphs._equal_call_record import Difference, short_path
from stator_subgraphs._fragment import Fragment, fragment_of, record_again
from stator_subgraphs._mutation import storage_of
from stator_subgraphs._new_objects import (
    Again,
    NewObject,
    NewObjectAccess,
    NewObjectSummary,
    NewObjectWrites,
    Outline,
    Unread,
    ValuePlaces,
    is_plain,
)
from stator_subgraphs._operators._reuse import (
    Alias,
    Facts,
    RegionCall,
    ValueOrigin,
    kind_with_history,
    rely_on,
)
from stator_subgraphs._state import GraphState


@define(eq=False)
class InterpretedCall:
    """One call that was interpreted. The summary of it is made when another call looks equal."""

    call: RegionCall
    nodes: tuple[Node, Node]
    """The last nodes before it and in it."""
    result: Any
    written: int
    """The number of tensors that were written to by its end."""
    access: NewObjectAccess | None = None
    """The accesses to new objects among its arguments."""
    summary: Any = field(default=None, init=False)
    """A `Summary`, or False for a call that cannot be repeated."""

    def repeat(self, state: GraphState, call: RegionCall, logs: AccessLogs) -> Any:
        """Return the result of `call`, recorded again, or the difference from this one."""
        if self.summary is None:
            self.summary = summary_of(self, state) or False
        if not self.summary:
            return Difference("the first such call did more than compute")
        return self.summary.repeat(state, call, logs)


def called(t: Space, function: Any, args: Args, kwargs: Kwargs) -> RegionCall | None:
    """Return the call as one that may be like another; None for one of new objects."""
    args, kwargs = [*map(_unread, args)], {name: _unread(vt) for name, vt in kwargs.items()}
    if any(map(_is_open, (*args, *kwargs.values()))):
        return None
    return RegionCall.of(t, function, args, kwargs)


def reason_of_arguments(args: Args, kwargs: Kwargs) -> str:
    """Describe the argument for which a call is compared with none."""
    code = getattr(type(real_of(args[0])).forward, "__code__", None)
    names = code.co_varnames[: code.co_argcount] if code is not None else ()
    positional = zip(names, args, strict=False)
    for name, vt in [*positional, *kwargs.items()]:
        if is_pending(vt) or is_a(vt, TensorTracker) or vt.constant() is not MISSING:
            continue
        if _is_open(vt) or real_of(vt) is MISSING:
            return f"the argument {name} may be changed"
    return "an argument has parts that differ in each call"


def _unread(vt: Any) -> Any:
    if is_pending(vt):
        return ConstantTracker(Unread(vt))
    return ConstantTracker(NewObject(vt)) if is_new_object(vt) else vt


def _is_open(vt: Any) -> bool:
    """Return True for an argument that may be changed, or that has a part which was not looked
    at."""
    if is_pending(vt):
        return True
    if type(vt) is TupleTracker:
        return vt.cls is not tuple or any(map(_is_open, vt.items))
    if type(vt) is TensorTracker:
        return not is_plain(vt)
    return vt.cls in SUPPORTED_NODES or vt.base in (list, tuple, dict)


# -- the summary of a call -------------------------------------------------------------------------
@define(eq=False)
class Summary:
    """The facts that a call relied on about parts of its objects, which are parameters there; the
    nodes that it recorded; its result as places."""

    call: RegionCall
    facts: list[Guard]
    aliased: dict[Source, Alias]
    read: list[tuple[type, Source]]
    """The objects that it read: their classes and sources."""
    tensors: dict[Source, Any]
    """The tensors that it read, and their kinds."""
    fragment: Fragment
    kinds: list[Any]
    """The kinds of the inputs of the nodes."""
    result: ValueOrigin
    alike: AlikeFacts
    metadata: list[Guard]
    """The guards on the tensors that it read."""
    accesses: NewObjectSummary | None = None
    writes: NewObjectWrites | None = None
    """The accesses to new objects, and the changes of them."""

    def repeat(self, state: GraphState, call: RegionCall, logs: AccessLogs) -> Any:
        t, values = call.t, ValuesOfParts(call)
        failing = next((fact for fact in self.facts if not values.satisfy(fact)), None)
        if failing is not None:
            return self._difference(failing, call, values)
        moved: dict[Any, Source] = {name: source_of(leaf) for name, leaf in call.objects.items()}
        tensors = self._tensors(call, values, moved)
        if tensors is None:
            facts = (fact for fact in self.metadata if not values.satisfy(fact))
            return self._difference(next(facts, None), call, values)

        outline = self.accesses.match(call, values.read) if self.accesses else Outline()
        if outline is None:
            text = "an argument that the program made holds something else"
            return Difference(text, of_new_object=True)
        tensors |= {number: vt.traced for number, vt in outline.tensors()}
        inputs = [_input(call, place, tensors) for place in self.fragment.inputs]
        if [kind_with_history(traced.example) for traced in inputs] != self.kinds:
            return Difference("an input of its operators is of another kind")
        mark = t.graph.mark()

        try:
            nodes = record_again(state, self.fragment, inputs, self.call.leaves[0], call.leaves[0])
        except Unsupported:  # interpreted, it is refused where the program does it
            t.graph.rollback(mark)
            return Difference("an operator is refused")
        self._rely_on(t, moved)
        t.heap.repeated.append(lambda: self._read_again(moved, values))
        if self.accesses is None or self.writes is None:
            return _result(t, self.result, call, nodes, {})
        self.accesses.note(logs, outline, values.read, moved)
        again = Again(call, outline.values, self.writes.places, nodes, moved, values.read)
        return self.writes.again(logs, again)

    def _difference(
        self, fact: Guard | None, call: RegionCall, values: ValuesOfParts
    ) -> Difference:
        """Describe the fact that does not hold here, in the names of the program."""
        if fact is None or fact.source is None:
            return Difference("a tensor has another history, or something attached")
        moved: dict[Any, Source] = {name: source_of(leaf) for name, leaf in call.objects.items()}
        name = short_path(moved_source(fact.source, moved))
        value = values.read(fact.source)
        if value is UNREADABLE:
            return Difference(f"{name} was changed in the call, or is missing")
        try:
            present = fact.kind.found(value, call.state)
        except CANNOT_READ:
            present = "unreadable"
        return Difference(f"{name} is {present}, elsewhere {fact.kind.needed}")

    def _rely_on(self, t: Space, moved: dict[Any, Source]) -> None:
        """Guard the facts, those about each object of its own as facts that are alike."""
        if t.states.of_sources:  # some facts need no guard then
            rely_on(t, self.facts, self.aliased, moved)
            return
        rely_on(t, self.alike.rest, self.aliased, moved)
        for name, facts in self.alike.of_objects.items():
            if moved[name] != self.alike.first[name]:
                t.state(EqualObjects).add(facts, moved[name])

    def _tensors(
        self, call: RegionCall, values: ValuesOfParts, moved: dict[Any, Source]
    ) -> dict[Source | int, GraphValue] | None:
        """Return the tensors of this call by the sources in the summary; None if one is not
        alike."""
        found: dict[Source | int, GraphValue] = {}
        for source, kind in self.tensors.items():
            value = values.read(source)
            if type(value) is not kind[0]:
                return None
            vt: Any = wrap(call.t, value, moved_source(source, moved))
            if not _is_plain_input(vt) or kind_with_history(vt.example) != kind[1:]:
                return None
            found[source] = vt.traced
        return found

    def _read_again(
        self, moved: dict[Any, Source], values: ValuesOfParts
    ) -> Iterable[tuple[type, Source, int | None]]:
        """Yield the objects that this call reads: class, source, and identity where it is
        known."""
        for cls, source in self.read:
            value = values.read(source)
            identity = None if value is UNREADABLE else id(value)
            yield cls, moved_source(source, moved), identity


UNREADABLE = object()


class ValuesOfParts:
    """The values of parts of the objects among the arguments, each read once.

    What was changed before has another value for the program by now: a part of it cannot be read.
    """

    def __init__(self, call: RegionCall) -> None:
        changed = call.t.heap.changed.values()
        self.changed = {id(real_of(each)) for vt in changed for each in (vt, owner_of(vt))}
        self.state = call.state
        self.known: dict[Source, Any] = {}

    def read(self, source: Source) -> Any:
        """Return the value, or UNREADABLE."""
        if source not in self.known:
            self.known[source] = value = self._read(source)
            if id(value) in self.changed:
                self.known[source] = UNREADABLE
        return self.known[source]

    def _read(self, source: Source) -> Any:
        try:
            if not isinstance(source, PartSource):
                return source.evaluate(self.state)
            whole = self.read(source.whole)
            return UNREADABLE if whole is UNREADABLE else source.read(whole)
        except CANNOT_READ:
            return UNREADABLE

    def satisfy(self, fact: Guard) -> bool:
        """Return True if the fact holds here."""
        value = None if fact.source is None else self.read(fact.source)
        try:
            return value is not UNREADABLE and fact.kind.holds(value, self.state)
        except CANNOT_READ:
            return False


def summary_of(interpreted: InterpretedCall, state: GraphState) -> Summary | None:
    """Return None for a call that cannot be repeated."""
    call, access = interpreted.call, interpreted.access
    given = [leaf.traced.node if is_a(leaf, TensorTracker) else None for leaf in call.leaves]
    facts = Facts(call, given, () if access is None else access.indices)
    if facts.found is None or _reads_part_of_tensor(call):
        return None
    values = ValuesOfParts(call)
    if any(values.read(fact.source) is UNREADABLE for fact in facts.found):
        return None
    accesses = None if access is None else NewObjectSummary.of(access, call, facts)
    if access is not None and accesses is None:
        return None

    def place(traced: GraphValue) -> ValueOrigin | None:
        known = None if accesses is None else accesses.place(traced)
        return facts.place(traced) if known is None else known

    fragment = fragment_of(state, interpreted.nodes, place)
    tensors = _tensors_read(call, facts)
    if fragment is None or tensors is None:
        return None

    later = {*map(storage_of, state.root.facts.written[interpreted.written :])}
    if not later.isdisjoint(fragment.input_storages()):
        return None
    fragment = evolve(fragment, written=later)
    return _summary(interpreted, facts, fragment, tensors, accesses)


def _summary(
    interpreted: InterpretedCall,
    facts: Facts,
    fragment: Fragment,
    tensors: dict[Source, Any],
    accesses: NewObjectSummary | None,
) -> Summary | None:
    """Return the summary of a call whose reads are known; None for one with other effects."""
    call, access, writes = interpreted.call, interpreted.access, None
    if access is None or accesses is None:
        result = _placed(interpreted.result, call, fragment, {})
        nodes = set() if result is None else {*_nodes_in(result)}
    else:
        places = ValuePlaces(call, facts, fragment, accesses.numbers, access.log.after)
        writes = NewObjectWrites.of(access, places, accesses.numbers)
        result = None if writes is None else ("written", None)
        nodes = places.nodes
    if result is None:
        return None

    fragment = fragment.with_copies(nodes, shares=call.t.policy.runs_in_order)
    kinds = [kind_with_history(traced.example) for traced in fragment.values]
    rest = [fact for fact in facts.found if type(fact.kind) is not TensorMatch]
    metadata = [fact for fact in facts.found if type(fact.kind) is TensorMatch]
    alike = AlikeFacts.of(call, rest, facts.aliased, metadata)

    return Summary(
        call=call,
        facts=rest,
        aliased=facts.aliased,
        read=[*_objects_read(call, facts)],
        tensors=tensors,
        fragment=fragment,
        kinds=kinds,
        result=result,
        alike=alike,
        metadata=metadata,
        accesses=accesses,
        writes=writes,
    )


def _reads_part_of_tensor(call: RegionCall) -> bool:
    """Return True if more was read of a tensor among the arguments than what its kind has."""
    tensors = (vt for vt in call.leaves if is_a(vt, TensorTracker))
    sources = {vt.source for vt in tensors if vt.source is not None}
    for guard in call.t.every_guard() if sources else ():
        for source in guard.sources:
            is_kind = source in sources and type(guard.kind) is TensorMatch
            if not is_kind and any(step in sources for step in source.steps()):
                return True
    return False


def _tensors_read(call: RegionCall, facts: Facts) -> dict[Source, Any] | None:
    """Return the tensors among the parts of the objects, by relative sources, with their kinds."""
    found: dict[Source, Any] = {}
    for fact in facts.found:
        if type(fact.kind) is TensorMatch:
            real = fact.source.evaluate(call.state)
            vt: Any = call.t.heap.trackers.get(id(real))
            if vt is None or real_of(vt) is not real or not _is_plain_input(vt):
                return None
            found[fact.source] = (type(real), *kind_with_history(vt.example))
    return found


def _is_plain_input(vt: Any) -> bool:
    return is_a(vt, TensorTracker) and type(vt) is TensorTracker and is_plain(vt)


def _objects_read(call: RegionCall, facts: Facts) -> Iterable[tuple[type, Source]]:
    for vt in call.t.heap.trackers.values():
        if is_pending(vt) or vt.source is None or not facts.mentions(vt.source):
            continue
        if (source := facts.relative_to_objects(vt.source)) is not None:
            yield vt.cls, source


def _input(
    call: RegionCall, place: ValueOrigin, tensors: dict[Source | int, GraphValue]
) -> GraphValue:
    """`tensors` has those of parts by their sources, those of new objects by their numbers."""
    kind, where = place
    found: GraphValue = tensors[where] if kind in ("part", "numbered") else where
    return call.leaves[where].traced if kind == "argument" else found


def _placed(
    result: Any, call: RegionCall, fragment: Fragment, known: dict[int, ValueOrigin]
) -> ValueOrigin | None:
    """Return the place of a result; None for one that has none. `known`: the places by results, of
    which each has one, however often it is among them."""
    if id(result) in known:
        return known[id(result)]
    place = None if is_pending(result) else _new_place(result, call, fragment, known)
    if place is not None:
        known[id(result)] = place
    return place


def _new_place(
    result: Any, call: RegionCall, fragment: Fragment, known: dict[int, ValueOrigin]
) -> ValueOrigin | None:
    for index, leaf in enumerate(call.leaves):
        if leaf is result:
            return "argument", index
    if type(result) is ConstantTracker and result.source is None:
        return "constant", result
    if type(result) is TensorTracker:
        is_of_call = result.source is None and result.before.node in fragment.nodes
        return ("node", result.before.node) if is_of_call and is_plain(result) else None
    if type(result) is TupleTracker and result.cls is tuple and result.source is None:
        items = [_placed(item, call, fragment, known) for item in result.items]
        return None if None in items else ("tuple", items)
    return None


def _nodes_in(place: ValueOrigin) -> list[Node]:
    kind, where = place
    if kind == "tuple":
        return [node for item in where for node in _nodes_in(item)]
    return [where] if kind == "node" else []


def _result(
    t: Space,
    place: ValueOrigin,
    call: RegionCall,
    nodes: dict[Node, GraphValue],
    known: dict[int, Any],
) -> Any:
    """Return the result at a place. `known`: the results by places, of which each has one."""
    kind, where = place
    if kind == "argument":
        return call.leaves[where]
    if kind == "constant":
        return where
    if id(place) in known:
        return known[id(place)]
    if kind == "node":
        result = from_traced(t, nodes[where])
    else:
        result = TupleTracker([_result(t, item, call, nodes, known) for item in where])
    known[id(place)] = result
    return result
