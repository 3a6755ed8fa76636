"""Partition of a captured backward: what a compiler may have, between what has to run as it is.

Hooks and functions of the program that are apart run as they are, in their order. A gradient is
accumulated before the next of them, or at the end: nothing can observe it earlier.
"""

import operator
from collections.abc import Callable, Sequence
from collections.abc import Set as AbstractSet
from typing import Any, TypeAlias

import attrs
import torch
from torch.fx import Graph, Node

from stator_subgraphs._compiled_autograd._aot import with_compiled_backwards
from stator_subgraphs._compiled_autograd._backward import CapturedBackward
from stator_subgraphs._compiled_autograd._operator import (
    NodeFunction,
    accumulate_grad,
    cut_out,
    given_list,
    part_of,
    put_back,
    runs_user_code,
)
from stator_subgraphs._compiled_autograd._user_code import followed_accumulations, may_be_followed

MakeSegment: TypeAlias = Callable[[Graph, str], Callable[[list[Any]], Sequence[Any]]]
"""Return a part of a backward, which has a name, as a function of a list that it empties."""


def partitioned(
    captured: CapturedBackward, make: MakeSegment, apart: AbstractSet[Node] = frozenset()
) -> CapturedBackward:
    """Return the backward with calls of segments in place of what they contain; nodes that are
    `apart` are in none."""
    graph = captured.graph
    if not torch._C._is_any_autocast_enabled():  # under which compiled backwards do not run
        graph = with_compiled_backwards(graph)
    apart |= {node for node in graph.nodes if runs_user_code(node) and not may_be_followed(node)}
    partition = _Partition(make, _divided(graph, apart) | apart)
    for node in graph.nodes:
        partition.add(node)
    return CapturedBackward.of(partition.graph, captured.used)


def _divided(graph: Graph, apart: AbstractSet[Node]) -> set[Node]:
    """Return where a gradient is cut out and put back with user code in between.

    One half writes to memory that the other made, so they have to be in one segment or in none.
    """
    divided: set[Node] = set()
    begun: list[Node] = []
    for node in graph.nodes:
        if node.target is cut_out:
            begun.append(node)
        elif node.target is put_back or getattr(node.target, "function", None) is put_back:
            divided |= {node} if begun.pop() in divided else set()
        elif begun and node in apart:
            divided.update(begun)
    return divided


@attrs.define(eq=False)
class _Partition:
    make: MakeSegment
    apart: AbstractSet[Node]
    graph: Graph = attrs.field(factory=Graph)
    _copies: dict[Node, Node | None] = attrs.field(factory=dict)
    _segment: list[Node] = attrs.field(factory=list)
    _deferred: list[Node] = attrs.field(factory=list)
    _count: int = 0

    def add(self, node: Node) -> None:
        """Add the next node of the captured backward."""
        if node in self.apart or node.op == "output":
            self._finish_segment()
            self._copy([*self._deferred, node])
            self._deferred = []
        elif _is_given_to(node, self.apart):
            self._deferred.append(node)
        elif node.op == "placeholder" or self._is_part(node):
            self._copy([node])
        else:
            self._segment.append(node)

    def _is_part(self, node: Node) -> bool:
        """Return True for a part of what is in no segment."""
        return node.target is operator.getitem and node.args[0] in self._copies

    def _copy(self, nodes: Sequence[Node]) -> None:
        for node in nodes:
            copied: Any = self._copies.__getitem__
            self._copies[node] = self.graph.node_copy(node, copied)

    def _finish_segment(self) -> None:
        """Copy what has gathered: a call of a segment, then accumulations, if code of the program
        is not among it."""
        nodes = self._segment
        self._segment = []
        accumulations = [node for node in nodes if node.target is accumulate_grad]
        if any(map(runs_user_code, nodes)):
            self._copies |= dict.fromkeys(accumulations)  # what follows may name them
            self._make(nodes)
            return

        nodes = [node for node in nodes if node.target is not accumulate_grad]
        if any(isinstance(node.target, NodeFunction) for node in nodes):
            self._make(nodes)
        else:
            self._copy(nodes)
        self._copy(accumulations)

    def _make(self, nodes: Sequence[Node]) -> None:
        """Make a segment of the nodes, and call it."""
        used = {each: None for node in nodes for each in node.all_input_nodes}
        inputs = [each for each in used if each in self._copies]
        inside = set(nodes)
        outputs = [
            node
            for node in nodes
            if node.target is not accumulate_grad and not inside.issuperset(node.users)
        ]

        self._count += 1
        function = self.make(_graph_of(inputs, nodes, outputs), f"segment_{self._count}")
        given = tuple(map(self._copies.get, inputs))
        arguments = self.graph.create_node("call_function", given_list, given, name="given")
        results = self.graph.call_function(function, (arguments,))
        for i, node in enumerate(outputs):
            self._copies[node] = part_of(self.graph, results, i)


def without_accumulation(graph: Graph) -> tuple[Graph, list[tuple[int, bool]]]:
    """Return a segment that gives what it would accumulate as well, at the end, and for each of
    these the position of the variable among the arguments, and True if that has hooks.

    Accumulations that hooks in the segment follow are part of it.
    """
    followed = followed_accumulations(graph)
    if not any(_is_last(node, followed) for node in graph.nodes):
        return graph, []

    positions = {node: i for i, node in enumerate(graph.find_nodes(op="placeholder"))}
    result = Graph()
    copies: dict[Node, Node] = {}

    gradients: list[Node] = []
    accumulations: list[tuple[int, bool]] = []
    for node in graph.nodes:
        if _is_last(node, followed):
            variable, gradient, is_hooked = node.args
            gradients += [copies[gradient]]
            accumulations.append((positions[variable], is_hooked))
        elif node.op == "output":
            result.output((*(copies[each] for each in node.args[0]), *gradients))
        else:
            copies[node] = result.node_copy(node, copies.__getitem__)
    return result, accumulations


def _is_last(node: Node, followed: Sequence[Node]) -> bool:
    """Return True for an accumulation that nothing in the segment can observe."""
    return node.target is accumulate_grad and node not in followed


def _is_given_to(node: Node, calls: AbstractSet[Node]) -> bool:
    """Return True for a list that one of the calls is given."""
    return node.target is given_list and calls >= node.users.keys()


def _graph_of(inputs: Sequence[Node], nodes: Sequence[Node], outputs: Sequence[Node]) -> Graph:
    graph = Graph()
    copies = {node: graph.placeholder(node.name) for node in inputs}
    for node, copy in copies.items():
        copy.meta.update(node.meta)
    for node in nodes:
        copies[node] = graph.node_copy(node, copies.__getitem__)
    graph.output(tuple(copies[node] for node in outputs))
    return graph
