"""Facts about a captured graph: the lines of the program that its operators come from, and the
memory of its tensors."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator
from typing import Any

import attrs
import torch

from stator._report_data._place import place_data, program_line, written_place
from stator.errors import SourceSpan

_COMPUTES = frozenset({"call_function", "call_method", "call_module"})


@attrs.frozen
class Memory:
    """Bytes of the inputs and outputs of a graph, and the most that its own tensors have at a time
    where each is released after its last use."""

    inputs: int = 0
    outputs: int = 0
    peak: int = 0


def operator_lines(module: Any) -> list[dict[str, Any]]:
    """Return each line of the program with the operators that it gave to a graph."""
    if module is None:
        return []
    by_line: defaultdict[SourceSpan, Counter[str]] = defaultdict(Counter)
    for node in module.graph.nodes:
        if node.op in _COMPUTES and (stack := node.meta.get("stack_trace")):
            by_line[line_of(stack)][name_of(node)] += 1
    return [{**place_data(span), "operators": dict(names)} for span, names in by_line.items()]


def line_of(stack: str) -> SourceSpan:
    """Return the line of the program in the stack of a node."""
    lines = [line for line in stack.splitlines() if line.lstrip().startswith('File "')]
    return program_line(map(written_place, lines))


def name_of(node: Any) -> str:
    """Return the name of an operator as the program has it."""
    if isinstance(node.target, str):
        return node.target
    return str(getattr(node.target, "__name__", node.target))


def memory_of(module: Any) -> Memory:
    """Return the memory that a graph needs, by the example values of its nodes."""
    if module is None:
        return Memory()
    nodes = [*module.graph.nodes]
    inputs = sum(_size(node) for node in nodes if node.op == "placeholder")
    last_uses = {used: node for node in nodes for used in node.all_input_nodes}
    alive: set[Any] = set()
    peak = outputs = 0
    for node in nodes:
        if node.op in _COMPUTES:
            alive.add(node)
            peak = max(peak, sum(map(_size, alive)))
        elif node.op == "output":
            outputs = sum(map(_size, node.all_input_nodes))
        alive -= {used for used in node.all_input_nodes if last_uses[used] is node}
    return Memory(inputs, outputs, peak)


def _size(node: Any) -> int:
    return sum(_bytes(tensor) for tensor in _tensors(node.meta.get("example_value")))


def _tensors(value: Any) -> Iterator[torch.Tensor]:
    if isinstance(value, torch.Tensor):
        yield value
    elif isinstance(value, tuple | list):
        for item in value:
            yield from _tensors(item)


def _bytes(tensor: torch.Tensor) -> int:
    """Return the size of a tensor that has memory of its own; symbolic sizes count as they were."""
    if tensor._is_view() or tensor.layout is not torch.strided:
        return 0
    count = tensor.numel()
    if isinstance(count, torch.SymInt):
        hint = count.node.hint
        count = hint if isinstance(hint, int) else 0
    return int(count) * tensor.element_size()
