"""Facts about a traced graph, read from the fake values that the trace left on its nodes."""

from __future__ import annotations

from collections.abc import Sequence
from operator import attrgetter
from typing import Any

import attrs
import torch
from torch import Tensor
from torch.fx import Graph, GraphModule, Node, map_arg

from ._alias import has_storage


def all_nodes(gm: GraphModule) -> list[Node]:
    """Return the nodes of the graph and of the bodies inside it."""
    modules = [part for part in gm.modules() if isinstance(part, GraphModule)]
    return [node for module in modules for node in module.graph.nodes]


def example_of(node: object) -> Any:
    """Return the fake value of a node; None for a constant among the results."""
    return node.meta.get("example_value") if isinstance(node, Node) else None


def placeholders(gm: GraphModule) -> list[Node]:
    """Return the inputs of the graph in their order."""
    return list(gm.graph.find_nodes(op="placeholder"))


def results_of(gm: GraphModule) -> list[Any]:
    """Return the values of the results in their order: nodes, or constants."""
    output: Any = gm.graph.output_node()
    return list(output.args[0])


def tensors_returned(gm: GraphModule) -> list[Tensor]:
    """Return the fake tensors among the results."""
    values = [example_of(node) for node in gm.graph.output_node().all_input_nodes]
    return [value for value in values if isinstance(value, Tensor)]


def memory_of(value: Tensor) -> int:
    """Return a key of the storage of a tensor: equal for tensors over one memory."""
    return int(value.untyped_storage()._cdata)


def memory_written(gm: GraphModule) -> set[int]:
    """Return the keys of the storages that the trace wrote to."""
    return set[int]().union(*(node.meta.get("writes", ()) for node in all_nodes(gm)))


def memory_written_by(node: Node) -> set[int]:
    """Return the keys of the storages that one node writes to, with or without a new version."""
    statistics = map(example_of, running_statistics(node))
    return {
        *node.meta.get("writes", ()),
        *(memory_of(value) for value in statistics if has_storage(value)),
    }


def running_statistics(node: Node) -> list[Node]:
    """Return the running statistics that a normalization updates, without new versions; nothing
    for other nodes."""
    given = node.args
    match node.target:
        case torch.nn.functional.batch_norm | torch.nn.functional.instance_norm:
            stats = given[1:3]
        case torch.batch_norm | torch.instance_norm:
            stats = given[3:5]
        case _:
            return []
    named = (node.kwargs.get(name) for name in ("running_mean", "running_var"))
    return [each for each in (*stats, *named) if isinstance(each, Node) and _updates(node)]


def _updates(node: Node) -> bool:
    """Return True unless a normalization uses its running statistics instead of updating them."""
    if len(node.args) > 5:
        return node.args[5] is not False
    target: Any = node.target
    by_default = target.__name__ == "instance_norm"
    named = ("training", "use_input_stats")
    given = [node.kwargs[name] for name in named if name in node.kwargs]
    return given[0] is not False if given else by_default


def written_inputs(gm: GraphModule) -> list[tuple[int, Tensor, int]]:
    """Return the inputs whose memory is written to: position, fake value, number of writes.

    A fake tensor that covers a part of its memory has a version from the start; that is not a
    write.
    """
    written = memory_written(gm)
    if not written:
        return []

    found = []
    for position, node in enumerate(placeholders(gm)):
        value = example_of(node)
        if has_version(value) and memory_of(value) in written:
            found.append((position, value, value._version - node.meta.get("version", 0)))
    return found


def has_version(value: Any) -> bool:
    """Return True for tensors with a version counter of their own to keep: inference tensors have
    none."""
    return has_storage(value) and not value.is_inference()


def has_symbol_inside(node: Node) -> bool:
    """Return True if the trace has a symbol for the number in this tensor of no dimensions."""
    example = example_of(node)
    number = getattr(example, "item_memo", None)
    return isinstance(number, torch.SymFloat) and number.node.hint is not None


@attrs.frozen(eq=False)
class GraphSnapshot:
    """The nodes of a graph as they are now: a backend may change them. Costs a hundredth of a
    copy."""

    nodes: Sequence[tuple[Node, str, str, Any, Any, Any]]

    @classmethod
    def of(cls, gm: GraphModule) -> GraphSnapshot:
        facts = attrgetter("name", "op", "target", "args", "kwargs")
        return cls([(node, *facts(node)) for node in gm.graph.nodes])

    def graph(self) -> Graph:
        """Return a new graph with these nodes, without metadata."""
        graph, made = Graph(), dict[Node, Node]()
        for node, name, op, target, *given in self.nodes:
            args, kwargs = map_arg(given, made.__getitem__)
            made[node] = graph.create_node(op, target, tuple(args), kwargs, name)
        return graph


def without_metadata(gm: GraphModule) -> GraphModule:
    """Return a copy of a graph without what its trace recorded: reduced graphs have other
    inputs."""
    return GraphModule(gm, GraphSnapshot.of(gm).graph())


def has_lstm(gm: GraphModule) -> bool:
    """Return True if a graph has this operator, or calls it layer by layer."""
    named = [(getattr(node.target, "__name__", ""), *node.args) for node in all_nodes(gm)]
    return any("lstm" in each for each in named)
