"""Program order in compiled graphs with operators of other libraries in a `try`.

Such an operator may do anything, so it must not run a second time to find out what the handler of
the program would see. Where it raises, the program goes on from there, with values that operators
of torch compute again. That requires of each compiled piece

- at most one such operator,
- beside it no effect, and no other operator that may raise,
- before it nothing that a handler may need and that cannot be computed again,
- beside another operator that may raise no effect.

A graph that has that as a whole is compiled as a whole; others are divided.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import attrs
import torch
from stator_subgraphs import calls_in, is_of_torch, may_raise, storage_of
from torch.fx import Node

from stator._entries._graph_effects import has_effect, is_foreign_and_caught
from stator._entries._liveness import mark_for_handlers

if TYPE_CHECKING:
    from stator_subgraphs import CapturedGraph

WRITES_AND_RAISES = "an operator of another library that writes to what it is given, in a `try`"


@attrs.define
class _PieceState:
    """The kinds of operators in a piece."""

    foreign: bool = False
    raises: bool = False
    effect: bool = False
    kept: bool = False

    def excludes(self, other: _PieceState) -> bool:
        """Return True if an operator of these kinds begins another piece."""
        return (
            (other.foreign and (self.foreign or self.raises or self.effect or self.kept))
            or (other.raises and (self.foreign or self.effect))
            or (other.effect and (self.foreign or self.raises))
        )

    def add(self, other: _PieceState) -> None:
        self.foreign |= other.foreign
        self.raises |= other.raises
        self.effect |= other.effect
        self.kept |= other.kept


def keep_program_order(captured: CapturedGraph) -> None:
    """Mark where the pieces of a graph begin, what of it runs natively, and which results have to
    be kept for handlers of the program."""
    mark_for_handlers(captured.graph)
    state = _PieceState()
    inputs = _memory_of_inputs(captured)
    for node in calls_in(captured.module):
        kinds = _kinds_of(node, inputs)
        if kinds.foreign and "writes" in node.meta:
            node.meta["native"] = WRITES_AND_RAISES
            state = _PieceState()
            continue
        if state.excludes(kinds):
            _with_views_before(node, inputs).meta["starts"] = True
            state = _PieceState()
        state.add(kinds)


def _with_views_before(node: Node, inputs: set[int]) -> Node:
    """Return the first of the views directly before a node. What uses them is behind them: a piece
    that gave them would give its own input, and take the gradient for it as another tensor."""
    while _is_view(node.prev) and _kinds_of(node.prev, inputs) == _PieceState():
        node = node.prev
    return node


def _is_view(node: Node) -> bool:
    """Return True for a call that gives the memory of an operand."""
    example = node.meta.get("example_value")
    if not node.op.startswith("call_") or not isinstance(example, torch.Tensor):
        return False
    operands = (each.meta.get("example_value") for each in node.all_input_nodes)
    memory = {storage_of(each) for each in operands if isinstance(each, torch.Tensor)}
    return "writes" not in node.meta and storage_of(example) in memory


def _memory_of_inputs(captured: CapturedGraph) -> set[int]:
    """Return the storages of the example values of all inputs."""
    inputs = captured.graph.find_nodes(op="placeholder")
    examples = (node.meta.get("example_value") for node in inputs)
    return {storage_of(example) for example in examples if isinstance(example, torch.Tensor)}


def _kinds_of(node: Node, inputs: set[int]) -> _PieceState:
    """Return what a node is to its piece. A write to what the graph has made is no effect: nobody
    can observe it, unless a handler needs the value (`kept`)."""
    kept = "kept" in node.meta
    if is_foreign_and_caught(node):
        return _PieceState(foreign=True, kept=kept)
    raises = "catches_operators" in node.meta and may_raise(node)
    return _PieceState(raises=raises, effect=has_effect(node, inputs), kept=kept)


def raising_node(nodes: tuple[Node, ...]) -> Node:
    """Return the node of a piece that an exception is due to: the operator of another library, else
    the piece is run again from its first node."""
    return next(filter(is_foreign_and_caught, nodes), nodes[0])


def is_foreign(node: Node) -> bool:
    """Return True for an operator of another library."""
    return node.op.startswith("call_") and not is_of_torch(node.target)
