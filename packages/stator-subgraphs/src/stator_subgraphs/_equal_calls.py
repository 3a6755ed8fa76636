"""Equal calls of modules in one trace: what the first one does is repeated, not interpreted.

    layers[0](x)   interpreted: guards about layers[0], nodes n1 .. n22, the result n22
    layers[1](x)   the same guards hold of layers[1]: they are added for it, and the nodes are
                   recorded again with its parameters and with this x

A call is repeated if nothing that the first one read can be another for this one: all guards about
its objects hold of the same parts of the new ones, the tensors that it takes are alike, and the
modes are the same. It must have done nothing but compute: any other effect, and the call is
interpreted each time. So it is once the program has mutated an existing object.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import torch
from attrs import Factory, define, field
from stator_bytecode.errors import Unsupported
from stator_guards import Guard, Source, TensorMatch
from stator_variables import (
    MISSING,
    Args,
    ConstantTracker,
    GraphValue,
    Kwargs,
    Space,
    TensorTracker,
    TupleTracker,
    from_traced,
    is_a,
    is_pending,
    real_of,
    source_of,
    wrap,
)
from torch.fx import Node

from stator_subgraphs._fragment import Fragment, fragment_of, record_again
from stator_subgraphs._operators._reuse import (
    Facts,
    RegionCall,
    ValueOrigin,
    kind_with_history,
    moved_source,
)
from stator_subgraphs._state import GraphState

MANY = 4
"""The calls of one class that a call is compared with."""
PATIENCE = 2
"""The failures after which the calls of a class are interpreted without looking for equal ones."""


@define(eq=False)
class EqualCalls:
    """See the module. One for each trace, of which `t` is the state."""

    t: Space
    state: GraphState
    known: dict[type, list[InterpretedCall]] = Factory(dict)
    failures: dict[type, int] = Factory(dict)

    def begun(self, function: Any, args: Args, kwargs: Kwargs) -> Callable[[Any], None] | None:
        """Note a call that is interpreted now; the function is called with its result."""
        start = _moment(self.t, self.state)
        last = self._last_node()

        def returned(result: Any) -> None:
            if start is not None and start == _moment(self.t, self.state):
                self._remember(function, args, kwargs, (last, self._last_node()), result)

        return None if start is None else returned

    def repeated(self, function: Any, args: Args, kwargs: Kwargs) -> Any:
        """Return the result of a call that does what an earlier one did; MISSING without one."""
        cls = type(real_of(args[0]))
        known = self.known.get(cls)
        if not known or self.failures.get(cls, 0) >= PATIENCE:
            return MISSING
        start = _moment(self.t, self.state)
        call = None if start is None else called(self.t, function, args, kwargs)
        if call is None:
            return MISSING
        tried = False
        for earlier in known:
            if earlier.moment == start and earlier.call.outline == call.outline:
                tried = True
                if (result := earlier.repeat(self.state, call)) is not MISSING:
                    return result
        if tried:
            self.failures[cls] = self.failures.get(cls, 0) + 1
        return MISSING

    def _remember(
        self, function: Any, args: Args, kwargs: Kwargs, nodes: tuple[Node, Node], result: Any
    ) -> None:
        known = self.known.setdefault(type(real_of(args[0])), [])
        if len(known) >= MANY:
            return
        call = called(self.t, function, args, kwargs)
        if call is not None and nodes[0].graph is not None:
            start = _moment(self.t, self.state)
            interpreted = InterpretedCall(call, start, nodes, result)
            known.append(interpreted)
            self.t.journal.record(lambda: known.remove(interpreted))

    def _last_node(self) -> Node:
        return self.state.root.graph._root.prev


@define(eq=False)
class InterpretedCall:
    """One call that was interpreted. The summary of it is made when another call looks equal."""

    call: RegionCall
    moment: Any
    nodes: tuple[Node, Node]
    """The last nodes before it and in it."""
    result: Any
    summary: Any = field(default=None, init=False)
    """A `Summary`, or False for a call that cannot be repeated."""

    def repeat(self, state: GraphState, call: RegionCall) -> Any:
        """Return the result of `call`, recorded again; MISSING if it differs from this one."""
        if self.summary is None:
            self.summary = summary_of(self, state) or False
        if not self.summary:
            return MISSING
        return self.summary.repeat(state, call)


def called(t: Space, function: Any, args: Args, kwargs: Kwargs) -> RegionCall | None:
    """Return the call as one that may be like another; None for one of unread or new objects."""
    leaves = [*args, *kwargs.values()]
    if any(map(_is_open, leaves)):
        return None
    return RegionCall.of(t, function, args, kwargs)


def _is_open(vt: Any) -> bool:
    """Return True for an argument that nothing is known of without reading it, or that may be
    changed."""
    if is_pending(vt):
        return True
    if type(vt) is TupleTracker:
        return vt.cls is not tuple or any(map(_is_open, vt.items))
    return type(vt) is TensorTracker and not is_plain(vt)


def is_plain(vt: TensorTracker) -> bool:
    """Return True for a tensor to which nothing was attached or assigned."""
    return (
        vt.namespace is None
        and vt.data is MISSING
        and vt.grad is MISSING
        and vt.node is vt.tangent is vt.connected is None
        and not (vt.is_new or vt.is_late or vt.drops_grad)
    )


def _moment(t: Space, state: GraphState) -> Any:
    """Return what two equal calls have in common besides their arguments, and what none of them may
    change; None where no call is repeated."""
    if t.heap.changed or t.touched or t.levels or t.scripted or t.is_sealed or t.streams.steps:
        return None
    if t.overrides.modes or t.cached.trial is not None or state.current is not state.root:
        return None
    heap, lifetimes = t.heap, t.lifetimes
    counted = (
        *(t.warnings, t.hooks, t.cached.calls, t.cached.varying, t.user_hashes.given),
        *(heap.assumed_distinct, heap.named, heap.made, t.memory.copied, t.parts),
        *(lifetimes.observable, lifetimes.ended_locals, lifetimes.assumed_unobserved),
        *(state.mode_undo, state.root.written, state.held, state.differentiated),
        *(t.representing, t.inference.entered, t.inference.left, t.modes),
    )
    flags = (t.makes_leaves, t.differentiates, t.has_reentrant, t.inference.ever)
    more = (t.overrides.depth, t.overrides.subclasses, t.memory.has_arrays, t.memory.has_wrappers)
    modes = torch.is_grad_enabled(), torch.is_inference_mode_enabled(), state.keeps_history
    return (*map(len, counted), *flags, *more, *modes)


# -- the summary of a call -------------------------------------------------------------------------
@define(eq=False)
class Summary:
    """The facts that a call relied on about parts of its objects, which are parameters there; the
    nodes that it recorded; its result as places."""

    call: RegionCall
    facts: list[Guard]
    read: list[tuple[type, Source]]
    """The objects that it read: their classes and sources."""
    tensors: dict[Source, Any]
    """The tensors that it read, and their kinds."""
    fragment: Fragment
    kinds: list[Any]
    """The kinds of the inputs of the nodes."""
    result: ValueOrigin

    def repeat(self, state: GraphState, call: RegionCall) -> Any:
        known = call.state
        if not all(fact.holds(known) for fact in self.facts):
            return MISSING
        t = call.t
        moved: dict[Any, Source] = {name: source_of(leaf) for name, leaf in call.objects.items()}
        tensors = self._tensors(call, known, moved)
        if tensors is None:
            return MISSING
        inputs = [_input(call, place, tensors) for place in self.fragment.inputs]
        if [kind_with_history(traced.example) for traced in inputs] != self.kinds:
            return MISSING
        mark = t.graph.mark()
        try:
            nodes = record_again(state, self.fragment, inputs, self.call.leaves[0], call.leaves[0])
        except Unsupported:  # interpreted, it is refused where the program does it
            t.graph.rollback(mark)
            return MISSING
        for fact in self.facts:
            t.guard(moved_source(fact.source, moved), fact.kind, fact.where)
        t.heap.repeated.append(lambda: self._read_again(moved))
        return _result(t, self.result, call, nodes)

    def _tensors(
        self, call: RegionCall, known: Any, moved: dict[Any, Source]
    ) -> dict[Source, GraphValue] | None:
        """Return the tensors of this call by the sources in the summary; None if one is not
        alike."""
        found: dict[Source, GraphValue] = {}
        for source, kind in self.tensors.items():
            value = source.evaluate(known)
            if type(value) is not kind[0]:
                return None
            vt: Any = wrap(call.t, value, moved_source(source, moved))
            if not _is_plain_input(vt) or kind_with_history(vt.example) != kind[1:]:
                return None
            found[source] = vt.traced
        return found

    def _read_again(self, moved: dict[Any, Source]) -> Iterable[tuple[type, Source]]:
        return [(cls, moved_source(source, moved)) for cls, source in self.read]


def summary_of(interpreted: InterpretedCall, state: GraphState) -> Summary | None:
    """Return None for a call that cannot be repeated."""
    call = interpreted.call
    given = [leaf.traced.node if is_a(leaf, TensorTracker) else None for leaf in call.leaves]
    facts = Facts(call, given)
    if facts.found is None or _reads_part_of_tensor(call):
        return None
    fragment = fragment_of(state, interpreted.nodes, facts.place)
    tensors = _tensors_read(call, facts)
    if fragment is None or tensors is None:
        return None
    result = _placed(interpreted.result, call, fragment)
    if result is None:
        return None
    kinds = [kind_with_history(traced.example) for traced in fragment.values]
    rest = [fact for fact in facts.found if type(fact.kind) is not TensorMatch]
    return Summary(call, rest, [*_objects_read(call, facts)], tensors, fragment, kinds, result)


def _reads_part_of_tensor(call: RegionCall) -> bool:
    """Return True if more was read of a tensor among the arguments than what its kind has."""
    tensors = (vt for vt in call.leaves if is_a(vt, TensorTracker))
    sources = {vt.source for vt in tensors if vt.source is not None}
    for guard in call.t.guards.values() if sources else ():
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


def _input(call: RegionCall, place: ValueOrigin, tensors: dict[Source, GraphValue]) -> GraphValue:
    kind, where = place
    if kind == "argument":
        traced: GraphValue = call.leaves[where].traced
        return traced
    found: GraphValue = where if kind == "kept" else tensors[where]
    return found


def _placed(result: Any, call: RegionCall, fragment: Fragment) -> ValueOrigin | None:
    """Return the place of a result; None for one that has none."""
    if is_pending(result):
        return None
    for index, leaf in enumerate(call.leaves):
        if leaf is result:
            return "argument", index
    if type(result) is ConstantTracker and result.source is None:
        return "constant", result
    if type(result) is TensorTracker:
        known = is_plain(result) and result.source is None and result.before.node in fragment.nodes
        return ("node", result.before.node) if known else None
    if type(result) is TupleTracker and result.cls is tuple and result.source is None:
        items = [_placed(item, call, fragment) for item in result.items]
        return None if None in items else ("tuple", items)
    return None


def _result(t: Space, place: ValueOrigin, call: RegionCall, nodes: dict[Node, GraphValue]) -> Any:
    kind, where = place
    if kind == "argument":
        return call.leaves[where]
    if kind == "constant":
        return where
    if kind == "node":
        return from_traced(t, nodes[where])
    return TupleTracker([_result(t, item, call, nodes) for item in where])
