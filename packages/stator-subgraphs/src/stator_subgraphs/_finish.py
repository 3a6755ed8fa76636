"""The end of a graph: what nothing needs is dropped, deferred checks are written in, a module is
made."""

import builtins
import linecache
import operator
import sys
import weakref
from collections.abc import Iterable, Sequence
from functools import partial
from typing import Any

import torch
from stator_variables import GraphValue
from torch._guards import CompileId
from torch.fx import Graph, GraphModule, Node
from torch.fx.graph_module import _loader
from torch.fx.passes.runtime_assert import insert_deferred_runtime_asserts

from stator_subgraphs._captured_graph import CapturedGraph, CapturedModule
from stator_subgraphs._input import Inputs
from stator_subgraphs._outer_value import local_value
from stator_subgraphs._separate_history import separate_histories
from stator_subgraphs._shape_guard import ShapeGuards
from stator_subgraphs._state import GraphState
from stator_subgraphs._symbol import SymbolicTypes, symbols_of, symbols_of_any
from stator_subgraphs._tracer import SubgraphTracer

QUERIES = frozenset(
    {"size", "stride", "storage_offset", "dim", "ndimension", "numel", "nelement", "element_size"}
)
ARITHMETIC = frozenset(
    {operator.add, operator.sub, operator.mul, operator.neg, operator.pos, operator.abs}
    | {builtins.abs, builtins.max, builtins.min}
    | {
        operator.eq,
        operator.ne,
        operator.lt,
        operator.le,
        operator.gt,
        operator.ge,
        torch.sym_max,
        torch.sym_min,
    }
    | {torch.sym_not, torch.sym_int, torch.sym_float, operator.and_, operator.or_}
)
"""Functions that, on numbers, neither fail nor change anything. Division may fail, so it stays."""
VIEWS = frozenset({"detach", "movedim", "permute", "swapaxes", "t", "transpose", "unsqueeze"})
"""Operators that fail depending on the number of dimensions alone, which is guarded; so do
slices."""
DEPRECATED = frozenset({"T", "H"})
"""Attributes of which torch warns, where the tensor is no matrix."""


def captured_graph(
    state: GraphState, inputs: Inputs, outputs: Sequence[GraphValue], compile_id: CompileId
) -> CapturedGraph:
    """The graph as a module; `state` must not be traced into any more."""
    state.leave_modes()
    # nothing is taken back any more, and its records are what makes cycles
    state.journal.undo.clear()
    root = state.root
    results = tuple(local_value(root, traced).node for traced in outputs)
    separate_histories(state, results)
    root.graph.output(results)
    if has_deferred_asserts(state):
        _write_asserts(state)
        prune(root)
    else:
        _narrow_bodies(state, root)

    for node in unused(root, root.placeholders):
        root.placeholders.remove(node)
        root.graph.erase_node(node)
    root.graph.lint()
    shape_guards = ShapeGuards(state, inputs)

    return CapturedGraph(
        graph=root.graph,
        make_module=partial(_module, state, compile_id),
        inputs=tuple(inputs.ordered()),
        op_count=sum(node.op.startswith("call_") for node in root.graph.nodes),
        keeps_history=state.keeps_history,
        example_inputs=inputs.examples,
        shape_guards=shape_guards.produce,
        contexts=inputs.contexts,
        release=inputs.release,
        later_shape_guards=shape_guards.later,
    )


def _module(state: GraphState, compile_id: CompileId) -> GraphModule:
    # The program may not have had them; the backward of a loop counts its rounds.
    state.mode.allow_scalar_outputs = True
    module = CapturedModule(held_by(state, state.root.graph), state.root.graph)
    # AOTAutograd and Inductor take a graph for one of a front end, with sources for its inputs,
    # when both are there.
    module.meta["dynamo_compile_id"] = compile_id
    module.meta["dynamo_flat_name_to_original_fqn"] = {}
    vars(module)["_param_name_to_source"] = {}
    weakref.finalize(module, _forget_text, module.forward.__code__.co_filename).atexit = False
    return module


def held_by(state: GraphState, graph: Graph) -> dict[str, Any]:
    """Return the attributes that the module of `graph` needs."""
    names = {str(node.target) for node in graph.nodes if node.op == "get_attr"}
    return {name: state.held[name] for name in names}


def _forget_text(filename: str) -> None:
    """fx keeps the text of every module that it ever generated."""
    _loader.eval_cache.pop(filename, None)
    linecache.cache.pop(filename, None)


# -- checks that only the values at run time can decide --------------------------------------------
def has_deferred_asserts(state: GraphState) -> bool:
    """Only symbols that data decides have any; without one the pass would walk the graph for
    nothing."""
    return state.world.is_made and bool(
        state.env.deferred_runtime_asserts or state.env.unbacked_alloc_order
    )


def _write_asserts(state: GraphState) -> None:
    """Bodies first: a check may be about a symbol that only exists inside."""
    for name, held in state.held.items():
        if isinstance(held, GraphModule):
            insert_deferred_runtime_asserts(held, state.env, name)
            held.recompile()
    insert_deferred_runtime_asserts(GraphModule(state.held, state.root.graph), state.env, "graph")


