"""The graphs of the capability table: each operator in each situation.

A situation is what is done around the operator: writes, views, repeated results, gradients, sizes
that change. A backend that is right for one operator may be wrong for another one, so all pairs are
run.
"""

import operator
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, TypeAlias

import attrs
import torch
from torch import Tensor
from torch.fx import Node

from .testing import GraphBuilder, HandBuilt

OpCall: TypeAlias = Callable[[GraphBuilder, Node], Node]


def _call(target: Any, *args: Any, **kwargs: Any) -> OpCall:
    return lambda build, x: build.call(target, x, *args, **kwargs)


def _product(build: GraphBuilder, x: Node) -> Node:
    return build.call(torch.matmul, x, build.call("t", x))


def _joined(build: GraphBuilder, x: Node) -> Node:
    return build.call(torch.cat, [x, x])


OPERATORS: dict[str, OpCall] = {
    "sin": _call(torch.sin),
    "relu": _call(torch.nn.functional.relu),
    "scale": _call(operator.mul, 3),
    "matmul": _product,
    "sum": _call(torch.sum, dim=1),
    "softmax": _call(torch.softmax, dim=-1),
    "cat": _joined,
    "clone": _call("clone"),
    "flip": _call(torch.flip, (1,)),
    "double": _call("to", torch.float64),
    "cumsum": _call(torch.cumsum, 0),
}

GraphSituation: TypeAlias = Callable[[GraphBuilder, OpCall, Node, Node], Sequence[Any]]


def _plain(build: GraphBuilder, op: OpCall, x: Node, y: Node) -> Sequence[Any]:
    return [op(build, x), op(build, y)]


def _write(build: GraphBuilder, op: OpCall, x: Node, y: Node) -> Sequence[Any]:
    build.call("add_", x, 1)
    build.call("mul_", x, 2)
    return [op(build, x)]


def _write_to_view(build: GraphBuilder, op: OpCall, x: Node, y: Node) -> Sequence[Any]:
    build.call("mul_", build.call(operator.getitem, x, slice(1, 3)), 10)
    return [op(build, x)]


def _write_to_other(build: GraphBuilder, op: OpCall, x: Node, y: Node) -> Sequence[Any]:
    """Write to an input without gradients, in a graph that gives some."""
    result = op(build, x)
    build.call("add_", y, 1)
    return [result]


def _view_of_input(build: GraphBuilder, op: OpCall, x: Node, y: Node) -> Sequence[Any]:
    return [op(build, y), build.call("transpose", x, 0, 1)]


def _input_itself(build: GraphBuilder, op: OpCall, x: Node, y: Node) -> Sequence[Any]:
    return [y, op(build, x), x]


def _repeated(build: GraphBuilder, op: OpCall, x: Node, y: Node) -> Sequence[Any]:
    result = op(build, x)
    return [result, op(build, y), result]


def _views_of_result(build: GraphBuilder, op: OpCall, x: Node, y: Node) -> Sequence[Any]:
    result = build.call("clone", op(build, x))
    return [result, build.call(operator.getitem, result, 0)]


def _strided(build: GraphBuilder, op: OpCall, x: Node, y: Node) -> Sequence[Any]:
    return [build.call("t", build.call("clone", x)), op(build, x)]


def _detached(build: GraphBuilder, op: OpCall, x: Node, y: Node) -> Sequence[Any]:
    result = op(build, x)
    return [result, build.call("detach", build.call(torch.neg, result))]


def _constants(build: GraphBuilder, op: OpCall, x: Node, y: Node) -> Sequence[Any]:
    """Give constants, and two results that are equal: two tensors all the same."""
    return [None, op(build, x), 7, op(build, x)]


def _size(build: GraphBuilder, op: OpCall, x: Node, y: Node) -> Sequence[Any]:
    size = build.call("size", x, 0)
    return [build.call(operator.mul, op(build, x), size), size]


@attrs.frozen
class ConformanceGraph:
    """One operator in one situation. `dynamic`: the first dimension differs from call to call."""

    name: str
    step: OpCall
    situation: GraphSituation
    requires_grad: bool = False
    dynamic: bool = False

    def tensors(self, call: int) -> tuple[Tensor, Tensor]:
        """Return the inputs of one call; equal ones for equal numbers."""
        rows = 4 + 2 * call if self.dynamic else 4
        values = torch.linspace(-2, 2, rows * 4).reshape(rows, 4) * (call + 1)
        return values.clone().requires_grad_(self.requires_grad), values.cos()

    def built(self) -> HandBuilt:
        build = GraphBuilder()
        dims = (0,) if self.dynamic else ()
        x, y = (build.input(tensor, dims) for tensor in self.tensors(0))
        return build.finish(*self.situation(build, self.step, x, y))


_SITUATIONS: dict[str, tuple[GraphSituation, bool, bool]] = {
    "plain": (_plain, False, False),
    "write": (_write, False, False),
    "write to a view": (_write_to_view, False, False),
    "view of an input": (_view_of_input, False, False),
    "input itself": (_input_itself, False, False),
    "repeated result": (_repeated, False, False),
    "views of a result": (_views_of_result, False, False),
    "strides": (_strided, False, False),
    "constants": (_constants, False, False),
    "gradients": (_plain, True, False),
    "gradients, write": (_write_to_other, True, False),
    "gradients, repeated": (_repeated, True, False),
    "gradients, detached": (_detached, True, False),
    "sizes": (_size, False, True),
    "sizes, gradients": (_plain, True, True),
}


def conformance_graphs(operators: Iterable[str]) -> Iterator[ConformanceGraph]:
    """Yield each operator in every situation."""
    for situation, (function, requires_grad, dynamic) in _SITUATIONS.items():
        for name in operators:
            text = f"{situation}: {name}"
            yield ConformanceGraph(text, OPERATORS[name], function, requires_grad, dynamic)
