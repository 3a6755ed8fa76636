"""The rules that every backend relies on, checked before one is called.

Each fault here would otherwise surface deep inside a compiler, as an assertion that names neither
rule nor input.
"""

from collections.abc import Iterator, Sequence
from typing import Any

import torch
from torch import Tensor
from torch._subclasses.fake_tensor import FakeTensor
from torch.fx import GraphModule

from ._graph_facts import placeholders


def check_graph(gm: GraphModule, example_inputs: Sequence[Any]) -> list[str]:
    """Everything that is wrong with this graph and these inputs; empty when a backend may see
    them."""
    return [
        *_count_faults(gm, example_inputs),
        *_duplicate_faults(example_inputs),
        *_lifting_faults(gm),
        *_output_faults(gm),
    ]


def _count_faults(gm: GraphModule, example_inputs: Sequence[object]) -> Iterator[str]:
    wanted = len(placeholders(gm))
    if wanted != len(example_inputs):
        yield f"{wanted} placeholders, but {len(example_inputs)} example inputs"


def _duplicate_faults(example_inputs: Sequence[object]) -> Iterator[str]:
    seen: dict[int, int] = {}
    for position, value in enumerate(example_inputs):
        first = seen.setdefault(id(value), position) if isinstance(value, Tensor) else position
        if first != position:
            yield f"inputs {first} and {position} are one tensor: pass it once"


def _lifting_faults(gm: GraphModule) -> Iterator[str]:
    """Each free symbol of a tensor has to be a placeholder of its own, earlier than the tensor."""
    # Imported where needed: it brings sympy, half a second that a program without symbols should
    # not pay.
    from torch.fx.experimental.symbolic_shapes import free_symbols, free_unbacked_symbols

    bound: set[Any] = set()
    for node in placeholders(gm):
        value = node.meta.get("example_value")
        if isinstance(value, torch.SymInt | torch.SymFloat | torch.SymBool):
            bound |= free_symbols(value)
        elif isinstance(value, FakeTensor) and value._has_symbolic_sizes_strides:
            # What is unbacked is bound by the node that makes it, or by a placeholder: no rule for
            # the order.
            missing = free_symbols(value) - free_unbacked_symbols(value) - bound
            if missing:
                names = sorted(map(str, missing))
                yield f"input {node.name} has symbols that no earlier placeholder binds: {names}"


def _output_faults(gm: GraphModule) -> Iterator[str]:
    if (output := next(iter(reversed(gm.graph.nodes)), None)) is None or output.op != "output":
        yield "the last node is not an output"
    elif not isinstance(output.args[0], tuple | list):
        yield "the output is not a flat tuple"
    elif any(isinstance(value, tuple | list | dict) for value in output.args[0]):
        yield "the output is nested: flatten it"
