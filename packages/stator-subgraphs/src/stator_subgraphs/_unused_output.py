"""What a body gives and nobody uses: compilers would keep it, for a backward that nobody asked for.

a, b = wrap(body, x); return a      ->      the body gives `a` alone; what computes `b` may raise, and stays
"""

import operator
from typing import Any

from torch import fx

from stator_subgraphs._state import GraphState
from stator_subgraphs._tracer import SubgraphTracer


def drop_unused_outputs(state: GraphState, node: fx.Node, inner: SubgraphTracer) -> None:
    """`node` is an operator that gives what its body, `inner`, gives."""
    module = _only_module(state, node, inner)
    if module is not None:
        _narrow(node, module)


def _only_module(state: GraphState, node: fx.Node, inner: SubgraphTracer) -> fx.GraphModule | None:
    """The module of the body, if no other node calls it."""
    held = [argument for argument in node.all_input_nodes if argument.op == "get_attr"]
    names = [str(argument.target) for argument in held if len(argument.users) == 1]
    found: list[Any] = [state.held[name] for name in names]
    modules = [module for module in found if isinstance(module, fx.GraphModule) and module.graph is inner.graph]
    return modules[0] if modules and _is_read_once(tracers(state.root), names[found.index(modules[0])]) else None


def tracers(tracer: SubgraphTracer) -> list[SubgraphTracer]:
    return [tracer, *(found for inner in {*tracer.bodies.values()} for found in tracers(inner))]


def _is_read_once(all_tracers: list[SubgraphTracer], name: str) -> bool:
    nodes = {node for tracer in all_tracers for node in tracer.graph.nodes if node.op == "get_attr"}
    return [str(node.target) for node in nodes].count(name) == 1


def _narrow(node: fx.Node, module: fx.GraphModule) -> None:
    output, users = module.graph.output_node(), list(node.users)
    if any(user.target is not operator.getitem for user in users):
        return
    values: Any = output.args[0]
    asked: list[Any] = [user.args[1] for user in users]
    wanted = sorted({*asked})
    if len(wanted) == len(values):
        return
    output.args = (tuple(values[index] for index in wanted),)
    node.meta["example_value"] = tuple(node.meta["example_value"][index] for index in wanted)
    for user, index in zip(users, asked, strict=True):
        user.args = (node, wanted.index(index))
    module.recompile()
