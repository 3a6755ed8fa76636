"""Transforms of torch.func in graphs that torch captured: their levels become one node again.

    _vmap_increment_nesting(4, "error")
    a = _add_batch_dim(x, 0, 1)                 def body(a, w):
    b = a * w                                       return (a * w,)
    c = _remove_batch_dim(b, 1, 4, 0)           c = vmapped(body, (0,), (0,), "error", x, w)[0]
    _vmap_decrement_nesting()

Levels of the interpreter stack are not entered while tracing, so the steps as such cannot be
traced. A level inside another one is part of its body, which is treated alike when it is called.
"""

from __future__ import annotations

import operator
import weakref
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import torch
from attrs import Factory, define
from stator_guards import CapturedSource
from stator_variables import (
    GENERATED_FORWARD,
    MISSING,
    Args,
    FunctionTable,
    Kwargs,
    Space,
    real_of,
    wrap,
)
from torch._C import _functorch as functorch
from torch._functorch import eager_transforms, predispatch
from torch.autograd import forward_ad
from torch.fx import Graph, GraphModule, Node

from stator_subgraphs._operators import _transform_targets as targets

handlers = FunctionTable("transform")

_VMAP, _GRAD = predispatch._vmap_increment_nesting, functorch._grad_increment_nesting
_JVP = predispatch._jvp_increment_nesting
_OPENING: dict[Any, Any] = {
    _VMAP: predispatch._vmap_decrement_nesting,
    _GRAD: functorch._grad_decrement_nesting,
    _JVP: predispatch._jvp_decrement_nesting,
}
_ENTRIES = (predispatch._add_batch_dim, functorch._wrap_for_grad, predispatch._make_dual)
_EXITS = (predispatch._remove_batch_dim, predispatch._unwrap_for_grad)
_LOADS = (predispatch.lazy_load_decompositions, forward_ad._maybe_load_decompositions)
_GRADIENTS: Any = eager_transforms._autograd_grad
_MARK: Any = eager_transforms._set_tensor_requires_grad
_BOOKKEEPING = (
    *_LOADS,
    functorch.set_inplace_requires_grad_allowed,
    torch._C._autograd._saved_tensors_hooks_disable,
    torch._C._autograd._saved_tensors_hooks_enable,
    torch._C._set_fwd_grad_enabled,
    predispatch._enter_dual_level,
    predispatch._exit_dual_level,
)
_known: weakref.WeakKeyDictionary[GraphModule, Any] = weakref.WeakKeyDictionary()


@handlers.handles(GENERATED_FORWARD)
def forward(t: Space, args: Args, kwargs: Kwargs) -> Any:
    """Call the code of a graph with one node for each transform, if it has levels of any."""
    module: Any = real_of(args[0])
    if not any(node.target in _OPENING for node in module.graph.nodes):
        return MISSING
    if module not in _known:
        _known[module] = _folded(module)
    if (made := _known[module]) is MISSING:
        return MISSING
    return t.call(wrap(t, made, CapturedSource("forward", made)), args, kwargs)


@handlers.handles(*_LOADS)
def load(t: Space, args: Args, kwargs: Kwargs) -> None:
    """Functions that import decompositions, which traced code cannot observe."""


def _folded(module: GraphModule) -> Any:
    """Return the code with a node for each transform; MISSING for steps in an unknown order."""
    folding = _Folding(module)
    try:
        folding.run()
    except (LookupError, ValueError):  # a value that is not where these steps have it
        return MISSING
    return type(GraphModule(module, folding.graph)).forward


def _calling(target: Callable[..., Any], *first: object) -> Callable[..., Any]:
    """Return a target of nodes that gets the values of the graph only."""

    def transform(*inputs: object) -> Any:
        return target(*first, *inputs)

    return transform


