"""Sizes and numbers of a backward while it is captured: each represents a node of the graph."""

import operator
from collections.abc import Callable
from typing import Any

import attrs
import torch
from torch.fx import Graph, Node


@attrs.define(eq=False)
class SizeNode:
    """The node that the engine keeps in a `torch.SymInt`, with the methods that it calls.

    Arithmetic becomes a node of the graph. A condition is decided by the present value: the engine
    has none but that a size is not negative.
    """

    graph: Graph
    argument: Node | int | float
    value: int | float | bool

    def is_int(self) -> bool:
        return type(self.value) is int

    def is_float(self) -> bool:
        return type(self.value) is float

    def is_bool(self) -> bool:
        return type(self.value) is bool

    def maybe_as_int(self) -> None:
        """Return None: the value is not constant."""

    def nested_int(self) -> None:
        """Return None: no size of a nested tensor is captured."""

    def clone(self) -> "SizeNode":
        return self

    def wrap_int(self, value: int) -> "SizeNode":
        return SizeNode(self.graph, value, value)

    wrap_float = wrap_int

    def guard_bool(self, file: str, line: int) -> bool:
        return bool(self.value)

    guard_size_oblivious = guard_or_false = guard_or_true = expect_true = guard_bool

    def __getattr__(self, name: str) -> Callable[..., "SizeNode"]:
        """Return the operation of that name as a function that adds a node."""
        compute = getattr(operator, name)

        def operation(*others: SizeNode) -> SizeNode:
            operands = (self, *others)
            node = self.graph.call_function(compute, tuple(each.argument for each in operands))
            return SizeNode(self.graph, node, compute(*[each.value for each in operands]))

        return operation


def symbolic(graph: Graph, node: Node, value: int | float) -> Any:
    """Return the number that the engine is given for `node`."""
    kind: Any = torch.SymInt if isinstance(value, int) else torch.SymFloat
    return kind(SizeNode(graph, node, value))
