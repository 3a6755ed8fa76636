"""Writes to inputs that are made behind a graph instead of in it: a graph that raises has changed
none of these inputs, so that nothing has to be copied ahead of it.

    def forward(mean, x, index):              def forward(mean, x, index):
        mean.add_(x.mean())                       late = mean.clone()
        return x[index]                           late.add_(x.mean())
                                                  return x[index], late

A compiler drops the copy, since it has the values of the input, and computes the new ones into
memory of their own. One call writes all of them to the inputs when the graph has returned. Inputs
that this could be seen of, such as views and what backward needs, are written to in the graph.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import attrs
import torch
from torch import Tensor
from torch.fx import GraphModule, Node

from stator_backends._alias import has_storage
from stator_backends._backend import Compiled
from stator_backends._contracts._versions import increment_versions
from stator_backends._graph_facts import (
    all_nodes,
    example_of,
    has_version,
    memory_of,
    placeholders,
    results_of,
    running_statistics,
    tensors_returned,
)

LARGE = 1 << 20
"""Bytes of a tensor from which on the second copy, behind the graph, takes more time than it saves
ahead of it."""


@attrs.frozen
class LateWrite:
    """The input at `position` gets the value of a node when the graph has returned.

    `count` is how often the version of the input increases.
    """

    position: int
    node_name: str
    count: int


def defer_writes(gm: GraphModule) -> tuple[LateWrite, ...]:
    """Contract: where a graph raises, inputs have the values that they had before.

    The graph computes the values of these inputs as further results.
    """
    late = tuple(_late_writes(gm))
    if not late:
        return ()

    inputs = placeholders(gm)
    behind = inputs[-1].next

    made: list[LateWrite] = []
    results: list[Node] = []
    for write in late:
        node = inputs[write.position]
        users = [*node.users]
        with gm.graph.inserting_before(behind):
            copy = gm.graph.create_node("call_method", "clone", (node,), name=write.node_name)
        made.append(attrs.evolve(write, node_name=copy.name))
        copy.meta["example_value"] = example_of(node)
        for user in users:
            user.replace_input_with(node, copy)
        results.append(copy)

    gm.graph.output_node().args = ((*results_of(gm), *results),)
    gm.recompile()
    return tuple(made)


def write_in_place(gm: GraphModule, late: Sequence[LateWrite]) -> None:
    """Let the graph write to its inputs again."""
    named = {node.name: node for node in gm.graph.nodes}
    for write in late:
        copy = named[write.node_name]
        copy.replace_all_uses_with(copy.args[0])
        gm.graph.erase_node(copy)


def with_late_writes(late: Sequence[LateWrite], count: int, compiled: Compiled) -> Compiled:
    """Wrap ``compiled``: write its results behind the first ``count`` to the inputs."""
    if not late:
        return compiled
    total = count + len(late)
    positions = [write.position for write in late]
    counted = [write.position for write in late for _ in range(write.count)]
    write_all: Any = torch._foreach_copy_
    uncounted: Any = torch._C._AutoDispatchBelowADInplaceOrView

    def call(*inputs: Any) -> Sequence[Any]:
        results = compiled(*inputs)
        if len(results) != total:
            return results  # the caller rejects these

        with uncounted():
            write_all([inputs[position] for position in positions], results[count:])
        if counted:
            increment_versions([inputs[position] for position in counted])
        return results[:count]

    return call


def _late_writes(gm: GraphModule) -> Iterator[LateWrite]:
    """Yield the writes to tensors of which only this graph has a view, and which no gradient
    depends on."""
    inputs = placeholders(gm)
    shared = [memory_of(each) for each in map(example_of, inputs) if has_storage(each)]
    returned = {memory_of(each) for each in _tensors(results_of(gm))}
    nodes, inner = [*gm.graph.nodes], _memory_of_bodies(gm)
    counted = set[int]().union(*(node.meta.get("writes", ()) for node in nodes))
    statistics = {each for node in nodes for each in running_statistics(node)}
    trains = any(value.requires_grad for value in tensors_returned(gm))

    for position, node in enumerate(inputs):
        value = example_of(node)
        if not _is_plain(value):
            continue
        memory = memory_of(value)
        is_written = memory in counted or node in statistics
        is_own = shared.count(memory) == 1 and memory not in returned and memory not in inner
        saves = trains and value.is_floating_point()
        if is_written and is_own and all(_is_deferrable(user, value, saves) for user in nodes):
            count = value._version - node.meta.get("version", 0)
            yield LateWrite(position, f"late_{node.name}", count)


def _is_plain(value: Any) -> bool:
    """Return True for a small tensor that a copy can take the place of: without gradients, base,
    symbolic sizes or gaps."""
    if not has_version(value) or value.requires_grad or value._is_view():
        return False
    if not all(type(size) is int for size in value.shape):
        return False
    if type(value.storage_offset()) is not int or not value.is_contiguous():
        return False
    return bool(value.numel() * value.itemsize <= LARGE)


def _is_deferrable(node: Node, value: Tensor, saves: bool) -> bool:
    """Return False if the node changes more than the contents of this input, hides what it writes,
    gives a view, or reads what a compiler may save for backward (`saves`)."""
    if node.op in ("placeholder", "output"):
        return True
    memory = memory_of(value)
    touched = {each for each in node.all_input_nodes if memory in map(memory_of, _tensors([each]))}
    if not touched:
        return True
    if node.op not in ("call_function", "call_method") or _is_unlike_others(node):
        return False
    if touched <= {*running_statistics(node)}:
        return True
    if saves and memory not in node.meta.get("writes", ()):
        return False
    return not any(memory_of(each) == memory and each is not value for each in _tensors([node]))


def _is_unlike_others(node: Node) -> bool:
    """Return True for operators of others, with bodies, and for those that set what a tensor is."""
    name = str(getattr(node.target, "__name__", node.target))
    namespace = getattr(node.target, "namespace", "aten")
    is_data = any(isinstance(arg, str) and arg in ("data", "_data") for arg in node.args)
    return is_data or name in _CHANGES_OF_TENSORS or namespace not in ("aten", "prims")


_CHANGES_OF_TENSORS = frozenset(
    "as_strided_ squeeze_ swapaxes_ swapdims_ t_ transpose_ unsqueeze_ resize_ resize_as_ set_ "
    "requires_grad_ detach_ setattr swap_tensors share_memory_".split()
)


def _memory_of_bodies(gm: GraphModule) -> set[int]:
    """Return the memory of what bodies of operators take, and what they write to."""
    nodes = [node for node in all_nodes(gm) if node.graph is not gm.graph]
    written = set[int]().union(*(node.meta.get("writes", ()) for node in nodes))
    return written | {memory_of(each) for each in _tensors(nodes)}


def _tensors(nodes: Sequence[object]) -> Iterator[Tensor]:
    """Yield the tensors with memory of their own that nodes give."""
    for node in nodes:
        value = example_of(node)
        values = value if isinstance(value, tuple | list) else (value,)
        yield from (each for each in values if has_storage(each))
