"""Graphs that differentiate, under a backend that compiles.

A compiler takes forward and backward as one computation without a history. Results that the
backward has freed get a history that is freed, too
(`stator_backends/_contracts/_freed_history.py`). Anything else that can still be differentiated has
to come from a graph of its own: then the program is traced again, with a break at each backward.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import stator_variables as variables
import torch
from torch import Tensor

if TYPE_CHECKING:
    from stator_subgraphs import OutputGraph


def remaining_history(emitter: variables.Emitter, graph: OutputGraph) -> str:
    """Return why a graph with a backward needs its history still; empty if it does not."""
    t = emitter.t
    if not t.differentiates or t.policy.runs_in_order or graph.keeps_history:
        return ""
    inputs = [node.meta["example_value"] for node in graph.current.find_nodes(op="placeholder")]
    outputs = [traced.example for traced in emitter.outputs]
    if all(_is_done(graph, each) for each in (*inputs, *outputs)):  # inputs are written to
        return ""
    return "a result that can be differentiated again"


def _is_done(graph: OutputGraph, example: Any) -> bool:
    """Return True for a value without a history, or with one that a backward has freed."""
    if not isinstance(example, Tensor) or not example.requires_grad:
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
