"""One fx graph under construction: its placeholders, the symbols it binds, and what it takes from
the graph around it.

A nested tracer is the body of a higher-order operator. A value of an outer tracer that is used
inside becomes a placeholder of every tracer on the way, once each; so do the symbols in its shape.
Explicit arguments come before what is lifted.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Sequence
from typing import Any

import torch
from attrs import Factory, define
from stator_bytecode.errors import InternalError, Unsupported
from stator_variables import GraphValue, Journal, Kwargs
from torch.fx import Graph, Node
from torch.fx.experimental.symbolic_shapes import CallMethodKey, ConvertIntKey, DivideByKey
from torch.nn import Parameter
from torch.utils import _pytree as pytree

from stator_subgraphs._fake import World
from stator_subgraphs._symbol import (
    Symbol,
    SymbolicTypes,
    expression_of,
    is_symbol,
    number_for,
    symbols_of,
)

KeyPath = tuple[Any, ...]


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
    effects: set[Node] = Factory(set)  # nodes seen to change something
    written: list[torch.Tensor] = Factory(list)  # examples that were written to
    lasting: bool = False  # a write gave one from outside a history that nothing takes away again
    # shapes of what cannot be made again
    births: dict[Node, tuple[Any, Any]] = Factory(dict)
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
        if (symbol := _plain_symbol(traced.example)) is not None and symbol not in self.symbols:
            self.bind(symbol, traced)

    def bind(self, symbol: Symbol, traced: GraphValue) -> None:
        """Make `symbol` be read from this node from now on."""
        self.journal.put(self.symbols, symbol, traced)

    def bind_unbacked(self, bindings: dict[Symbol, KeyPath], producer: GraphValue) -> None:
        """Record symbols that an operator made; a node that reads one is only added on its first
        use."""
        for symbol, path in bindings.items():
            self.journal.put(self.unbacked, symbol, (producer, path))

    def symbol(self, symbol: Symbol) -> GraphValue | None:
        """A value of this graph that equals `symbol`, lifted if need be; None when no graph around
        binds it."""
        if symbol in self.symbols:
            return self.symbols[symbol]
        if symbol in self.unbacked:
            return self._read_unbacked(symbol)
        outer = None if self.parent is None else self.parent.symbol(symbol)
        return None if outer is None else self.local(outer)

    def _read_unbacked(self, symbol: Symbol) -> GraphValue:
        traced, path = self.unbacked[symbol]
        for key in path:
            traced = self._step(traced, key)
        if _plain_symbol(traced.example) is None:  # made of a bool
            traced.node.meta["example_value"] = number = number_for(self.world.env, symbol)
            traced = self.memoize(GraphValue(traced.node, number))
        self.bind(symbol, traced)
        return traced

    def _step(self, traced: GraphValue, key: Any) -> GraphValue:
        """One key of a path that torch reports: how to get nearer to a symbol that an operator made
        up."""
        value = key.get(traced.example)
        if isinstance(key, CallMethodKey):
            return self._known("call_method", key.name, (traced.node,), value)
        function, rest = _read_by(key)
        return self._known("call_function", function, (traced.node, *rest), value)

    def _known(
        self, op: str, target: object, args: tuple[object, ...], example: object
    ) -> GraphValue:
        """A node of which it is known what it gives."""
        node = self.node(op, target, args, {})
        node.meta["example_value"] = example
        return self.memoize(GraphValue(node, example))

    # -- values of the graphs around ---------------------------------------------------------------
    def local(self, traced: GraphValue) -> GraphValue:
        """`traced` as a value of this graph: itself, or the placeholder it is lifted to."""
        graph = traced.node.graph
        if graph is self.graph:
            return traced
        if graph in self.bodies:
            return self.bodies[graph].seen_outside(traced)
        if self.parent is None:
            raise InternalError(f"{traced.node} belongs to a body that was left")
        outer = self.parent.local(traced)
        found = self.lifted.get(outer.node) or self._bound(outer.example)
        return found if found is not None else self._lift(outer)

    def _bound(self, example: object) -> GraphValue | None:
        return None if (symbol := _plain_symbol(example)) is None else self.symbols.get(symbol)

    def _lift(self, outer: GraphValue) -> GraphValue:
        if outer.node.op == "get_attr":
            return self._copy_attribute(outer)
        if isinstance(outer.example, torch.SymFloat):
            return self._lift_float(outer)
        if isinstance(outer.example, torch.SymBool):
            return self._lift_bool(outer)
        if _plain_symbol(outer.example) is None:
            for symbol in symbols_of(outer.example):
                self.symbol(symbol)
        traced = self.placeholder(outer.node.name, outer.example)
        self.adopt(outer, traced)
        self.outer.append(outer)
        # what a closed one did not use is dropped
        self.journal.record(lambda: self.closed or self.outer.pop())
        return traced

    def _lift_float(self, outer: GraphValue) -> GraphValue:
        """Most operators take no floats: it goes in as a tensor, and is read in here."""
        assert self.parent is not None
        box = self.local(self.parent.box(outer))
        traced = self._derived(box, "call_method", "item", (box.node,), outer.example)
        self.note_box(traced, box)
        self.adopt(outer, traced)
        return traced

    def _lift_bool(self, outer: GraphValue) -> GraphValue:
        """Likewise, as an int."""
        assert self.parent is not None
        number = _CHOICE(outer.example, 1, 0)
        given = self.parent._derived(outer, "call_function", _CHOICE, (outer.node, 1, 0), number)
        inner = self.local(given)
        traced = self._derived(inner, "call_function", operator.eq, (inner.node, 1), outer.example)
        self.adopt(outer, traced)
        return traced

    def box(self, number: GraphValue) -> GraphValue:
        """A float of this graph as a tensor without dimensions. Compilers follow floats through
        arithmetic alone."""
        if number.node not in self.boxes:
            with self.world.mode:
                one = torch.ones((), dtype=torch.float64, device="cpu")
                example = one * number.example
            unit = self._derived(number, "call_function", torch.ones, ((),), one)
            unit.node.kwargs = {"dtype": torch.float64, "device": "cpu"}
            self.note_box(
                number,
                self._derived(
                    number, "call_function", torch.mul, (unit.node, number.node), example
                ),
            )
        return self.boxes[number.node]

    def note_box(self, number: GraphValue, tensor: GraphValue) -> None:
        """Record that this tensor, which nothing writes to, holds the float."""
        self.journal.put(self.boxes, number.node, tensor)

    def _derived(
        self, source: GraphValue, op: str, target: object, args: tuple[object, ...], example: object
    ) -> GraphValue:
        """Add a node that the program does not have, on the line of another."""
        traced = self._known(op, target, args, example)
        traced.node.meta.update(
            {name: source.node.meta[name] for name in _PLACE if name in source.node.meta}
        )
        self.note_symbol(traced)
        return traced

    def _copy_attribute(self, outer: GraphValue) -> GraphValue:
        """Copy an attribute, which needs no input: each module that uses it has it."""
        node = self.node("get_attr", outer.node.target, (), {})
        node.meta.update(outer.node.meta)
        traced = self.memoize(GraphValue(node, outer.example))
        self.adopt(outer, traced)
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

    def outer_of(self, traced: GraphValue) -> GraphValue | None:
        """Return the outer graph's value for a value of this one, if it is not computed here."""
        assert self.parent is not None
        if isinstance(traced.example, torch.SymInt) and not symbols_of(traced.example):
            # What needed it to be the same in every call has guarded it.
            return self.parent._known(
                "call_function", torch.sym_int, (int(traced.example),), traced.example
            )
        local = self.local(traced)
        symbol = _plain_symbol(local.example)
        if symbol is not None and (known := self.parent.symbol(symbol)) is not None:
            return known
        return next(
            (self.parent.values[node] for node, inner in self.lifted.items() if inner is local),
            None,
        )

    def computes(self, traced: GraphValue) -> bool:
        """Return True if a node here makes the value, and the outer graph does not have it."""
        return traced.node.graph is self.graph and self.outer_of(traced) is None

    def seen_outside(self, traced: GraphValue) -> GraphValue:
        """A value of this body, for the graph around: what it was lifted from, or a part of what
        the operator gives."""
        if (outer := self.outer_of(traced)) is not None:
            return outer
        if self.call is None or self.parent is None:
            raise InternalError(
                f"{traced.node} belongs to a body that was left, and no operator gives it"
            )
        if (index := self.given.get(self.local(traced).node)) is None:
            raise Unsupported(
                "value-of-a-body", f"{traced.node}, which stayed in a body that was left"
            )
        return self.parent.part(self.call, index)

    def part(self, traced: GraphValue, index: object) -> GraphValue:
        """A `getitem` node for part of a result; the example is at hand, so nothing runs."""
        local = self.local(traced)
        key = (local.node, index)
        if (found := self.parts.get(key)) is None:
            found = self._derived(
                local, "call_function", operator.getitem, (local.node, index), local.example[index]
            )
            self.journal.put(self.parts, key, found)
            if "source_fn_stack" in local.node.meta:
                found.node.meta["source_fn_stack"] = [
                    *self.function_stack,
                    (found.node.name, operator.getitem),
                ]
        return found

    def adopt(self, outer: GraphValue, inner: GraphValue) -> None:
        """Represent `outer` by `inner` in this graph from now on."""
        if outer.node not in self.lifted:
            self.journal.put(self.lifted, outer.node, inner)


