"""Inputs that a graph with gradients reads and writes to: what reads them gets a copy.

    scale = count * 2                copy = count.clone()                        native
    y = x * scale                    scale = copy * 2;  y = x * scale            compiled
    count.add_(1)                    count.add_(1)

AOTAutograd may save an input instead of what is computed from it, and compute that again in the
backward. If the input was written to in the meantime, by this graph or by the next call, the
gradient is silently that of the later value. What an input was overwritten with as a whole is no
input: it is read as it is.

    torch.mul(x, 2, out=buffer)
    y = x * buffer                   no copy
"""

from __future__ import annotations

from typing import Any

from torch import Tensor
from torch.fx import GraphModule, Node

from stator_backends._alias import has_storage
from stator_backends._graph_facts import (
    example_of,
    has_version,
    memory_of,
    memory_written,
    memory_written_by,
    placeholders,
    tensors_returned,
)
from stator_backends._pieces._division import (
    APART,
    BESIDE,
    DIFFERENTIATES,
    KEPT,
    NATIVE,
    SETS_STATE,
    STARTS,
    calls_of,
)


def copy_what_is_read(gm: GraphModule) -> None:
    """Let operators of a graph with gradients read copies of the inputs that it writes to."""
    if not any(value.requires_grad for value in tensors_returned(gm)):
        return
    memory = _memory_written_without_gradients(gm)
    if not memory:
        return

    calls = calls_of(gm)
    copies: dict[Node, Node] = {}  # since the last write
    overwritten: set[int | None] = set()
    seen: set[int] = set()  # what was written to so far

    for node in calls:
        written = memory & memory_written_by(node)
        if written:
            seen |= written
            copies = {one: copy for one, copy in copies.items() if _memory(one) not in written}
            overwritten = (overwritten - written) | _memory_overwritten(node)
            continue

        for operand in node.all_input_nodes:
            if _memory(operand) not in memory - overwritten or _memory(operand) == _memory(node):
                continue
            if operand not in copies:
                is_first = operand.op == "placeholder" and _memory(operand) not in seen
                copies[operand] = _copied(gm, operand, calls[0] if is_first else node)
            node.replace_input_with(operand, copies[operand])

    gm.recompile()


def _memory_written_without_gradients(gm: GraphModule) -> set[int]:
    """Return the memory of inputs that are written to and have no history at any time."""
    inputs = [example_of(node) for node in placeholders(gm)]
    memory = {memory_of(value) for value in inputs if has_version(value)}
    memory &= memory_written(gm)
    if not memory:
        return memory
    examples = [example_of(node) for node in gm.graph.nodes]
    trained = {memory_of(each) for each in examples if has_storage(each) and each.requires_grad}
    return memory - trained


_OVERWRITING = frozenset({"copy_", "zero_", "fill_"})


def _memory_overwritten(node: Node) -> set[int | None]:
    """Return the memory that a node fills as a whole, with values that do not depend on what was
    there."""
    target: Any = node.kwargs.get("out")
    if node.op == "call_method" and node.target in _OVERWRITING:
        target = node.args[0]
    if not isinstance(target, Node):
        return set()

    example, memory = example_of(target), _memory(target)
    others = [operand for operand in node.all_input_nodes if operand is not target]
    if not isinstance(example, Tensor) or memory in map(_memory, others):
        return set()
    is_whole = example.numel() * example.itemsize == example.untyped_storage().nbytes()
    is_read = [*node.args, *node.kwargs.values()].count(target) > 1
    return {memory} if is_whole and example.is_contiguous() and not is_read else set()


def _memory(node: Node) -> int | None:
    example = example_of(node)
    return memory_of(example) if has_storage(example) else None


_OF_THE_NODE = frozenset(
    {"writes", NATIVE, STARTS, APART, SETS_STATE, KEPT, DIFFERENTIATES, BESIDE}
)
"""Metadata about what a node does, which another node at its place does not share."""


def _copied(gm: GraphModule, operand: Node, before: Node) -> Node:
    """Add a copy of a value ahead of a node."""
    example: Any = example_of(operand)
    with gm.graph.inserting_before(before):
        copy = gm.graph.call_method("clone", (operand,))
    kept = {key: value for key, value in before.meta.items() if key not in _OF_THE_NODE}
    copy.meta = {**kept, "example_value": example.detach().clone(), NATIVE: ""}
    return copy
