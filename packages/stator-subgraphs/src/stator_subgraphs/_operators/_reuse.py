"""Reuse of a traced region: its body serves a call that would be traced alike.

Forty-eight layers of one class give the same body with other parameters. The assumptions of tracing
are in the guards: those about parts of an object among the arguments have to hold for the same
parts of the new one, which are then guarded too, and the values that the body uses are read from
the same places. A region that does more than compute, or reads more than its arguments, is traced
each time; so is every region once the program has mutated an existing object.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from enum import Enum
from typing import Any, NamedTuple

import torch
from attrs import evolve, frozen
from stator_guards import (
    Equals,
    Guard,
    Is,
    ParameterSource,
    PartSource,
    Source,
    TypeSource,
    moved_source,
)
from stator_variables import (
    MISSING,
    UNTOLD,
    Args,
    ConstantTracker,
    GlobalModes,
    Kwargs,
    Space,
    Spec,
    TensorTracker,
    TupleTracker,
    flatten,
    history_of,
    is_a,
    real_of,
    source_of,
    unflatten,
    wrap,
)
from torch import Tensor
from torch.fx import GraphModule, Node

from stator_subgraphs._captured_graph import Body
from stator_subgraphs._outer_value import local_value
from stator_subgraphs._structure import rebuild

ValueOrigin = tuple[str, Any]
"""The place of a value: ("argument", position), ("part", a source), ("kept", a symbol); of a result
also ("input", position), ("output", position), ("constant", tracker); of a call that is recorded
again ("node", one of the first call) and ("tuple", places)."""


# -- a call ----------------------------------------------------------------------------------------
@frozen(eq=False)
class RegionCall:
    """One call of a region: its function, the leaves of its arguments, and the facts that two calls
    must share."""

    t: Space
    leaves: list[Any]
    outline: Any

    @classmethod
    def of(cls, t: Space, function: object, args: Args, kwargs: Kwargs) -> RegionCall | None:
        """None for one whose body cannot serve another call, nor the other way round."""
        if real_of(function) is MISSING:
            return None
        leaves, spec = flatten(t, TupleTracker([*args, *kwargs.values()]))
        if not _only_tuples(spec) or not all(map(_is_known, leaves)):
            return None
        first = {id(_identity(leaf)): index for index, leaf in reversed(list(enumerate(leaves)))}
        kinds = [(first[id(_identity(leaf))], _kind(leaf)) for leaf in leaves]
        modes = [
            torch.is_grad_enabled(),
            *((setting.text, setting.key, setting.now) for setting in t.state(GlobalModes).starts),
        ]
        return cls(t, leaves, (id(real_of(function)), tuple(kwargs), spec, kinds, modes))

    @property
    def objects(self) -> dict[str, Any]:
        """The objects among the leaves, by their names in `ReusableRegion.facts`."""
        return {
            f"argument_{index}": leaf for index, leaf in enumerate(self.leaves) if _is_object(leaf)
        }

    @property
    def state(self) -> dict[str, Any]:
        return {name: real_of(leaf) for name, leaf in self.objects.items()}


def _only_tuples(spec: Spec) -> bool:
    """Return True if the structure consists of tuples, which the body cannot change."""
    return spec.cls is None or (spec.cls is tuple and all(map(_only_tuples, spec.children)))


def _is_object(vt: Any) -> bool:
    return not is_a(vt, TensorTracker) and vt.constant() is MISSING


def _is_known(vt: object) -> bool:
    if is_a(vt, TensorTracker):
        return vt.namespace is None and vt.grad is MISSING
    return not _is_object(vt) or (
        real_of(vt) is not MISSING and isinstance(source_of(vt), PartSource)
    )


def _identity(vt: object) -> Any:
    return vt.traced.node if is_a(vt, TensorTracker) else vt


def _kind(vt: Any) -> Any:
    if not is_a(vt, TensorTracker):
        return vt.cls, None if _is_object(vt) else repr(_constant(vt.constant()))
    return vt.cls, *kind_with_history(vt.example)


def kind_with_history(example: Any) -> tuple[Any, ...]:
    """Return what operators and the program may find of an example: its properties, and whether it
    has a history."""
    if not isinstance(example, Tensor):
        return (kind_of(example),)
    bits = (
        _is_leaf(example),
        example.is_conj(),
        example.is_neg(),
        example.is_inference(),
    )
    return kind_of(example), bits


def _is_leaf(tensor: Tensor) -> bool | None:
    """Return None for a view whose base was written to, so that autograd does not expose its
    history."""
    history = history_of(tensor)
    return None if history is UNTOLD else history is None


def _constant(value: object) -> Any:
    """Return a key by which a constant differs from others in a graph: the texts of enumeration
    members are the program's."""
    return ("member", id(value)) if isinstance(value, Enum) else (type(value), value)