# -- what nothing needs ----------------------------------------------------------------------------
def prune(tracer: SubgraphTracer) -> None:
    """Drop nodes that nothing uses, that cannot fail and that change nothing. An operator of the
    program is none of these: it may raise at run time, or draw random numbers."""
    for node in reversed(tracer.graph.nodes):
        if not node.users and is_droppable(node) and node not in tracer.facts.effects:
            tracer.graph.erase_node(node)


def _narrow_bodies(state: GraphState, tracer: SubgraphTracer) -> None:
    """Narrow the outputs of bodies, outer ones first: an output that one drops is not needed of
    those inside."""
    prune(tracer)
    for node, inner in tracer.called.items():
        if (module := _only_module(state, node, inner)) is not None:
            _narrow(node, module)
        _narrow_bodies(state, inner)


def is_droppable(node: Node) -> bool:
    if node.op == "get_attr":
        return True
    if node.op == "call_method":
        if node.target == "item":
            return bool(node.all_input_nodes[0].meta.get("holds_number"))
        return node.target in QUERIES or (node.target in VIEWS and len(node.all_input_nodes) == 1)
    if node.op != "call_function":
        return False
    if node.target is getattr:
        return node.args[1] not in DEPRECATED
    if node.target is operator.getitem:
        return _is_container(node.args[0]) or _slices(node)
    return node.target in ARITHMETIC and all(map(_is_number, node.all_input_nodes))


def _slices(node: Node) -> bool:
    index = node.args[1] if isinstance(node.args[1], tuple) else (node.args[1],)
    if len(node.all_input_nodes) != 1 or not all(
        isinstance(step, slice | None | type(...)) for step in index
    ):
        return False
    ends = [
        end
        for step in index
        if isinstance(step, slice)
        for end in (step.start, step.stop, step.step)
    ]
    return all(end is None or abs(end) <= sys.maxsize for end in ends)  # else it is warned of


def _is_container(node: object) -> bool:
    return isinstance(node, Node) and isinstance(
        node.meta.get("example_value"), tuple | list | dict
    )


def _is_number(node: Node) -> bool:
    return isinstance(node.meta.get("example_value"), (int, float, *SymbolicTypes))


def unused(tracer: SubgraphTracer, placeholders: Iterable[Node]) -> list[Node]:
    """Return the placeholders that no node uses; a symbol stays while the shape of anything left
    mentions it."""
    dead = [node for node in placeholders if not node.users]
    if not any(isinstance(node.meta["example_value"], SymbolicTypes) for node in dead):
        return dead
    gone = {node for node in dead if not isinstance(node.meta["example_value"], SymbolicTypes)}
    kept = (node for node in tracer.graph.nodes if node not in gone and node not in dead)
    needed = {symbol for node in kept for symbol in symbols_of_any(node.meta.get("example_value"))}
    return [
        node
        for node in dead
        if not needed.intersection(symbols_of(node.meta["example_value"])) or node in gone
    ]


# Unused outputs of a body: compilers would keep them, for a backward that never runs.
#
# a, b = wrap(body, x); return a -> the body gives `a` alone; what computes `b` may raise, and stays


def _only_module(state: GraphState, node: Node, inner: SubgraphTracer) -> GraphModule | None:
    """The module of the body `inner` of an operator that gives what it gives, if no other node
    calls it."""
    held = [argument for argument in node.all_input_nodes if argument.op == "get_attr"]
    names = [str(argument.target) for argument in held if len(argument.users) == 1]
    found: list[Any] = [state.held[name] for name in names]
    modules = [
        module
        for module in found
        if isinstance(module, GraphModule) and module.graph is inner.graph
    ]
    return (
        modules[0]
        if modules and _is_read_once(tracers(state.root), names[found.index(modules[0])])
        else None
    )


def tracers(tracer: SubgraphTracer) -> list[SubgraphTracer]:
    return [tracer, *(found for inner in {*tracer.bodies.values()} for found in tracers(inner))]


def _is_read_once(all_tracers: list[SubgraphTracer], name: str) -> bool:
    nodes = {node for tracer in all_tracers for node in tracer.graph.nodes if node.op == "get_attr"}
    return [str(node.target) for node in nodes].count(name) == 1


def _narrow(node: Node, module: GraphModule) -> None:
    output, users = module.graph.output_node(), list(node.users)
    if any(user.target is not operator.getitem for user in users):
        return
    values: Any = output.args[0]
    indices: list[Any] = [user.args[1] for user in users]
    wanted = sorted({*indices})
    if len(wanted) == len(values):
        return
    output.args = (tuple(values[index] for index in wanted),)
    node.meta["example_value"] = tuple(node.meta["example_value"][index] for index in wanted)
    for user, index in zip(users, indices, strict=True):
        user.args = (node, wanted.index(index))
    module.recompile()
