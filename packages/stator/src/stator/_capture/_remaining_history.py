"""Graphs that differentiate, under a backend that compiles.

A compiler takes forward and backward as one computation without a history. Results that the
backward has freed get a history that is freed, too
(`stator_backends/_contracts/_freed_history.py`). Anything else that can still be differentiated has
to keep its own: then each backward runs natively, between compiled pieces.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import stator_variables as variables
import torch
from torch import Tensor, fx

if TYPE_CHECKING:
    from stator_subgraphs import OutputGraph

RESULT_WITH_HISTORY = "a backward beside a result that can be differentiated again"


def keep_remaining_history(emitter: variables.Emitter, graph: OutputGraph) -> None:
    """Let each backward that frees its history run natively, if something else of the graph can
    still be differentiated."""
    t = emitter.t
    has_backward = t.state(variables.Differentiated).has_backward
    if not has_backward or t.policy.runs_in_order or graph.keeps_history:
        return
    backwards = [node for node in graph.current.nodes if "frees_history" in node.meta]
    if not backwards:
        return
    inputs = [node.meta["example_value"] for node in graph.current.find_nodes(op="placeholder")]
    outputs = [traced.example for traced in emitter.outputs]
    if all(_is_done(graph, each) for each in (*inputs, *outputs)):  # inputs are written to
        return
    for node in backwards:
        node.meta["native"] = RESULT_WITH_HISTORY
        if node.target is torch.autograd.grad:
            fx.map_arg(node.args[1], _keep_apart)


def _keep_apart(node: fx.Node) -> fx.Node:
    """Mark a value that is differentiated for: a compiler gets nothing that uses it together with
    what gives it."""
    node.meta["apart"] = True
    return node


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
                [example],
                leaves,
                [torch.empty_like(example)],
                retain_graph=True,
                allow_unused=True,
            )
    except RuntimeError as error:
        return str(error).startswith("Trying to backward through the graph a second time")

    return False
