"""Part of a backward as a Python function, for a trace that follows its hooks and functions."""

import operator
from collections.abc import Callable
from types import FunctionType
from typing import Any

import torch
from torch.fx import Graph, GraphModule, Node

from stator_subgraphs._compiled_autograd import _operator
from stator_subgraphs._compiled_autograd._aot import is_aot_call
from stator_subgraphs._compiled_autograd._operator import NodeFunction, given_list, runs_user_code

_HOOKS = (_operator.tensor_pre_hook, _operator.pre_hook, _operator.post_hook)
_FOLLOWED = (*_HOOKS, _operator.call_backward, _operator.accumulate, given_list, operator.getitem)


def may_be_followed(node: Node) -> bool:
    """Return True for user code that a trace may follow: neither `.grad` nor memory is its
    subject."""
    return not is_aot_call(node) and (
        node.target in _HOOKS or getattr(node.target, "function", None) is _operator.call_backward
    )


def as_function(graph: Graph) -> tuple[FunctionType, dict[int, Node]]:
    """Return a function of the inputs, in which the nodes of autograd are calls of operators, and
    the node of each line that calls code of the program."""
    result = Graph()
    copies: dict[Node, Node] = {}
    user_code: dict[Node, Node] = {}
    for node in graph.nodes:
        copies[node] = copy = result.node_copy(node, copies.__getitem__)
        if may_be_followed(node):
            user_code[copy] = node
        if node.op == "call_function" and node.target not in _FOLLOWED:
            target: Any = node.target
            if runs_user_code(node):
                copies[node] = _followed(result, copy, target)
            else:
                copy.target = _in_graph(target)
    function: Any = GraphModule(torch.nn.Module(), result, "backward").forward
    first = function.__code__.co_firstlineno + 1
    statements = [node for node in result.nodes if node.op != "placeholder"]
    lines = {first + i: user_code[node] for i, node in enumerate(statements) if node in user_code}
    return function.__func__, lines


def _followed(graph: Graph, call: Node, function: NodeFunction) -> Node:
    """Divide the call of a Python function: the trace follows it, and an operator checks what it
    gave."""
    expected, call.kwargs, call.target = call.kwargs, {}, _operator.call_backward
    count = sum(call.args[3])  # type: ignore[arg-type]
    parts = tuple(graph.call_function(operator.getitem, (call, i)) for i in range(count))
    check = NodeFunction(function.__name__, _results, function.metadata)
    return graph.call_function(_in_graph(check), parts, expected)


def _results(*results: Any) -> tuple[Any, ...]:
    return results


def _in_graph(target: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function that a trace records as one operator."""

    def call(*args: object, **keywords: object) -> Any:
        return target(*args, **keywords)

    call.__name__ = call.__qualname__ = target.__name__
    call.__module__ = "autograd"
    call._stator_in_graph = True  # type: ignore[attr-defined]
    return call
