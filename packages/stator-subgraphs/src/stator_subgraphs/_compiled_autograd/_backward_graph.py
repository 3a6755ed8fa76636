"""The graph of a backward under construction: its inputs, and the values that C++ has of it."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import attrs
import torch
from torch import Tensor
from torch.fx import Graph, Node

from stator_subgraphs._compiled_autograd._operator import accumulate, part_of
from stator_subgraphs._compiled_autograd._schedule import Visit


@attrs.define(eq=False)
class GradientValue:
    """A gradient of the graph: the result of a node, or a sum of values that no node computes
    yet."""

    tensor: Tensor  # kept, because its identity represents the value
    visit: int  # of the node of autograd that has made it
    node: Node | None
    terms: list["GradientValue"] = attrs.field(factory=list)
    before_hooks: "GradientValue | None" = None


@attrs.define(eq=False)
class BackwardGraph:
    """The nodes of a backward, in the order in which the engine of autograd would run them.

    Each tensor that C++ is given is empty, and represents a node by its identity.
    """

    graph: Graph = attrs.field(factory=Graph)
    values: dict[int, GradientValue] = attrs.field(factory=dict)
    inputs: dict[str, list[Node]] = attrs.field(factory=dict)
    ends: dict[Any, Node] = attrs.field(factory=dict)  # of the parts of the graph
    visits: list[Visit] = attrs.field(factory=list)
    visit: int = 0

    def begin(self, visits: list[Visit]) -> None:
        """Make a part for each kind of inputs, and for each node of autograd."""
        self.visits = visits
        parts = [*KINDS, *range(len(visits))]
        self.ends = {part: self.graph.call_function(_end) for part in parts}
        self.inputs = {kind: [] for kind in KINDS}

    def begin_node(self, name: str, visit: int) -> None:
        """Add what follows for this node of autograd."""
        self.visit = visit
        if self.visits and self.visits[visit].name != name:
            self.visits = []
        self.go_to(visit)

    def go_to(self, visit: int) -> None:
        """Insert what follows where the engine would do it: at the end, if that is unknown."""
        if self.visits:
            self.graph.inserting_before(self.ends[self.visits[visit].rank])
        else:
            self.graph.inserting_after()

    def placeholder(self, kind: str, index: int) -> Node:
        nodes = self.inputs[kind]
        while len(nodes) <= index:
            with self.graph.inserting_before(self.ends[kind]):
                nodes.append(self.graph.placeholder(f"{kind}_{len(nodes)}"))
        return nodes[index]

    def bind(self, node: Node | None, terms: Sequence[GradientValue] = ()) -> Tensor:
        """Return a new tensor that represents a node."""
        with torch._C._DisableTorchDispatch():
            tensor = torch.empty(0)
        self.values[id(tensor)] = GradientValue(tensor, self.visit, node, [*terms])
        return tensor

    def bind_all(self, node: Node, count: int) -> list[Tensor]:
        return [self.bind(part_of(self.graph, node, i)) for i in range(count)]

    def argument(self, value: object) -> Any:
        """Return what represents a value of C++ in the arguments of a node."""
        if isinstance(value, Tensor):
            return self.node_of(self.values[id(value)])
        if isinstance(value, torch.SymInt | torch.SymFloat):
            return value.node.argument
        if isinstance(value, list | tuple):
            items = [self.argument(item) for item in value]
            return items if isinstance(value, list) else tuple(items)
        return value

    def node_of(self, value: GradientValue) -> Node:
        """Return the node, adding up first: in the engine's order, each term as soon as it is
        there."""
        if value.node is None:
            terms = sorted(value.terms, key=lambda term: self.rank(term.visit))
            node = self.node_of(terms[0])
            for term in terms[1:]:
                self.go_to(term.visit)
                pair = node, self.node_of(term)
                node = self.add(accumulate, pair, "total")
            self.go_to(self.visit)
            value.node = node
        return value.node

    def rank(self, visit: int) -> int:
        return self.visits[visit].rank if self.visits else visit

    def add(self, target: Callable[..., Any], arguments: tuple[Any, ...], name: str) -> Node:
        return self.graph.create_node("call_function", target, arguments, name=name)

    def call(self, target: Callable[..., Any], *values: object, name: str | None = None) -> Node:
        arguments = tuple(map(self.argument, values))
        return self.graph.create_node("call_function", target, arguments, name=name)

    def record(
        self, function: Callable[..., Any], args: object, keywords: Mapping[str, Any]
    ) -> Tensor:
        """Add a call that C++ makes itself: zeros in place of gradients that a function does not
        get."""
        arguments = {name: self.argument(value) for name, value in keywords.items()}
        return self.bind(self.graph.call_function(function, self.argument(args), arguments))

    def sum_of(self, first: Tensor, second: Tensor) -> Tensor:
        """Return the sum of two gradients, of which the first may be one already."""
        one, other = self.values[id(first)], self.values[id(second)]
        return self.bind(None, [*(one.terms or [one]), other])

    # -- the end -----------------------------------------------------------------------------------
    def finish(self, results: Sequence[Any]) -> dict[str, list[int]]:
        """End the graph with these results; return which inputs of each kind it uses."""
        outputs = [self.output(result) for result in results]
        for end in self.ends.values():
            self.graph.erase_node(end)
        self.graph.inserting_after()
        self.graph.output(outputs)
        self.graph.eliminate_dead_code(_is_needed)
        return {kind: self._keep_used(kind, nodes) for kind, nodes in self.inputs.items()}

    def output(self, result: Tensor | None) -> Node | None:
        """Return a gradient that was requested, as it is before hooks if more is computed of it."""
        if result is None:
            return None
        value = self.values[id(result)]
        return self.node_of(value.before_hooks or value)

    def _keep_used(self, kind: str, nodes: Sequence[Node]) -> list[int]:
        """Return which inputs are used, and number those: equal graphs get equal names."""
        used = [i for i, node in enumerate(nodes) if node.users]
        for i, node in enumerate(nodes):
            if i in used:
                node.target = node.name = f"{kind}{used.index(i)}"
            else:
                self.graph.erase_node(node)
        return used


KINDS = ("saved", "size", "number", "hook", "packed")
"""The kinds of inputs of a backward, in the order in which its function takes them."""


def _end() -> None:
    """Mark where a part of the graph ends, while it is captured."""


def _is_needed(node: Node) -> bool:
    """Return True for everything but parts of results and arithmetic on sizes."""
    return node.op != "call_function" or getattr(node.target, "__module__", "") != "_operator"
