"""Part of a backward as a Python function, for a trace that follows its hooks and functions.

The gradient of a variable whose hooks run after the accumulation is accumulated in the trace, too:
they read and change its `.grad`.
"""

import operator
from types import FunctionType
from typing import Any

import torch
from torch.fx import Graph, GraphModule, Node

from stator_subgraphs._compiled_autograd import _operator
from stator_subgraphs._compiled_autograd._aot import is_aot_call
from stator_subgraphs._compiled_autograd._first_gradient import accumulated, in_graph
from stator_subgraphs._compiled_autograd._operator import NodeFunction, given_list, runs_user_code

_HOOKS = (
    _operator.tensor_pre_hook,
    _operator.pre_hook,
    _operator.post_hook,
    _operator.post_accumulate_grad_hook,
    _operator.unpack,
)
_FOLLOWED = (*_HOOKS, _operator.call_backward, _operator.accumulate, given_list, operator.getitem)


def may_be_followed(node: Node) -> bool:
    """Return True for user code that a trace may follow: no function that is written in C++."""
    return not is_aot_call(node) and (
        node.target in _HOOKS or getattr(node.target, "function", None) is _operator.call_backward
    )


def unpacks(graph: Graph) -> bool:
    """Return True if hooks give saved tensors, which may be others than those that were packed:
    operators may raise that cannot with the ones of the forward."""
    return bool(graph.find_nodes(op="call_function", target=_operator.unpack))


def followed_accumulations(graph: Graph) -> list[Node]:
    """Return the accumulations that hooks in the graph follow."""
    hooks = graph.find_nodes(op="call_function", target=_operator.post_accumulate_grad_hook)
    variables = {hook.args[1] for hook in hooks}
    accumulations = graph.find_nodes(op="call_function", target=_operator.accumulate_grad)
    return [node for node in accumulations if node.args[0] in variables]


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
        if node.target is _operator.accumulate_grad:
            copy.target = accumulated
        elif node.op == "call_function" and node.target not in _FOLLOWED:
            target: Any = node.target
            if runs_user_code(node):
                copies[node] = _followed(result, copy, target)
            else:
                copy.target = in_graph(target)

    function: Any = GraphModule(torch.nn.Module(), result, "backward").forward
    first = function.__code__.co_firstlineno + 1
    statements = [node for node in result.nodes if node.op != "placeholder"]
    lines = {first + i: user_code[node] for i, node in enumerate(statements) if node in user_code}
    return function.__func__, lines


def _followed(graph: Graph, call: Node, function: NodeFunction) -> Node:
    """Divide the call of a Python function: the trace follows it, and an operator checks what it
    gave."""
    expected = call.kwargs
    call.kwargs = {}
    call.target = _operator.call_backward

    count = sum(call.args[3])  # type: ignore[arg-type]
    parts = tuple(graph.call_function(operator.getitem, (call, i)) for i in range(count))
    check = NodeFunction(function.__name__, _results, function.metadata)
    return graph.call_function(in_graph(check), parts, expected)


def _results(*results: Any) -> tuple[Any, ...]:
    return results