# -- what was traced -------------------------------------------------------------------------------
@frozen(eq=False)
class ReusableRegion:
    """One that was traced: what its body relies on, where its inputs are from, what it gives."""

    body: Body
    outline: Any
    facts: list[Guard]  # about parts of the objects among the arguments, which are parameters there
    aliased: dict[Source, Alias]
    inputs: list[ValueOrigin]
    spec: Spec
    results: list[ValueOrigin]
    in_body: bool

    @classmethod
    def of(
        cls, call: RegionCall, body: Body, result: object, changed: Sequence[Any]
    ) -> ReusableRegion | None:
        """`changed` are the objects that the body changed."""
        t = call.t
        touches = t.heap.changed or any(is_a(vt, TensorTracker) for vt in changed) or body.written
        if touches or body.arguments or body.tracer.unbacked:
            return None
        given = [_outside(body, leaf) for leaf in call.leaves]
        facts = Facts(call, given)
        inputs = [facts.place(traced) for traced in body.lifted]
        leaves, spec = flatten(t, result)
        results = [_result(body, leaf) for leaf in leaves]
        if None in inputs or None in results or facts.found is None:
            return None

        region = cls(
            body,
            call.outline,
            facts.found,
            facts.aliased,
            inputs,  # type: ignore[arg-type]  # none is None
            spec,
            results,  # type: ignore[arg-type]
            bool(t.touched),
        )
        same = zip(body.outputs, region.example(t), strict=True)
        return region if all(_is_like(value, again) for value, again in same) else None

    def serves(self, call: RegionCall) -> bool:
        keeps = any(kind == "kept" for kind, _ in self.inputs)
        if self.outline != call.outline or (keeps and (self.in_body or call.t.touched)):
            return False
        state = call.state
        return all(fact.holds(state) for fact in self.facts)

    def operands(self, call: RegionCall) -> list[Any] | None:
        """Return the operands of the body in this call, and guard the facts about parts that it
        relies on."""
        moved: dict[Any, Source] = {name: source_of(leaf) for name, leaf in call.objects.items()}
        rely_on(call.t, self.facts, self.aliased, moved)
        found = [_read(call, kind, where, moved) for kind, where in self.inputs]
        pairs = zip(found, self.body.inputs, strict=True)
        return (
            found if all(kind_of(value.example) == kind_of(had) for value, had in pairs) else None
        )

    def example(self, t: Space) -> tuple[Any, ...]:
        """Return the outputs of the body on fakes, in memory of their own."""
        with t.graph.fake_mode:
            return tuple(
                value.clone() if isinstance(value, Tensor) else value for value in self.body.outputs
            )

    def given(self, t: Space, operands: Sequence[Any], outputs: Sequence[Any]) -> Any:
        values = {"input": operands, "output": outputs}
        leaves = [
            where if kind == "constant" else values[kind][where] for kind, where in self.results
        ]
        return unflatten(t, leaves, self.spec)


def _is_like(value: Any, again: Any) -> bool:
    return (
        isinstance(value, Tensor)
        and kind_of(value) == kind_of(again)
        and _is_leaf(value) == _is_leaf(again)
    )


def _result(body: Body, leaf: object) -> ValueOrigin | None:
    if is_a(leaf, ConstantTracker) and leaf.source is None:
        return "constant", leaf
    if not is_a(leaf, TensorTracker):
        return None
    if leaf.traced.node in body.tracer.given:
        return "output", body.tracer.given[leaf.traced.node]
    lifted, node = [traced.node for traced in body.lifted], _outside(body, leaf)
    return ("input", lifted.index(node)) if node in lifted else None


def _outside(body: Body, leaf: object) -> Any:
    """The node of a tensor in the graph around the body."""
    assert body.tracer.parent is not None
    return local_value(body.tracer.parent, leaf.traced).node if is_a(leaf, TensorTracker) else None


def _read(call: RegionCall, kind: str, where: Any, moved: dict[Any, Source]) -> Any:
    if kind == "argument":
        return call.leaves[where]
    if kind == "kept":
        return where
    return wrap(call.t, where.evaluate(call.state), moved_source(where, moved))


# -- what it relies on -----------------------------------------------------------------------------
class Alias(NamedTuple):
    """An object that another path leads to."""

    vt: Any
    known: Source
    """The other path, which is no part of the objects among the arguments."""


def rely_on(
    t: Space, facts: Iterable[Guard], aliased: Mapping[Any, Alias], moved: dict[Any, Source]
) -> None:
    """Guard the facts about the objects of another call, of which they hold.

    That a path leads to a known object is guarded as such, since the next call may have another
    one in both places.
    """
    for fact in facts:
        source = moved_source(fact.source, moved)
        if (alias := aliased.get(fact.source)) is not None and type(fact.kind) is Is:
            t.heap.aliases.append((alias.vt, alias.known, source))
        else:
            t.guard(source, fact.kind, fact.where)


