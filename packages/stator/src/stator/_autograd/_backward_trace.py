"""A segment of a backward with hooks and functions of the program, traced as the program itself is.

It becomes one graph, with the effects of that code behind it. Code that breaks the trace stays
between graphs.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

import attrs
from stator_backends import Backend
from stator_guards import GlobalState, GradientSource, Guard, ParameterSource, Source, expanded
from stator_subgraphs import (
    CapturedGraph,
    as_function,
    followed_accumulations,
    is_of_torch,
    may_raise,
    node_may_draw,
    take_first_gradients,
    unpacks,
)
from stator_variables import Dim, Policy, is_entry_value
from torch import Tensor
from torch.fx import Graph, Node

from stator._autograd._backward_function import TracedSegment
from stator._autograd._backward_warning import warn_below_engine
from stator._capture._dynamic import Shapes
from stator._capture._trace import TraceResult, trace
from stator._entries._entry import input_text
from stator._entries._graph_effects import GraphEffects
from stator._program._target import Root
from stator._settings._options import make_options
from stator.errors import StatorError


def trace_user_code(
    graph: Graph,
    arguments: Sequence[object],
    seen: Sequence[object],
    backend: Backend,
    shapes: Shapes,
) -> TracedSegment | set[Node]:
    """Return the segment as a graph, or the calls of code that cannot be captured: all of them,
    where it is not known which."""
    function, lines = as_function(graph)
    root = Root.of(function)
    named = dict(zip(root.parameters, (None, *arguments), strict=True))
    policy = _policy(dict(zip(root.parameters[1:], seen, strict=True)), shapes.policy(named))
    try:
        traced = trace(root, (None, *arguments), make_options(backend), policy)
    except StatorError:  # a refusal: the code runs as it is
        return {*lines.values()}
    finally:
        named.clear()  # the policy has it

    segment = _segment(traced, root, graph)
    if segment is not None:
        return segment
    traced.captured.release()
    frames = () if traced.point is None else traced.point.frames
    begun = {frame.instruction.positions[0] for frame in frames[:1]}
    broken = {node for line, node in lines.items() if line in begun}
    return broken or {*lines.values()}


def _segment(traced: TraceResult, root: Root, graph: Graph) -> TracedSegment | None:
    """Return the segment, or None if it is more than a graph and effects behind it."""
    emitter, captured = traced.emitter, traced.captured
    hooked = _hooked_variables(graph, root)
    ahead = emitter.ahead or emitter.early or emitter.behind or emitter.fleeting
    if traced.point is not None or ahead or _depends_on_order(traced, hooked):
        return None

    has_effects = len(emitter.lines) > emitter.effects_start
    # sizes are inputs, which raise nothing
    calls = [node for node in captured.graph.nodes if node.op.startswith("call_")]
    is_risky = has_effects and (unpacks(graph) or any(map(may_raise, calls)))
    if is_risky and not _may_run_again(captured):
        return None
    take_first_gradients(captured.graph)
    inputs = [input_text(emitter, item) for item in captured.inputs]

    return TracedSegment(
        captured,
        emitter.t.graph.fake_mode,
        [*traced.guards, Guard(None, GlobalState(saves_tensors=False))],
        root.parameters,
        inputs,
        emitter.loads,
        emitter.lines,
        traced.result,
        {name: _relocated(value) for name, value in emitter.captured.items()},
        is_risky,
    )


def _relocated(value: object) -> object:
    return warn_below_engine if value is warnings.warn else value


def _hooked_variables(graph: Graph, root: Root) -> set[Source]:
    """Return the variables whose gradients are accumulated in the trace."""
    variables = {node.args[0] for node in followed_accumulations(graph)}
    pairs = zip(graph.find_nodes(op="placeholder"), root.parameters[1:], strict=True)
    return {ParameterSource(name) for node, name in pairs if node in variables}


def _depends_on_order(traced: TraceResult, hooked: set[Source]) -> bool:
    """Return True if the code draws random numbers, or has to do with a `.grad` that may not be
    accumulated yet."""
    inputs = [item.source for item in traced.captured.inputs]
    if any(map(is_entry_value, inputs)) or any(map(node_may_draw, traced.captured.graph.nodes)):
        return True

    read = {
        step for guard in expanded(traced.guards) for each in guard.sources for step in each.steps()
    }
    read |= {step for source in inputs for step in source.steps()}
    gradients = {step.whole for step in read if isinstance(step, GradientSource)}
    return not {*gradients, *traced.emitter.gradients} <= hooked


def _may_run_again(captured: CapturedGraph) -> bool:
    """Return True if nobody sees that a graph has run up to an operator that raised."""
    calls = [node for node in captured.graph.nodes if node.op == "call_function"]
    are_of_torch = all(is_of_torch(node.target) for node in calls)
    return are_of_torch and not GraphEffects.of(captured).is_observable


def _policy(numbers: dict[str, Any], usual: Policy) -> Policy:
    """Return the decisions about sizes and numbers of the segment, of which None is one that
    changes, and the `usual` ones about what the code of the program has besides."""

    def dims(source: Source, tensor: Tensor) -> list[Dim]:
        if not isinstance(source, ParameterSource):
            return usual.dims(source, tensor)
        seen = numbers.get(source.name)
        sizes = [*tensor.shape] if seen is None else seen
        pairs = zip(tensor.shape, sizes, strict=True)
        return [Dim("dynamic" if old is None and size > 1 else "static") for size, old in pairs]

    def number_is_symbolic(source: Source, value: Any, at_once: bool) -> bool:
        if not isinstance(source, ParameterSource):
            return usual.number_is_symbolic(source, value, at_once)
        return type(value) is int and numbers.get(source.name, 0) is None

    return attrs.evolve(usual, dims=dims, number_is_symbolic=number_is_symbolic)
