"""One fx graph under construction: its nodes, its placeholders, and the symbols it binds.

A nested tracer is the body of a higher-order operator. `_outer_value` has the values that it takes
from the graphs around it, and gives to them. Explicit arguments come before what is lifted.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import torch
from attrs import Factory, define
from stator_bytecode.errors import InternalError
from stator_variables import GraphValue, Journal, Kwargs
from torch.fx import Graph, Node
from torch.nn import Parameter

from stator_subgraphs._fake import World
from stator_subgraphs._symbol import (
    Symbol,
    SymbolicTypes,
    expression_of,
    is_symbol,
)

KeyPath = tuple[Any, ...]


@define(eq=False)
class NodeFacts:
    """The effects of the nodes of one graph, as seen on fakes."""

    effects: set[Node] = Factory(set)  # nodes seen to change something
    written: list[torch.Tensor] = Factory(list)  # examples that were written to
    lasting: bool = False  # a write gave one from outside a history that nothing takes away again
    # shapes of what cannot be made again
    births: dict[Node, tuple[Any, Any]] = Factory(dict)


@define(eq=False)
class SubgraphTracer:
    """The state of one graph under construction. It lives as long as the scope it traces; `graph`
    then belongs to the module made of it.

    Invariants: every node in `lifted` is of the parent's graph; every symbol of an example is in
    `symbols`, or in `unbacked`, with the path to read it from a node here.
    """

    graph: Graph
    journal: Journal
    world: World
    hint: str
    parent: SubgraphTracer | None = None
    placeholders: list[Node] = Factory(list)
    explicit: int = 0  # how many of the placeholders are explicit arguments
    symbols: dict[Symbol, GraphValue] = Factory(dict)
    unbacked: dict[Symbol, tuple[GraphValue, KeyPath]] = Factory(dict)
    lifted: dict[Node, GraphValue] = Factory(dict)
    # what was lifted, in the parent's terms, in order
    outer: list[GraphValue] = Factory(list)
    # the one traced value of each node
    values: dict[Node, GraphValue] = Factory(dict)
    # parts of results that were used
    parts: dict[tuple[Node, Any], GraphValue] = Factory(dict)
    boxes: dict[Node, GraphValue] = Factory(dict)  # floats as tensors
    facts: NodeFacts = Factory(NodeFacts)
    # operators that give what their body gives
    called: dict[Node, SubgraphTracer] = Factory(dict)
    closed: bool = False  # the graph belongs to a module now
    # of graphs in here that were left, mine
    bodies: dict[Graph, SubgraphTracer] = Factory(dict)
    # what the operator gives of a body: position in its result
    given: dict[Node, int] = Factory(dict)
    # the operator, in the parent, when it gives what this body gives
    call: GraphValue | None = None
    function_stack: tuple[tuple[str, Any], ...] = ()  # the operators this body is inside of

    # -- nodes -------------------------------------------------------------------------------------
    def node(self, op: str, target: Any, args: tuple[Any, ...], kwargs: Kwargs) -> Node:
        if self.closed:
            raise InternalError(f"the body {self.hint} was left, and something goes on in it")
        node = self.graph.create_node(op, target, args, kwargs)
        self.journal.record(lambda: self._erase(node))
        return node

    def memoize(self, traced: GraphValue) -> GraphValue:
        self.values[traced.node] = traced
        return traced

    def _erase(self, node: Node) -> None:
        """A body that was left is taken back as a whole, by nothing referring to it any more."""
        self.values.pop(node, None)
        if not self.closed:
            self.graph.erase_node(node)

    def placeholder(self, hint: str, example: object, *, explicit: bool = False) -> GraphValue:
        """A new placeholder, after those of its kind and before every other node."""
        position = self.explicit if explicit else len(self.placeholders)
        node = self.graph.create_node(
            "placeholder", _identifier(hint), (), {}, type_expr=_annotation(example)
        )
        # the parameter of the generated function: hints may repeat, names do not
        node.target = node.name
        self._move(node, position)
        node.meta["example_value"] = example
        self.placeholders.insert(position, node)
        self.explicit += explicit
        self.journal.record(lambda: self._drop_placeholder(node, explicit))
        traced = self.memoize(GraphValue(node, example))
        self.note_symbol(traced)
        return traced

    def _move(self, node: Node, position: int) -> None:
        if position:
            self.placeholders[position - 1].append(node)
        elif (first := next(iter(self.graph.nodes))) is not node:
            first.prepend(node)

    def arrange(self, lifted: list[Node]) -> None:
        """The placeholders after the explicit ones, in this order."""
        self.placeholders[self.explicit :] = lifted
        for position, node in enumerate(self.placeholders):
            self._move(node, position)

    def _drop_placeholder(self, node: Node, explicit: bool) -> None:
        if not self.closed:
            self.placeholders.remove(node)
            self.explicit -= explicit
        self._erase(node)

    # -- symbols -----------------------------------------------------------------------------------
    def note_symbol(self, traced: GraphValue) -> None:
        """Bind the symbol, if the value is one as such, to be read from here on."""
        if (symbol := plain_symbol(traced.example)) is not None and symbol not in self.symbols:
            self.bind(symbol, traced)

    def bind(self, symbol: Symbol, traced: GraphValue) -> None:
        """Make `symbol` be read from this node from now on."""
        self.journal.put(self.symbols, symbol, traced)

    def bind_unbacked(self, bindings: dict[Symbol, KeyPath], producer: GraphValue) -> None:
        """Record symbols that an operator made; a node that reads one is only added on its first
        use."""
        for symbol, path in bindings.items():
            self.journal.put(self.unbacked, symbol, (producer, path))

    def note_box(self, number: GraphValue, tensor: GraphValue) -> None:
        """Record that this tensor, which nothing writes to, holds the float."""
        self.journal.put(self.boxes, number.node, tensor)

    # -- nodes that the program does not have ------------------------------------------------------
    def known(
        self, op: str, target: object, args: tuple[object, ...], example: object
    ) -> GraphValue:
        """A node of which it is known what it gives."""
        node = self.node(op, target, args, {})
        node.meta["example_value"] = example
        return self.memoize(GraphValue(node, example))

    def derived(
        self, source: GraphValue, op: str, target: object, args: tuple[object, ...], example: object
    ) -> GraphValue:
        """Add a node that the program does not have, on the line of another."""
        traced = self.known(op, target, args, example)
        traced.node.meta.update(
            {name: source.node.meta[name] for name in _PLACE if name in source.node.meta}
        )
        self.note_symbol(traced)
        return traced

    # -- a body that was left ----------------------------------------------------------------------
    def leave(self, given: Sequence[object]) -> None:
        """The graph around goes on; `given` are the results of the body, traced or constant."""
        assert self.parent is not None
        self.closed = True
        self.given = {
            value.node: index
            for index, value in reversed(list(enumerate(given)))
            if type(value) is GraphValue
        }
        for graph in (self.graph, *self.bodies):
            self.journal.put(self.parent.bodies, graph, self)

    def adopt(self, outer: GraphValue, inner: GraphValue) -> None:
        """Represent `outer` by `inner` in this graph from now on."""
        if outer.node not in self.lifted:
            self.journal.put(self.lifted, outer.node, inner)


_PLACE = ("stack_trace", "nn_module_stack")


def _identifier(hint: str) -> str:
    text = re.sub(r"[^0-9A-Za-z]", "_", hint) or "input"
    if text == "self":  # the graph's module has this name
        return "self_"
    return f"_{text}" if text[0].isdigit() else text


def plain_symbol(example: object) -> Symbol | None:
    """The symbol that a number is, as such; None for a number computed from symbols, and for
    everything else."""
    expression = expression_of(example)
    return expression if is_symbol(expression) else None


def _annotation(example: object) -> object:
    if isinstance(example, torch.Tensor):
        return Parameter if isinstance(example, Parameter) else torch.Tensor
    return type(example) if isinstance(example, SymbolicTypes) else None