class Facts:
    """The facts that the trace established about parts of the arguments; `found` is None if one
    cannot be transferred to others."""

    def __init__(self, call: RegionCall, given: list[Any], indices: Container[Source] = ()) -> None:
        """`given` are the nodes of the tensors among the arguments, None for other arguments;
        `indices` select items of new objects, and may be others in another call."""
        self.call = call
        self.given = given
        self.indices = indices
        self.names = {source_of(leaf): name for name, leaf in call.objects.items()}
        self.mentioned: dict[Source, bool] = dict.fromkeys(self.names, True)
        self.relative: dict[Any, Source | None] = {
            source: ParameterSource(name) for source, name in self.names.items()
        }

        tensors = [
            vt for vt in call.t.heap.trackers.values() if type(vt) is TensorTracker and vt.source
        ]
        self.sources = {vt.traced.node: vt.source for vt in tensors}
        self.aliased: dict[Source, Alias] = {}

        found = [*self._guards(), *self._aliases()]
        self.found: Any = (
            None if None in found else [guard for guard in found if not _is_of_class(guard)]
        )

    def _guards(self) -> Iterator[Guard | None]:
        t = self.call.t
        selected = t.heap.selected.items()
        for guard in [
            *t.every_guard(self._may_mention),
            *t.heap.guards_on_unread(),
            *(Guard(each, Equals(index)) for each, index in selected if each not in self.indices),
        ]:
            if any(map(self.mentions, guard.sources)):
                source = self.relative_to_objects(guard.source)
                yield (
                    None if source is None or guard.kind.others else evolve(guard, source=source)
                )

    def _aliases(self) -> Iterator[Guard | None]:
        """An object that two paths lead to is known by one of them: by the other it has to be that
        very object."""
        for tracker, known, other in self.call.t.heap.aliases:
            if any(tracker is leaf for leaf in self.call.leaves if is_a(leaf, TensorTracker)):
                yield None
            elif self.mentions(other):
                source = None if self.mentions(known) else self.relative_to_objects(other)
                if source is None:
                    yield None
                else:
                    self.aliased[source] = Alias(tracker, known)
                    yield Guard(source, Is(real_of(tracker)))

    def mentions(self, source: Source) -> bool:
        """Return True for a part of the objects, and for what is worked out from one."""
        passed: list[Source] = []
        while (known := self.mentioned.get(source)) is None:
            passed.append(source)
            if not isinstance(source, PartSource):
                known = any(map(self.mentions, source.children))
                break
            source = source.whole
        self.mentioned.update(dict.fromkeys(passed, known))
        return known

    def _may_mention(self, root: Source) -> bool:
        """Return True if facts about parts of a source may be about parts of the objects."""
        return self.mentions(root) or any(root in source.steps() for source in self.names)

    def relative_to_objects(self, source: Any) -> Source | None:
        if source not in self.relative:
            whole = (
                self.relative_to_objects(source.whole) if isinstance(source, PartSource) else None
            )
            self.relative[source] = None if whole is None else evolve(source, whole=whole)
        return self.relative[source]

    def place(self, traced: Any) -> ValueOrigin | None:
        """Return the place of a value that the body uses; None if it has none."""
        if traced.node in self.given:
            return "argument", self.given.index(traced.node)
        if isinstance(traced.example, torch.SymInt):
            return "kept", traced
        source = self.relative_to_objects(self.sources.get(traced.node))
        return None if source is None else ("part", source)


def _is_of_class(guard: Any) -> bool:
    """A fact about the class of a part: which class it is is a fact as well, so this one is
    known."""
    source = guard.source
    while isinstance(source, PartSource) and not isinstance(source, TypeSource):
        source = source.whole
    return isinstance(source, TypeSource) and source is not guard.source


# Whether two bodies are the same: the same operators over inputs of the same kind, in the same
# order.


def is_same(one: Body, other: Body) -> bool:
    """Return True if the modules of two bodies are interchangeable."""
    return _written_down(one.module) == _written_down(other.module)


def _written_down(module: GraphModule) -> list[Any]:
    nodes = list(module.graph.nodes)
    number = {node: index for index, node in enumerate(nodes)}

    def leaf(item: object) -> Any:
        return ("node", number[item]) if isinstance(item, Node) else _constant(item)

    def parts(node: Node) -> Any:
        return repr((rebuild(tuple(node.args), leaf), rebuild(dict(node.kwargs), leaf)))

    return [
        (node.op, _target(module, node), kind_of(node.meta.get("example_value")), parts(node))
        for node in nodes
    ]


def _target(module: GraphModule, node: Node) -> Any:
    if node.op == "get_attr":
        return id(getattr(module, str(node.target)))
    return None if node.op in ("placeholder", "output") else node.target


def kind_of(example: object) -> Any:
    """Return the properties of an example that operators may depend on; numbers by their symbolic
    expression."""
    if isinstance(example, Tensor):
        layout = (
            (example.shape, example.stride(), example.storage_offset())
            if example.layout is torch.strided
            else ()
        )
        return repr((type(example), example.dtype, example.device, example.requires_grad, layout))
    return (
        repr([kind_of(item) for item in example])
        if isinstance(example, tuple | list)
        else repr(example)
    )
