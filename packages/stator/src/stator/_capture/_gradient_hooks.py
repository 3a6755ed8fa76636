"""Hooks that do nothing but compute, under a backend that compiles: they are put into the graph.

A compiler traces the backward with them, so that the graph need not be divided at the tensor. What
it has of the backward gets zeros where plain autograd computes nothing, which a hook could make
numbers of. So a hook is put there only if all results with gradients depend on its tensor, and
registered behind the graph else.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import stator_variables as variables
import torch
from torch import Tensor, fx
from torch._ops import HigherOrderOperator

if TYPE_CHECKING:
    from stator_subgraphs import OutputGraph


def has_hook_outside(emitter: variables.Emitter, graph: OutputGraph) -> bool:
    """Return True if hooks have to be registered behind the graph that were not yet, so that the
    entry is to be written again."""
    hooks = variables.hooks_in_graph(emitter)
    for call in hooks:
        if call.pure is not None and not _fits(emitter, graph, call):
            variables.run_natively(emitter.t, call)
    return any(call.pure is None for call in hooks)


def place_hooks(emitter: variables.Emitter, graph: OutputGraph) -> None:
    """Put hooks into the graph, in the order in which the program registered them."""
    for call in reversed(variables.hooks_in_graph(emitter)):  # the first one next to the tensor
        if call.pure is None:
            continue
        with graph.fake_mode, torch.enable_grad():
            variables.place_hook(graph.current, call.tensor.before.node, call.pure)


def _fits(emitter: variables.Emitter, graph: OutputGraph, call: Any) -> bool:
    """Return True if nothing outside of the graph has the tensor, the handle, or a variable of the
    hook, and the hook gives what autograd takes."""
    seen = [call.result, *call.args[1].closure]
    if any(map(emitter.has_made, seen)) or variables.pure_hook(call.args[1]) != call.pure:
        return False
    node = call.tensor.before.node
    returned = [traced.node for traced in emitter.outputs]
    operators = emitter.t.state(variables.Differentiated)
    if node in returned or graph.keeps_history or operators.has_backward:
        return False
    return _is_written_once(node, graph) and _is_needed(node, returned, graph) and _gives_like(call)


def _is_written_once(node: fx.Node, graph: OutputGraph) -> bool:
    """Return True if only this node gives the tensor, and nothing writes to its memory."""
    from stator_subgraphs import storage_of  # when first needed: importing stator is to be quick

    example = node.meta["example_value"]
    memory = storage_of(example)
    for other in graph.current.nodes:
        if other is not node and other.meta.get("example_value") is example:
            return False
        if memory in other.meta.get("writes", ()):
            return False
    return node.op.startswith("call_")


def _is_needed(node: fx.Node, returned: list[fx.Node], graph: OutputGraph) -> bool:
    """Return True if each gradient that arrives at the graph passes the tensor."""
    from stator_subgraphs import storage_of

    passing = {node}
    for other in graph.current.nodes:
        is_body = isinstance(other.target, HigherOrderOperator)  # which may drop a gradient
        if not is_body and _is_trained(other) and not passing.isdisjoint(other.all_input_nodes):
            passing.add(other)
    inputs = graph.current.find_nodes(op="placeholder")
    memory = {storage_of(each.meta["example_value"]) for each in inputs if _is_trained(each)}
    is_written = any(memory & {*other.meta.get("writes", ())} for other in graph.current.nodes)
    trained = [each for each in returned if _is_trained(each)]
    return bool(trained) and passing.issuperset(trained) and not is_written


def _is_trained(node: fx.Node) -> bool:
    example = node.meta.get("example_value")
    parts = example if isinstance(example, tuple | list) else (example,)
    return any(isinstance(part, Tensor) and part.requires_grad for part in parts)


def _gives_like(call: Any) -> bool:
    """Return True if the hook gives a gradient like the one that it is given."""
    given = torch.empty_like(call.tensor.before.example, requires_grad=False)
    try:
        with torch.no_grad():
            made = call.pure.hook()(given)
    except (RuntimeError, TypeError, AttributeError):
        return False  # autograd calls it, and it raises in backward
    if not isinstance(made, Tensor) or made.shape != given.shape:
        return False
    return made.dtype == given.dtype and made.device == given.device
