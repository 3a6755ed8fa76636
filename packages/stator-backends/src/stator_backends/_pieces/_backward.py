"""Backward passes inside of a graph in pieces.

    piece_0 = self.piece_0(x, w);  h = piece_0[0]
    piece_1 = self.piece_1(h, v);  loss = piece_1[0]
    gradients = gradients([loss], None, [w, v], ...)    # through the backward of both pieces

Compiled in a piece, a backward sees the history of that piece alone, and what it has freed cannot
be a result of the piece with a history. Where it has to reach values before the piece, or something
behind the piece uses what it frees, autograd runs natively: it calls the compiled backward of one
piece after the other.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor
from torch.fx import GraphModule, Node

from stator_backends._alias import has_storage, is_leaf
from stator_backends._graph_facts import example_of, memory_of
from stator_backends._pieces._division import DIFFERENTIATES, Division
from stator_backends._pieces._driver import Piece


def differentiates(gm: GraphModule) -> bool:
    """Return True if a graph computes gradients itself."""
    return any(DIFFERENTIATES in node.meta for node in gm.graph.nodes)


def divide_at_backward(gm: GraphModule, piece: Piece, division: Division) -> bool:
    """Let each backward of a piece run natively whose history is not that of the piece alone.

    Returns True if there is one.
    """
    found = [node for node in piece.run.nodes if DIFFERENTIATES in node.meta]
    if not found:
        return False
    before = _history_before(gm, piece)
    leaving = {node for node in piece.outputs if _has_history(node)}
    nodes = [
        node
        for node in found
        if not (before.isdisjoint(_targets(node)) and leaving.isdisjoint(_freed_by(node)))
    ]
    for node in nodes:
        _keep_targets(node, division)
    # the backward of each piece is compiled: nothing of it runs as it is
    return division.add(nodes, "")


def _targets(node: Node) -> Iterator[Node]:
    """Yield what a backward gives gradients for; the gradients that it starts with are included."""
    roots: Any = node.args[0]
    items = roots if isinstance(roots, list | tuple) else (roots,)
    for each in node.all_input_nodes:
        if each not in items:
            yield each


def _freed_by(node: Node) -> set[Node]:
    """Return the values whose history a backward frees."""
    if "frees_history" not in node.meta:
        return set()
    roots: Any = node.args[0]
    pending = [*roots] if isinstance(roots, list | tuple) else [roots]
    found: set[Node] = set()
    while pending:
        given = pending.pop()
        if given not in found and given.op.startswith("call_") and _has_history(given):
            found.add(given)
            pending += given.all_input_nodes
    return found


def _history_before(gm: GraphModule, piece: Piece) -> set[Node]:
    """Return what the values that a piece takes were computed from, those of the graph's inputs
    excluded."""
    writers: dict[int, list[Node]] = {}
    for node in gm.graph.nodes:
        for memory in node.meta.get("writes", ()):
            writers.setdefault(memory, []).append(node)

    taken = [node for node in piece.inputs if node.op != "placeholder" and _has_history(node)]
    inside = {*piece.run.nodes}
    pending = [given for node in taken for given in _sources_of(node, writers)]
    found: set[Node] = set()
    while pending:
        node = pending.pop()
        if node not in found and node not in inside:
            found.add(node)
            pending += _sources_of(node, writers)
    return found


def _sources_of(node: Node, writers: dict[int, list[Node]]) -> Iterator[Node]:
    """Yield what a value was computed from: operands of its operator, and of writes to it."""
    yield from node.all_input_nodes
    example = example_of(node)
    if has_storage(example):
        for writer in writers.get(memory_of(example), ()):
            yield from writer.all_input_nodes


def _has_history(node: Node) -> bool:
    example = example_of(node)
    parts = example if isinstance(example, tuple | list) else [example]
    return any(isinstance(part, Tensor) and part.requires_grad for part in parts)


def _keep_targets(node: Node, division: Division) -> None:
    """Let no piece use what a backward gives gradients for together with what computes it: as two
    results of one piece they have no history in common. A leaf is made natively."""
    for target in _targets(node):
        if target.op == "placeholder" or not _has_history(target):
            continue
        division.starts.add(target.next)
        if isinstance(example := example_of(target), torch.Tensor) and is_leaf(example):
            division.add([target], "")