_CHOICE: Any = torch.sym_ite  # torch leaves it without types
_PLACE = ("stack_trace", "nn_module_stack")


def _identifier(hint: str) -> str:
    text = re.sub(r"[^0-9A-Za-z]", "_", hint) or "input"
    if text == "self":  # the graph's module has this name
        return "self_"
    return f"_{text}" if text[0].isdigit() else text


def _plain_symbol(example: object) -> Symbol | None:
    """The symbol that a number is, as such; None for a number computed from symbols, and for
    everything else."""
    expression = expression_of(example)
    return expression if is_symbol(expression) else None


def _read_by(key: object) -> tuple[Any, tuple[Any, ...]]:
    """The function, and its arguments after the value, that reads what `key` names."""
    if isinstance(key, pytree.SequenceKey):
        return operator.getitem, (key.idx,)
    if isinstance(key, pytree.MappingKey):
        return operator.getitem, (key.key,)
    if isinstance(key, DivideByKey):
        return operator.floordiv, (key.divisor,)
    if isinstance(key, ConvertIntKey):
        return _CHOICE, (1, 0)
    raise InternalError(f"an unbacked symbol behind an unknown key, {key!r}")


def _annotation(example: object) -> object:
    if isinstance(example, torch.Tensor):
        return Parameter if isinstance(example, Parameter) else torch.Tensor
    return type(example) if isinstance(example, SymbolicTypes) else None
