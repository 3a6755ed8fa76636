"""Whether two bodies are the same: the same operators over inputs of the same kind, in the same order."""

from typing import Any

import torch
from torch import fx

from stator_subgraphs._captured import Body
from stator_subgraphs._structure import rebuild


def is_same(one: Body, other: Body) -> bool:
    """Then the module of either may stand for both."""
    return _written_down(one.module) == _written_down(other.module)


def _written_down(module: fx.GraphModule) -> list[Any]:
    nodes = list(module.graph.nodes)
    number = {node: index for index, node in enumerate(nodes)}

    def leaf(item: Any) -> Any:
        return ("node", number[item]) if isinstance(item, fx.Node) else (type(item), item)

    def parts(node: fx.Node) -> Any:
        return repr((rebuild(tuple(node.args), leaf), rebuild(dict(node.kwargs), leaf)))

    return [(node.op, _target(module, node), kind_of(node.meta.get("example_value")), parts(node)) for node in nodes]


def _target(module: fx.GraphModule, node: fx.Node) -> Any:
    if node.op == "get_attr":
        return id(getattr(module, str(node.target)))
    return None if node.op in ("placeholder", "output") else node.target


def kind_of(example: Any) -> Any:
    """What of an example the operators may depend on; numbers by how they are written in symbols."""
    if isinstance(example, torch.Tensor):
        layout = (example.shape, example.stride(), example.storage_offset()) if example.layout is torch.strided else ()
        return repr((type(example), example.dtype, example.device, example.requires_grad, layout))
    return repr([kind_of(item) for item in example]) if isinstance(example, tuple | list) else repr(example)
