"""The graph modules of a divided graph: one of each piece, and the driver that calls them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from operator import getitem
from typing import Any

import attrs
import torch
from torch import Tensor
from torch.fx import Graph, GraphModule, Node, map_arg

from stator_backends._alias import has_storage
from stator_backends._graph_facts import example_of, has_version, memory_of, placeholders
from stator_backends._pieces._division import KEPT, NodeRun

SYMBOLS = (torch.SymInt, torch.SymFloat, torch.SymBool)

PIECE = "piece"
"""Key of `Node.meta`: the names of the nodes in the piece that a node of the driver calls."""


@attrs.frozen(eq=False)
class Piece:
    """One run of nodes as a graph of its own. `inputs` and `outputs` are nodes of the whole
    graph."""

    run: NodeRun
    module: GraphModule
    inputs: tuple[Node, ...]
    outputs: tuple[Node, ...]


@attrs.define(eq=False)
class ValueOrigins:
    """The ways to the values of a graph from outside of the run that computes them.

    A tensor that several nodes give, as `x.add_(1)` gives `x`, is that of the first of them.
    """

    origins: dict[Node, Node]
    symbols: dict[Any, Node]
    """The node that gives the value of a symbol, where one does."""

    @classmethod
    def of(cls, gm: GraphModule) -> ValueOrigins:
        first: dict[int, Node] = {}
        origins: dict[Node, Node] = {}
        symbols: dict[Any, Node] = {}
        for node in gm.graph.nodes:
            example = example_of(node)
            if isinstance(example, Tensor):
                origins[node] = first.setdefault(id(example), node)
            elif isinstance(example, SYMBOLS) and example.node.expr.is_symbol:
                symbols.setdefault(example.node.expr, node)
        return cls(origins, symbols)

    def origin(self, node: Node) -> Node:
        return self.origins.get(node, node)


def piece_of(gm: GraphModule, run: NodeRun, values: ValueOrigins) -> Piece:
    """Make the graph of one run."""
    inside = {*run.nodes}
    taken: dict[Node, None] = {}
    for node in run.nodes:
        for given in node.all_input_nodes:
            if given not in inside and given.op != "get_attr":
                taken[values.origin(given)] = None
    symbols = _symbols_for([*taken, *run.nodes], values, inside)
    inputs = (*symbols, *(node for node in taken if node not in symbols))

    graph = Graph()
    copies = {node: _placeholder(graph, node) for node in inputs}
    for node in run.nodes:
        graph_node = graph.node_copy(node, _local(graph, node, copies, values))
        copies[node] = graph_node

    outputs = _outputs(gm, run, values)
    graph.output(tuple(copies[node] for node in outputs))
    module = GraphModule(gm, graph)
    module.meta.update(gm.meta)
    _count_writes(run, graph, inputs)
    return Piece(run, module, inputs, outputs)


def _symbols_for(nodes: Iterable[Node], values: ValueOrigins, inside: set[Node]) -> list[Node]:
    """Return what gives the symbols in the sizes of these: a compiler needs each as an input."""
    if not values.symbols:
        return []
    from torch.fx.experimental.symbolic_shapes import free_symbols

    found: dict[Node, None] = {}
    for node in nodes:
        parts = example_of(node)
        for part in parts if isinstance(parts, tuple | list) else (parts,):
            free = free_symbols(part) if isinstance(part, (Tensor, *SYMBOLS)) else ()
            given = [values.symbols[each] for each in free if each in values.symbols]
            found.update(dict.fromkeys(each for each in given if each not in inside))
    return sorted(found, key=lambda node: str(example_of(node)))


def _placeholder(graph: Graph, node: Node) -> Node:
    made = graph.create_node("placeholder", node.name, name=node.name)
    made.meta.update(node.meta)
    if (source := getattr(node, "_dynamo_source", None)) is not None:
        vars(made)["_dynamo_source"] = source
    return made


def _local(
    graph: Graph, node: Node, copies: dict[Node, Node], values: ValueOrigins
) -> Callable[[Node], Node]:
    """Return the function that finds the copy of an operand of `node`."""

    def find(given: Node) -> Node:
        if given in copies:
            return copies[given]
        if given.op == "get_attr":
            copies[given] = graph.node_copy(given)
            return copies[given]
        return copies[values.origin(given)]

    return find


def _outputs(gm: GraphModule, run: NodeRun, values: ValueOrigins) -> tuple[Node, ...]:
    """Return the nodes of a run that something behind it uses."""
    inside = {*run.nodes}
    used = [node for node in run.nodes if any(user not in inside for user in node.users)]
    used += [node for node in run.nodes if KEPT in node.meta]
    found = dict.fromkeys(map(values.origin, used))
    return tuple(node for node in found if node in inside)


def _count_writes(run: NodeRun, graph: Graph, inputs: Sequence[Node]) -> None:
    """Note how often this piece alone writes to each input: examples count all writes of the
    graph."""
    for node, copy in zip(inputs, graph.find_nodes(op="placeholder"), strict=True):
        example = example_of(node)
        if not has_version(example):
            continue
        memory = memory_of(example)
        here = sum(memory in each.meta.get("writes", ()) for each in run.nodes)
        copy.meta["version"] = max(example._version - here, 0)


def driver_of(
    gm: GraphModule,
    runs: Sequence[NodeRun],
    values: ValueOrigins,
    compiled: Mapping[NodeRun, tuple[Piece, Callable[..., Sequence[Any]]]],
) -> GraphModule:
    """Make the module that runs native nodes as they are, and calls the compiled pieces between."""
    graph = Graph()
    root: dict[str, Any] = {}
    copies = {node: graph.node_copy(node) for node in placeholders(gm)}

    def find(given: Node) -> Node:
        if given in copies:
            return copies[given]
        if given.op == "get_attr":
            root[str(given.target)] = _attribute(gm, str(given.target))
            copies[given] = graph.node_copy(given)
            return copies[given]
        return copies[values.origin(given)]

    for run in runs:
        if run in compiled:
            piece, function = compiled[run]
            name = f"piece_{sum(key.startswith('piece_') for key in root)}"
            root[name] = function
            _call(graph, name, piece, find, copies)
            continue
        for node in run.nodes:
            copies[node] = graph.node_copy(node, find)

    output: Any = gm.graph.output_node()
    graph.output(map_arg(output.args[0], find))
    return GraphModule(root, graph)


def _call(
    graph: Graph,
    name: str,
    piece: Piece,
    find: Callable[[Node], Node],
    copies: dict[Node, Node],
) -> None:
    """Call a piece, and give its results the names that they have in the whole graph."""
    call = graph.create_node("call_module", name, tuple(map(find, piece.inputs)), name=name)
    call.meta[PIECE] = tuple(node.name for node in piece.run.nodes)
    for index, node in enumerate(piece.outputs):
        part = graph.create_node("call_function", getitem, (call, index), name=node.name)
        part.meta.update(node.meta)
        part.meta.pop("writes", None)
        copies[node] = part


def nodes_called(node: Node) -> tuple[str, ...]:
    """Return the names, in the whole graph, of what a node of the driver, or of a graph, runs."""
    names: tuple[str, ...] = node.meta.get(PIECE, (node.name,))
    return names


def _attribute(gm: GraphModule, name: str) -> Any:
    found: Any = gm
    for part in name.split("."):
        found = getattr(found, part)
    return found


def shares_memory(node: Node, others: Iterable[Node]) -> bool:
    """Return True if the value of a node is over the memory of another one."""
    example = example_of(node)
    if not has_storage(example):
        return False
    memory = memory_of(example)
    found = (example_of(other) for other in others if other is not node)
    return any(has_storage(each) and memory_of(each) == memory for each in found)
