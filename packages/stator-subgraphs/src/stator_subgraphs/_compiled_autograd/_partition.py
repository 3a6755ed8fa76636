"""Partition of a captured backward: what a compiler may have, between what has to run as it is.

Hooks and functions of the program run as they are, in their order. A gradient is accumulated before
the next of them, or at the end: nothing can observe it earlier.
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
    partition = _Partition(make, _divided(graph) | apart)
    for node in graph.nodes:
        partition.add(node)
    return CapturedBackward.of(partition.graph, captured.used)


def _divided(graph: Graph) -> set[Node]:
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
        elif begun and runs_user_code(node):
            divided.update(begun)
    return divided


@attrs.define(eq=False)
class _Partition:
    make: MakeSegment
    divided: set[Node]
    graph: Graph = attrs.field(factory=Graph)
    _copies: dict[Node, Node] = attrs.field(factory=dict)
    _segment: list[Node] = attrs.field(factory=list)
    _deferred: list[Node] = attrs.field(factory=list)
    _count: int = 0

    def add(self, node: Node) -> None:
        """Add the next node of the captured backward."""
        if runs_user_code(node) or node in self.divided or node.op == "output":
            self._finish_segment()
            self._copy([*self._deferred, node])
            self._deferred = []
        elif node.target in (accumulate_grad, given_list):
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
            self._copies[node] = self.graph.node_copy(node, self._copies.__getitem__)

    def _finish_segment(self) -> None:
        nodes, self._segment = self._segment, []
        if not any(isinstance(node.target, NodeFunction) for node in nodes):
            self._copy(nodes)
            return

        used = {each: None for node in nodes for each in node.all_input_nodes}
        inputs = [each for each in used if each in self._copies]
        inside = set(nodes)
        outputs = [node for node in nodes if not inside.issuperset(node.users)]

        self._count += 1
        function = self.make(_graph_of(inputs, nodes, outputs), f"segment_{self._count}")
        given = tuple(map(self._copies.get, inputs))
        arguments = self.graph.create_node("call_function", given_list, given, name="given")
        results = self.graph.call_function(function, (arguments,))
        for i, node in enumerate(outputs):
            self._copies[node] = part_of(self.graph, results, i)


def _graph_of(inputs: Sequence[Node], nodes: Sequence[Node], outputs: Sequence[Node]) -> Graph:
    graph = Graph()
    copies = {node: graph.placeholder(node.name) for node in inputs}
    for node, copy in copies.items():
        copy.meta.update(node.meta)
    for node in nodes:
        copies[node] = graph.node_copy(node, copies.__getitem__)
    graph.output(tuple(copies[node] for node in outputs))
    return graph
