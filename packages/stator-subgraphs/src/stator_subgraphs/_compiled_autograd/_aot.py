"""Backward of a forward that AOTAutograd has compiled: called as it is, or inserted as its graph,
which a compiler gets with what surrounds it."""

import operator
from collections.abc import Sequence
from typing import Any

import attrs
import torch
from torch import Tensor
from torch.fx import Graph, Node
from torch.fx.node import map_arg

from stator_subgraphs._compiled_autograd._operator import Gradient, NodeFunction, call_backward

_aten: Any = torch.ops.aten


@attrs.frozen
class AotBackward:
    """The backward of one compiled forward; a call of it takes the symbolic sizes of that, too."""

    forward: Any
    graph: Graph = attrs.field(eq=False)

    def __call__(self, *arguments: Any) -> Sequence[Gradient]:
        return call_backward(*arguments[:-1])

    def insert(self, graph: Graph, node: Node, copies: dict[Node, Node]) -> Node:
        """Insert what the call `node` of another graph computes; return the gradients."""
        arguments: Any = map_arg(node.args, copies.__getitem__)
        _, saved, gradients, variables, sizes = arguments
        saved, gradients = [*saved.args], [*gradients.args]
        for size in sizes:
            if isinstance(size, Node):
                size.meta["changes"] = True
        prologue = NodeFunction("begin_compiled_backward", self._begin)
        values = graph.call_function(prologue, (saved, sizes, gradients))

        inside: dict[Node, Any] = {}
        for i, each in enumerate(self.graph.find_nodes(op="placeholder")):
            is_size = i < len(sizes)
            inside[each] = sizes[i] if is_size else _item(graph, values, i)
        for each in self.graph.nodes:
            if each.op != "call_function":
                continue
            inside[each] = graph.node_copy(each, inside.__getitem__)
            if each.target is _aten.view.default:  # its input has the layout of a compiled forward
                inside[each].target = _aten.reshape.default

        results = [inside.get(each) for each in _results_of(self.graph)]
        wanted = [each for each, variable in zip(results, variables, strict=False) if variable]
        target: Any = node.target
        end = NodeFunction(target.__name__, _end, target.metadata)
        keywords: Any = map_arg(node.kwargs, copies.__getitem__)
        return graph.create_node("call_function", end, tuple(wanted), keywords, node.name)

    def sizes_in(self, context: Any) -> Any:
        """Return the symbolic sizes that the forward has saved, as C++ represents them."""
        return context._get_compiled_autograd_symints()

    def _begin(
        self, saved: list[Tensor], sizes: Sequence[Any], gradients: list[Gradient]
    ) -> Sequence[Any]:
        arguments: Sequence[Any] = self.forward._bw_prologue_fn(saved, sizes, [], gradients)
        return arguments


def is_compiled(context: Any) -> bool:
    return hasattr(context._forward_cls, "_aot_id")


def aot_backward(context: Any) -> AotBackward | None:
    """Return the backward of a compiled forward, if its graph has no effect and computes all."""
    forward = context._forward_cls
    graph = getattr(getattr(forward, "_lazy_backward_info", None), "bw_module", None)
    if graph is None or forward.maybe_subclass_metadata is not None:
        return None

    facts = forward.metadata
    has_effects = (
        facts.num_backward_tokens
        or facts.is_rng_op_functionalized
        or facts.num_graphsafe_rng_states
        or facts.indices_of_inputs_that_requires_grad_with_mutations_in_bw
        or getattr(context, "_tensors_no_vc_check", None)
        or getattr(context, "opaque_objects", None)
    )
    kinds = {node.op for node in graph.graph.nodes}
    if has_effects or not kinds <= {"placeholder", "call_function", "output"}:
        return None

    return AotBackward(forward, graph.graph)


def with_compiled_backwards(graph: Graph) -> Graph:
    """Return the graph with those of compiled forwards in place of calls of their backwards."""
    if not any(map(is_aot_call, graph.nodes)):
        return graph

    result = Graph()
    copies: dict[Node, Node] = {}
    for node in graph.nodes:
        if is_aot_call(node):
            copies[node] = node.target.function.insert(result, node, copies)
        else:
            copies[node] = result.node_copy(node, copies.__getitem__)
    for each in filter(is_aot_call, graph.nodes):
        for values in _lists_of(each):
            if not copies[values].users:
                result.erase_node(copies[values])
    return result


def is_aot_call(node: Node) -> bool:
    return isinstance(getattr(node.target, "function", None), AotBackward)


def _lists_of(node: Node) -> list[Node]:
    """Return the nodes of the saved tensors and of the gradients."""
    lists: Any = node.args[1:3]
    return [*lists]


def _results_of(graph: Graph) -> Sequence[Any]:
    results: Any = graph.output_node().args[0]
    return results if isinstance(results, Sequence) else [results]


def _item(graph: Graph, values: Node, i: int) -> Node:
    return graph.call_function(operator.getitem, (values, i))


def _end(*gradients: Gradient) -> Sequence[Gradient]:
    return gradients
