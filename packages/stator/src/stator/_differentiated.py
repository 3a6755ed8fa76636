"""Graphs that differentiate, under a backend that compiles.

A compiler takes forward and backward as one computation without a history. Results that the
backward has freed get a history which says so (`stator_backends/_contracts/_freed_history.py`).
Anything else that can still be differentiated has to come from a graph of its own: then the
program breaks at its first backward.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import stator_variables as variables
import torch
from torch import Tensor

if TYPE_CHECKING:
    from stator_subgraphs import OutputGraph


def break_at_backward(emitter: variables.Emitter, graph: OutputGraph) -> None:
    """Raise StaysInGraph for the first backward of a graph that a compiler would not keep."""
    t = emitter.t
    if not t.backwards or t.policy.runs_in_order or graph.keeps_history:
        return
    if reason := _reason(graph, [traced.example for traced in emitter.outputs]):
        raise variables.StaysInGraph(t.backwards[0], t.unsupported("kept-history", reason))


def _reason(graph: OutputGraph, outputs: Sequence[Any]) -> str:
    from stator_subgraphs import CHECKPOINTS, storage_of

    nodes = [*graph.current.nodes]
    if any(node.target in CHECKPOINTS for node in nodes):
        return "a checkpoint, which a compiler would not compute again"
    written = set().union(*(node.meta.get("writes", ()) for node in nodes))
    inputs = [node.meta["example_value"] for node in nodes if node.op == "placeholder"]
    changed = [each for each in inputs if isinstance(each, Tensor) and storage_of(each) in written]
    for example in (*outputs, *changed):
        if isinstance(example, Tensor) and not _is_done(graph, example):
            return "a tensor that can be differentiated again after a backward"
    return ""


def _is_done(graph: OutputGraph, example: Tensor) -> bool:
    """Return True for a tensor without a history, or with one that a backward has freed."""
    if not example.requires_grad:
        return True
    if variables.history_of(example) is None:
        return True
    leaves = variables.reached_leaves([example])
    try:
        with graph.fake_mode, torch.no_grad():
            torch.autograd.grad(
                *([example], leaves, [torch.empty_like(example)]),
                retain_graph=True,
                allow_unused=True,
            )
    except RuntimeError as error:
        return str(error).startswith("Trying to backward through the graph a second time")
    return False
