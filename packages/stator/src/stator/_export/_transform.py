"""Transforms of torch.func in a graph to be exported, as the operators that they come to.

torch.export records levels of transforms as it meets them, and loses tensors that a level wraps.
Here each transform is traced on its own before: what is left has no levels.
"""

import operator
from collections.abc import Iterator
from typing import Any

import attrs
from stator_subgraphs import TRANSFORM_RESULTS, TRANSFORMS
from torch import fx
from torch.fx.experimental.proxy_tensor import make_fx
from torch.utils._pytree import tree_map


@attrs.frozen(eq=False)
class InlinedGraph:
    """The target of a node that runs another graph."""

    module: fx.GraphModule
    __name__ = "inlined_graph"

    def __call__(self, *inputs: Any) -> Any:
        return self.module(*inputs)


def inline_transforms(module: fx.GraphModule) -> None:
    """Replace the transforms of a graph, and of its bodies, by graphs without levels."""
    for part in [each for each in module.modules() if isinstance(each, fx.GraphModule)]:
        for node in reversed(part.graph.nodes):  # functions are called before they are replaced
            if node.target in TRANSFORMS or node.target in TRANSFORM_RESULTS:
                _inline(part, node)
        part.recompile()


def _inline(module: fx.GraphModule, node: fx.Node) -> None:
    """Replace one transform, or the call of a function that one gave: that one runs again."""
    used = [*dict.fromkeys(_operands(node))]
    inputs = [each for each in used if each.op != "get_attr"]
    if any(callable(each.meta["example_value"]) for each in inputs):
        return  # in the body of a transform, which runs with it

    def run(*values: Any) -> Any:
        known: dict[fx.Node, Any] = dict(zip(inputs, values, strict=True))
        known |= {each: getattr(module, str(each.target)) for each in used if each not in known}
        return tree_map(lambda leaf: None if callable(leaf) else leaf, _called(node, known))

    graph = make_fx(run, tracing_mode="symbolic")(*(each.meta["example_value"] for each in inputs))
    node.target, node.args, node.kwargs = InlinedGraph(graph), tuple(inputs), {}


def _operands(node: fx.Node) -> Iterator[fx.Node]:
    """Yield the inputs of a node; for a function, those of the transform that gives it."""
    for each in node.all_input_nodes:
        if each.target is operator.getitem and callable(each.meta["example_value"]):
            yield from _operands(each.all_input_nodes[0])
        else:
            yield each


def _called(node: fx.Node, known: dict[fx.Node, Any]) -> Any:
    target: Any = node.target
    for each in node.all_input_nodes:
        if each not in known:
            known[each] = _called(each.all_input_nodes[0], known)[each.args[1]]
    return target(*fx.map_arg(tuple(node.args), known.__getitem__))
