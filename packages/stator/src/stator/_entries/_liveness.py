"""Liveness: results of a graph that a handler of the program may read must still be there when an
operator in its `try` raises, unless they can be computed again."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

import attrs
import torch
from stator_subgraphs import bodies_of, is_mode_call, storage_of
from torch import fx
from torch.amp import autocast_mode

from stator._entries._graph_effects import has_effect


def _storages(nodes: Sequence[fx.Node]) -> set[int]:
    examples = (node.meta.get("example_value") for node in nodes)
    return {storage_of(example) for example in examples if isinstance(example, torch.Tensor)}


@attrs.define(eq=False)
class Repeatable:
    """The nodes of a graph that give the same results when they run again at any later time."""

    written: set[int]
    under_modes: set[fx.Node]

    @classmethod
    def of(cls, graph: fx.Graph) -> Repeatable:
        """Read a graph. The present modes have to be those at its entry."""
        nodes = [*graph.nodes]
        written = {storage for node in nodes for storage in node.meta.get("writes", ())}
        return cls(written, _under_modes(nodes))

    def __call__(self, node: fx.Node) -> bool:
        if node.op in ("placeholder", "get_attr"):
            return True
        if node in self.under_modes or has_effect(node) or "kept" in node.meta:
            return False
        if next(bodies_of(node), None) is not None:
            return False
        return self.written.isdisjoint(_storages([node, *node.all_input_nodes]))


def _under_modes(nodes: Sequence[fx.Node]) -> set[fx.Node]:
    """Return the nodes that run under other modes than those at the entry of their graph."""
    found: set[fx.Node] = set()
    had_gradients = has_gradients = torch.is_grad_enabled()
    depth = 0
    is_unknown = False
    for node in nodes:
        if not is_mode_call(node):
            if depth or is_unknown or has_gradients != had_gradients:
                found.add(node)
            continue

        found.add(node)
        if node.target is torch._C._set_grad_enabled:
            has_gradients = bool(node.args[0])
        elif node.target in _DEPTHS:
            depth += _DEPTHS[node.target]
        else:
            is_unknown = True
    return found


_DEPTHS: Mapping[Any, int] = {
    autocast_mode._enter_autocast: 1,
    autocast_mode._exit_autocast: -1,
}


_DROPPED = re.compile(r";  ((?:\w+ = )+)None")


def keep_for_handlers(module: fx.GraphModule) -> None:
    """Keep what `except` and `finally` clauses may need, and nothing can compute again, until the
    last operator that such a clause is around. Graphs without one stay as they are."""
    nodes = [*module.graph.nodes]
    last = max((i for i, node in enumerate(nodes) if node.meta.get("handled")), default=0)
    is_repeatable = Repeatable.of(module.graph)
    kept = {node.name for node in nodes[:last] if not is_repeatable(node)}
    if not kept:
        return

    def without_drops(body: list[str]) -> list[str]:
        return [_DROPPED.sub(lambda match: _drops(match[1], kept), line) for line in body]

    module.graph.on_generate_code(lambda current: without_drops)
    module.recompile()


def mark_for_handlers(graph: fx.Graph) -> None:
    """Mark the results that compiled pieces have to give for `except` and `finally` clauses of the
    program, since nothing can compute them again."""
    nodes = [*graph.nodes]
    last = max((i for i, node in enumerate(nodes) if node.meta.get("handled")), default=0)
    is_repeatable = Repeatable.of(graph)
    for node in nodes[:last]:
        if node.op.startswith("call_") and not is_repeatable(node):
            node.meta["kept"] = True


def _drops(names: str, kept: set[str]) -> str:
    dropped = [name for name in names.split(" = ") if name and name not in kept]
    return f";  {' = '.join(dropped)} = None" if dropped else ""
