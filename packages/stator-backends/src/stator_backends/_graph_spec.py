"""Facts about the inputs of a graph, for backends that declare `BackendSpec.wants_graph_spec`.

def backend(gm, example_inputs, *, graph_spec): ...
graph_spec.inputs[2].name    # "layers.0.weight"
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from typing import Any

import torch
from attrs import frozen
from torch import Tensor
from torch.fx import GraphModule, Node

from ._alias import has_storage
from ._graph_facts import example_of, has_version, memory_of, memory_written, placeholders

_MODULE = re.compile(r"\._modules\['([^']+)'\]")
_HELD = re.compile(r"\._(parameter|buffer)s\['([^']+)'\]$")


@frozen
class InputSpec:
    """One input of a graph, in the order of the placeholders.

    - `kind`: "parameter", "buffer", "tensor" or "number".
    - `source`: the expression by which the program reaches it.
    - `name`: the name of a parameter or a buffer within its outermost module; else empty.
    - `mutated`: the graph writes to its memory. Running statistics of normalizations, which torch
      does not count as written, are not included.
    - `alias_group`: the position of the first input over the same memory; None if there is no
      other.
    - `static_address`: its memory is likely to be the same in all calls; a backend that relies on
      it checks it, as modules of one class share what is compiled.
    - `dynamic_dims`: the dimensions that differ from call to call.
    """

    kind: str
    source: str
    name: str = ""
    mutated: bool = False
    alias_group: int | None = None
    static_address: bool = False
    dynamic_dims: tuple[int, ...] = ()


@frozen
class GraphSpec:
    """The inputs of one graph."""

    inputs: tuple[InputSpec, ...]

    @classmethod
    def of(cls, gm: GraphModule, inputs: Sequence[Any]) -> GraphSpec:
        """Read the facts that the trace left in a graph, before a backend changes it."""
        written = memory_written(gm)
        groups = _alias_groups(inputs)
        nodes = zip(placeholders(gm), inputs, groups, strict=True)
        return cls(tuple(_input_spec(node, value, group, written) for node, value, group in nodes))


def mark_buffers(gm: GraphModule) -> None:
    """Mark the buffers of modules, as parameters are, for compilers that use CUDA graphs: they are
    likely to keep their address."""
    for node in placeholders(gm):
        if _HELD.search(_source_of(node)):
            node.meta.setdefault("tensor_dict", {"_dynamo_static_input_type": "unguarded"})


def _source_of(node: Node) -> str:
    return str(getattr(getattr(node, "_dynamo_source", None), "name", node.name))


def _input_spec(node: Node, value: object, group: int | None, written: set[int]) -> InputSpec:
    source = _source_of(node)
    if not isinstance(value, Tensor):
        return InputSpec("number", source)

    example = example_of(node)
    held = _HELD.search(source)
    kind, name = "tensor", ""
    if held is not None:
        kind = held[1]
        name = ".".join([*_MODULE.findall(source), held[2]])
    elif isinstance(value, torch.nn.Parameter):
        kind = "parameter"

    mutated = False
    if has_version(example):
        is_counted = example._version > node.meta.get("version", 0)
        mutated = is_counted or memory_of(example) in written
    marked = node.meta.get("tensor_dict", {}).get("_dynamo_static_input_type") is not None
    shape = enumerate(getattr(example, "shape", ()))
    dynamic = tuple(dim for dim, size in shape if isinstance(size, torch.SymInt))
    return InputSpec(kind, source, name, mutated, group, marked or kind != "tensor", dynamic)


def _alias_groups(inputs: Sequence[Any]) -> list[int | None]:
    """Return, for each input, the position of the first one over the same memory."""
    memory = [memory_of(value) if has_storage(value) else None for value in inputs]
    counts = Counter(memory)
    return [memory.index(one) if one is not None and counts[one] > 1 else None for one in memory]
