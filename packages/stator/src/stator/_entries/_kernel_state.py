"""Setters of state that kernels read when they run, in a graph that a compiler gets.

A compiler follows a setter while it traces, and drops it: the kernels would find the state of the
caller. Where all operators run under one state, as in a `with` block of `torch.backends`, the
setters are taken out of the graph and run around what the compiler made of it:

    torch._C._set_cudnn_enabled(False)        prologue
    sin = x.sin()                             graph(x)
    torch._C._set_cudnn_enabled(True)         epilogue

A graph with operators under several states is divided at the setters, which run natively between
pieces that are compiled under one state each.
"""

from collections.abc import Callable, Sequence
from typing import Any

import attrs
from stator_variables import sets_state_of_kernels
from torch.fx import GraphModule, Node

SEVERAL = "state that kernels read when they run is set between operators"


@attrs.frozen
class StateCalls:
    """The setters before and after the operators of a graph."""

    prologue: tuple[Node, ...] = ()
    epilogue: tuple[Node, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.prologue or self.epilogue)

    def take_out(self, module: GraphModule) -> None:
        for node in (*self.epilogue, *self.prologue):
            module.graph.erase_node(node)
        module.recompile()

    def around(self, graph: Callable[..., Any]) -> Callable[..., Any]:
        def call(*inputs: object) -> Sequence[Any]:
            run(self.prologue)
            outputs: Sequence[Any] = graph(*inputs)
            run(self.epilogue)
            return outputs

        return call


def run(setters: Sequence[Node]) -> None:
    for node in setters:
        target: Any = node.target
        target(*node.args, **node.kwargs)


def mark_setters(module: GraphModule) -> None:
    """Let the setters of a graph run natively."""
    for node in module.graph.nodes:
        if node.op.startswith("call_") and sets_state_of_kernels(node.target):
            node.meta["native"] = SEVERAL


def state_calls(module: GraphModule) -> StateCalls | None:
    """Find the setters of a graph; None where operators run under several states."""
    from stator_subgraphs import computes_nothing  # brings sympy, with the first trace

    calls = [node for node in module.graph.nodes if node.op.startswith("call_")]
    setters = [i for i, node in enumerate(calls) if sets_state_of_kernels(node.target)]
    if not setters:
        return StateCalls()

    operators = [i for i, node in enumerate(calls) if not computes_nothing(node)]
    first, last = min(operators, default=len(calls)), max(operators, default=len(calls))
    if any(first < i < last for i in setters):
        return None
    before = tuple(calls[i] for i in setters if i < first)
    return StateCalls(before, tuple(calls[i] for i in setters if i > last))