@define(eq=False)
class _Folding:
    """The new graph of a module. `values` has its node for each one of the old graph, `pulls` the
    function from cotangents to gradients for each node that calls one behind its level."""

    module: GraphModule
    graph: Graph = Factory(Graph)
    values: dict[Node, Node] = Factory(dict)
    pulls: dict[Node, Node] = Factory(dict)

    def run(self) -> None:
        nodes = iter(self.module.graph.nodes)
        for node in nodes:
            if node.target in _OPENING:
                _RECORDS[node.target](self, _Level.of(self.module, node, nodes))
            elif node in self.pulls:
                self.values[node] = _pulled(self.graph, self.pulls[node], node, self.values)
            elif node.target not in _BOOKKEEPING:
                self.values[node] = self.graph.node_copy(node, self.values.__getitem__)

    def item(self, node: Node, index: object) -> Node:
        arguments: Any = (node, index)
        return self.graph.call_function(operator.getitem, arguments)

    def transform(
        self,
        level: _Level,
        results: Sequence[Node],
        target: Callable[..., Any],
        options: tuple[object, ...],
        *more: Node,
    ) -> Node:
        """Record the transform of the body with these results; `more` are inputs after those that
        enter the level."""
        body, lifted, pulled = level.body(results, self.pulls)
        entering = [_argument(node, 0) for node in level.entries]
        inputs = [self.values[node] for node in (*entering, *more, *lifted)]
        inputs += map(self.pulls.__getitem__, pulled)
        return self.graph.call_function(_calling(target, body, *options), tuple(inputs))

    def vmap(self, level: _Level) -> None:
        in_dims, out_dims = (
            tuple(node.args[position] for node in nodes)
            for nodes, position in ((level.entries, 1), (level.exits, 3))
        )
        options = in_dims, out_dims, level.opening.args[1]
        made = self.transform(level, level.left, targets.vmapped, options)
        for index, node in enumerate(level.exits):
            self.values[node] = self.item(made, index)

    def grad(self, level: _Level) -> None:
        """Gradients inside of the level are those of `grad_and_value`; behind it, those of
        `vjp`."""
        if not (inside := level.find(_GRADIENTS)):
            self._vjp(level)
            return
        value, differentiated = _value_and_inputs(inside[0])
        gradients = {part: part.args[1] for part in inside[0].users}
        others = [node for node in level.left if node not in gradients and node is not value]
        options = level.places(differentiated), len(level.entries)
        made = self.transform(level, [value, *others], targets.value_and_grads, options)

        grads, main, more = (self.item(made, index) for index in range(3))
        parts = {node: self.item(grads, index) for node, index in gradients.items()}
        parts |= {node: self.item(more, index) for index, node in enumerate(others)}
        parts[value] = main
        self.values.update(zip(level.exits, map(parts.__getitem__, level.left), strict=True))

    def _vjp(self, level: _Level) -> None:
        later = [
            node
            for node in self.module.graph.find_nodes(op="call_function", target=_GRADIENTS)
            if level.nodes.issuperset(_sequence(node.args[0]))
        ]
        outputs = _sequence(later[0].args[0]) if later else []
        others = [node for node in level.left if node not in outputs]
        differentiated: Any = later[0].args[1] if later else level.find(_MARK)
        options = level.places(differentiated), len(level.entries), len(outputs)
        made = self.transform(level, [*outputs, *others], targets.pulled_back, options)

        given, more, pull = (self.item(made, index) for index in range(3))
        parts = {node: self.item(given, index) for index, node in enumerate(outputs)}
        parts |= {node: self.item(more, index) for index, node in enumerate(others)}
        self.values.update(zip(level.exits, map(parts.__getitem__, level.left), strict=True))
        self.pulls.update(dict.fromkeys(later, pull))

    def jvp(self, level: _Level) -> None:
        duals = level.find(predispatch._unpack_dual)
        results = [_argument(node, 0) for node in duals]
        tangents = [_argument(node, 1) for node in level.entries]
        count = len(level.entries)
        options = tuple(range(count)), count, len(results), False
        made = self.transform(level, results, targets.pushed_forward, options, *tangents)
        for node, half in zip(level.exits, level.left, strict=True):
            part = self.item(made, half.args[1])  # results or tangents
            self.values[node] = self.item(part, duals.index(_argument(half, 0)))


_RECORDS: dict[Any, Callable[[_Folding, _Level], None]] = {
    _VMAP: _Folding.vmap,
    _GRAD: _Folding.grad,
    _JVP: _Folding.jvp,
}


