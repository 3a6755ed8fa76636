"""A segment of a backward with hooks and functions of the program, traced as the program itself is.

It becomes one graph if nothing but gradients comes of it. Else that code stays between graphs.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import attrs
from stator_backends import Backend
from stator_guards import Guard, ParameterSource, Source, function_text, load_source
from stator_variables import Dim, Policy, is_drawn
from torch import Tensor
from torch.fx import Graph, Node

from stator._capture._trace import TraceResult, trace
from stator._program._target import Root
from stator._settings._options import make_options
from stator.errors import StatorError, Unsupported

if TYPE_CHECKING:
    from stator_subgraphs import CapturedGraph


@attrs.frozen(eq=False)
class TracedSegment:
    """The graph of a segment, the guards on its arguments, and how its results are made of the
    graph's."""

    captured: CapturedGraph
    fake_mode: Any
    guards: Sequence[Guard]
    parameters: tuple[str, ...]
    results: Callable[[Sequence[object]], Sequence[object]] | None = None


def user_code_in(graph: Graph) -> list[Node]:
    from stator_subgraphs import may_be_followed

    return [node for node in graph.nodes if may_be_followed(node)]


def refusal_of(node: Node) -> Unsupported:
    """Return the refusal, under `fullgraph`, of a call of the program's code between graphs."""
    hint = "remove it, or leave fullgraph out: it runs between two graphs then"
    return Unsupported("backward-hook", f"{node.name} in a backward pass", hint)


def trace_user_code(
    graph: Graph, arguments: Sequence[object], seen: Sequence[object], backend: Backend
) -> TracedSegment | set[Node]:
    """Return the segment as a graph, or the calls of code that has effects or cannot be captured:
    all of them, where it is not known which."""
    from stator_subgraphs import as_function

    function, lines = as_function(graph)
    root = Root.of(function)
    names = root.parameters[1:]
    policy = _policy(dict(zip(names, seen, strict=True)))
    try:
        traced = trace(root, (None, *arguments), make_options(backend), policy)
    except StatorError:  # a refusal: the code runs as it is
        return {*lines.values()}
    results = _results(traced) if _gives_only_gradients(traced) else None
    if results is None:
        traced.captured.release()
        frames = () if traced.point is None else traced.point.frames
        begun = {frame.instruction.positions[0] for frame in frames[:1]}
        broken = {node for line, node in lines.items() if line in begun}
        return broken or {*lines.values()}
    fake_mode = traced.emitter.t.graph.fake_mode
    return TracedSegment(traced.captured, fake_mode, traced.guards, root.parameters, results)


def _results(traced: TraceResult) -> Callable[[Sequence[object]], Sequence[object]] | None:
    """Return a function that makes the results of the graph's, or None if it takes more than
    those."""
    source = function_text("results", ("g",), [*traced.emitter.lines, f"return {traced.result}"])
    objects = dict(traced.emitter.captured)
    made: Any = load_source(source, "<stator backward>", objects, traced)["results"]
    return made if traced.emitter.captured.keys() >= {*made.__code__.co_names} else None


def _policy(numbers: dict[str, Any]) -> Policy:
    """Return the decisions about sizes and numbers; None is one that changes."""

    def dims(source: Source, tensor: Tensor) -> list[Dim]:
        seen = numbers.get(source.name) if isinstance(source, ParameterSource) else None
        sizes = [*tensor.shape] if seen is None else seen
        pairs = zip(tensor.shape, sizes, strict=True)
        return [Dim("dynamic" if old is None and size > 1 else "static") for size, old in pairs]

    def number_is_symbolic(source: Source, value: Any, at_once: bool) -> bool:
        is_given = isinstance(source, ParameterSource) and source.name in numbers
        return is_given and type(value) is int and numbers[source.name] is None

    return Policy(dims, number_is_symbolic)


def _gives_only_gradients(traced: TraceResult) -> bool:
    """Return True if the trace ran to its end without an effect, and read no `.grad`: it may not
    be accumulated yet."""
    from stator_subgraphs import node_may_draw

    emitter, inputs = traced.emitter, traced.captured.inputs
    has_effects = bool(emitter.early) or len(emitter.lines) > emitter.effects_start
    if traced.point is not None or has_effects or emitter.draws or emitter.late_draws:
        return False
    sources = [item.source for item in inputs] + [guard.source for guard in traced.guards]
    if any(source is not None and _reads_gradient(source) for source in sources):
        return False
    has_draws = any(is_drawn(item.source) for item in inputs)
    return not has_draws and not any(map(node_may_draw, traced.captured.graph.nodes))


def _reads_gradient(source: Source) -> bool:
    return ".grad" in source.description.replace("._", ".")
