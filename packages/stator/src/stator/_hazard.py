"""What a graph may have done when it raises: which of its inputs are written to, and before what that may raise.

Which nodes write the trace has seen (`meta["writes"]`: storages of examples). A table names the operators that may
refuse the values they meet, which no trace can know.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import attrs
import torch
from stator_subgraphs import CHECKS, bodies_of, calls_in, may_raise, name_of, storage_of
from torch.fx import GraphModule, Node

if TYPE_CHECKING:
    from stator_subgraphs import CapturedGraph


@attrs.frozen
class Hazards:
    """Positions are those of the inputs that are tensors."""

    written: tuple[int, ...]  # share memory with what a node writes to, or may write to
    repeated: tuple[int, ...]  # those written to before an operator that may raise because of values
    caught: bool  # the graph checks what the trace relied on, or the program may catch what comes after a write
    silent: bool  # not every write is seen in a version counter

    @classmethod
    def of(cls, captured: CapturedGraph) -> Hazards | None:
        """None when something is done that cannot be taken back."""
        module = captured.module
        if any(map(_is_final, _all_calls(module))):
            return None
        places = module.graph.find_nodes(op="placeholder")
        inputs = [node for node, item in zip(places, captured.inputs, strict=True) if item.kind == "tensor"]
        written, repeated = _memory(module)
        return cls(
            _positions(inputs, written),
            _positions(inputs, repeated),
            has_checks(module) or is_caught_after_write(module),
            any(map(_is_silent, _all_calls(module))),
        )


def _positions(inputs: list[Node], storages: set[int | None]) -> tuple[int, ...]:
    return tuple(position for position, node in enumerate(inputs) if _storage(node) in storages - {None})


def _memory(module: GraphModule) -> tuple[set[int | None], set[int | None]]:
    """What is written to, and what of it before the last operator that may raise because of values."""
    written: set[int | None] = set()
    repeated: set[int | None] = set()
    for node in calls_in(module):
        own = _written(node)
        if may_raise(node):
            repeated = written | (set() if name_of(node) in REPEATABLE else own)
        written |= own
    return written, repeated


def _written(node: Node) -> set[int | None]:
    seen: set[int | None] = set(node.meta.get("writes", ()))
    return seen | set(map(_storage, node.all_input_nodes)) if _is_silent(node) else seen


def _storage(node: Node) -> int | None:
    value = node.meta.get("example_value")
    return storage_of(value) if isinstance(value, torch.Tensor) else None


def _all_calls(module: GraphModule) -> Iterator[Node]:
    """Also those in the bodies of higher-order operators."""
    for node in calls_in(module):
        yield node
        for body in bodies_of(node):
            yield from _all_calls(body)


# -- writes ------------------------------------------------------------------------------------------------------------
def _is_final(node: Node) -> bool:
    """The other processes of a collective took part in it; a tensor with another storage does not get its own again."""
    qualified = str(getattr(node.target, "_qualified_op_name", node.target))
    return qualified.startswith("_c10d_functional") or name_of(node) == "set_"


def _is_silent(node: Node) -> bool:
    """Running statistics are written by kernels that count no version; so is everything through `.data`."""
    if any(map(_is_silent, (inner for body in bodies_of(node) for inner in calls_in(body)))):
        return True
    name = name_of(node)
    return "batch_norm" in name or "instance_norm" in name or "data" in [arg for arg in node.args if type(arg) is str]


# -- errors ------------------------------------------------------------------------------------------------------------
def has_checks(module: GraphModule) -> bool:
    """Whether a node raises on purpose."""
    return any(name_of(node).startswith(CHECKS) for node in _all_calls(module))


def is_caught_after_write(module: GraphModule) -> bool:
    """Whether an operator comes after a write and in a `try` of the program that catches what it raises."""
    written = False
    for node in calls_in(module):
        if written and node.meta.get("caught"):
            return True
        written = written or bool(_written(node))
    return False


REPEATABLE = frozenset("index_copy_ index_fill_ index_put_ setitem __setitem__ scatter_ put_ masked_scatter_".split())
"""Those that leave the same when they run again after they have raised half way."""