@define(eq=False)
class _Level:
    """The nodes between the two ends of a level; `own` are those in no level further inside."""

    module: GraphModule
    opening: Node
    nodes: set[Node] = Factory(set)
    own: list[Node] = Factory(list)

    @classmethod
    def of(cls, module: GraphModule, opening: Node, rest: Iterator[Node]) -> _Level:
        """Take the nodes of a level from those that follow its opening."""
        level, depth = cls(module, opening), 0
        for node in rest:
            if depth == 0 and node.target is _OPENING[opening.target]:
                break
            depth += node.target in _OPENING
            level.nodes.add(node)
            if not depth:
                level.own.append(node)
            depth -= node.target in _OPENING.values()
        return level

    def find(self, *wanted: Any) -> list[Node]:
        return [node for node in self.own if node.target in wanted]

    @property
    def entries(self) -> list[Node]:
        return [node for node in self.find(*_ENTRIES) if node.users]

    @property
    def exits(self) -> list[Node]:
        return self.find(*_EXITS)

    @property
    def left(self) -> list[Node]:
        """The values inside that leave the level."""
        return [_argument(node, 0) for node in self.exits]

    def places(self, differentiated: Sequence[Node]) -> tuple[int, ...]:
        """Return the positions of inputs among what enters."""
        marks = {mark: mark.args[0] for mark in self.find(_MARK)}
        return tuple(self.entries.index(marks.get(node, node)) for node in differentiated)  # type: ignore[arg-type]

    def body(
        self, results: Sequence[Node], pulls: Mapping[Node, Node]
    ) -> tuple[GraphModule, list[Node], list[Node]]:
        """Return the body over what enters, the values of the graph around that it uses, and the
        nodes that call functions from cotangents to gradients of a level before."""
        pulled = [node for node in self.find(_GRADIENTS) if node in pulls]
        split = [
            node for node in self.find(_GRADIENTS, predispatch._unpack_dual) if node not in pulled
        ]
        dropped = {*self.find(*_ENTRIES, *_EXITS, *_BOOKKEEPING, _MARK), *split}
        dropped.update(user for node in split for user in node.users)

        copied = [node for node in self.module.graph.nodes if node in self.nodes - dropped]
        used = [
            each
            for node in copied
            for each in (_cotangents(node) if node in pulled else node.all_input_nodes)
        ]
        lifted = [node for node in dict.fromkeys([*used, *results]) if node not in self.nodes]

        graph = Graph()
        inner = {node: graph.placeholder(node.name) for node in (*self.entries, *lifted)}
        inner.update((mark, inner[_argument(mark, 0)]) for mark in self.find(_MARK))
        functions = {node: graph.placeholder(f"{node.name}_pull") for node in pulled}
        for node in copied:
            if node in functions:
                inner[node] = _pulled(graph, functions[node], node, inner)
            else:
                inner[node] = graph.node_copy(node, inner.__getitem__)
        graph.output(tuple(inner[node] for node in results))
        return GraphModule(self.module, graph), lifted, pulled


def _pulled(graph: Graph, pull: Node, node: Node, values: Mapping[Node, Node]) -> Node:
    """Record the call of a function from cotangents to gradients for a node that computes these."""
    flags = node.kwargs.get("retain_graph", True), node.kwargs.get("create_graph")
    arguments: Any = (pull, *flags, *map(values.__getitem__, _cotangents(node)))
    return graph.call_function(targets.cotangents_pulled, arguments)


def _cotangents(node: Node) -> list[Node]:
    names = ("outputs", "inputs", "grad_outputs")
    named = {**dict(zip(names, node.args, strict=False)), **node.kwargs}
    return _sequence(named["grad_outputs"])


def _value_and_inputs(gradients: Node) -> tuple[Node, Sequence[Node]]:
    outputs, inputs, *_ = map(_sequence, gradients.args)
    (value,) = outputs
    return value, inputs


def _sequence(argument: Any) -> list[Node]:
    return [*argument]


def _argument(node: Node, index: int) -> Node:
    found: Any = node.args[index]
    if not isinstance(found, Node):
        raise ValueError(f"{node} has no node as its argument {index}")
    return found
