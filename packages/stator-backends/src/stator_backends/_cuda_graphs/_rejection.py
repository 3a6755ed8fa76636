"""Graphs that are not recorded, with the reason."""

from collections.abc import Collection, Sequence
from typing import Any

import torch
from torch import Tensor
from torch.fx import GraphModule, Node


def reason_not_to_record(gm: GraphModule, inputs: Sequence[Any], static: Collection[int]) -> str:
    """Return why a graph of ATen operators cannot be recorded; empty if it can.

    `static`: the positions of inputs that keep their address.
    """
    nodes = list(gm.graph.find_nodes(op="placeholder"))
    values = dict(zip(nodes, inputs, strict=True))
    numbers = (torch.SymInt, torch.SymFloat)
    if any(isinstance(value, numbers) for value in inputs):
        return "its sizes change"
    if any(isinstance(node.meta.get("val"), numbers) for node in gm.graph.nodes):
        return "it reads a number from a tensor"

    written = {node.args[0] for node in gm.graph.nodes if _is_write(node)}
    for position, node in enumerate(nodes):
        value = values[node]
        if isinstance(value, Tensor) and value.device.type != "cuda":
            return f"input {node.name} is on the {value.device.type}"
        if node in written and position not in static:
            return f"it writes to input {node.name}, whose address changes"
    on_cpu = (node for node in gm.graph.nodes if _device_of(node) == "cpu")
    return next((f"{node.name} is on the cpu" for node in on_cpu), "")


def _is_write(node: Node) -> bool:
    """Return True for an operator that writes to its first argument."""
    schema = getattr(node.target, "_schema", None)
    if schema is None or not schema.arguments:
        return False
    alias = schema.arguments[0].alias_info
    return alias is not None and alias.is_write


def _device_of(node: Node) -> str:
    value = node.meta.get("val")
    return value.device.type if isinstance(value, Tensor) else ""
