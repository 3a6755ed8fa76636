"""A call traced whole, and its result as a function of the graph's outputs.

def forward(self, x, mask):          the entry of a compilation, without guards and effects;
    v0 = self._parameters["w"]       buffers that got another tensor are returned beside the
    g = graph(x, v0)                 result
    r0 = {"out": g[0]}
    return r0, ((buffers, {"seen": g[1]}),)
"""

from collections.abc import Callable, Mapping
from typing import Any

import attrs
from stator_guards import (
    DictItemSource,
    Guard,
    Source,
    expanded,
    function_text,
    load_source,
    tuple_text,
)
from stator_variables import is_entry_value
from torch.fx import GraphModule

from stator._capture._trace import TraceResult, trace
from stator._entries._entry import graph_arguments
from stator._export._call import CapturedCall
from stator._export._shape_spec import shape_spec
from stator._settings._options import make_options
from stator._settings._stack import Stack
from stator.errors import InvalidUse, Unsupported

Replay = Callable[..., tuple[Any, tuple[tuple[dict[str, Any], dict[str, Any]], ...]]]


@attrs.frozen(eq=False)
class TracedCall:
    """`replay` gives a function of the flat arguments from a callable in the graph's place.

    `examples` are the outputs of the graph under fake tensors. `conditions` are relations between
    sizes, `guards` all other conditions. `reads`: see `TraceResult`.
    """

    call: CapturedCall
    module: GraphModule
    sources: tuple[Source, ...]
    reads: tuple[int, ...]
    examples: tuple[Any, ...]
    guards: tuple[Guard, ...]
    conditions: tuple[Guard, ...]
    effects: tuple[str, ...]
    replay: Callable[[Callable[..., Any]], Replay]


def traced_call(
    call: CapturedCall, dynamic_shapes: Any, handlers: Callable[[], Mapping[Any, Any]] | None = None
) -> TracedCall:
    """Trace a call to its end. Raises Unsupported, with the line, where it cannot be one graph."""
    ours = {"repeat_effects": False}  # of checkpoints: there is no backward
    stack = None if handlers is None else Stack(handlers=handlers)
    options = make_options(
        "eager", fullgraph=True, options=ours, stack=stack, isolate_recompiles=True
    )
    policy = shape_spec(call, dynamic_shapes).policy()
    traced = trace(call.root, call.state, options, policy)
    try:
        _refuse_ends(traced)
        return _finished(call, traced)
    finally:
        traced.captured.release()


def _refuse_ends(traced: TraceResult) -> None:
    """Raise for a trace that did not reach the end of the function."""
    if traced.reason is not None:
        raise traced.reason
    if traced.point is not None:
        frame = traced.point.frames[-1]
        where = frame.code.span(frame.pc)
        error = traced.raises or "an exception"
        detail = f"the call raises {error} for these arguments\n  at {where}"
        raise InvalidUse(detail, "capture a call that returns")
    for item in traced.captured.inputs:
        if is_entry_value(item.source):
            detail = f"{item.source.description}, which is drawn in every call"
            raise Unsupported("random-value", detail, "draw with torch, or pass the number in")


def _finished(call: CapturedCall, traced: TraceResult) -> TracedCall:
    captured, emitter = traced.captured, traced.emitter
    facts = captured.shape_guards(False)
    start = emitter.effects_start
    return TracedCall(
        call,
        captured.module,
        tuple(item.source for item in captured.inputs),
        traced.reads,
        tuple(value.example for value in emitter.outputs),
        tuple(expanded(traced.guards)),
        tuple(Guard(None, fact.expression, fact.where) for fact in facts),
        (*emitter.early, *emitter.lines[start:]),
        _replay(call, traced),
    )


def _replay(call: CapturedCall, traced: TraceResult) -> Callable[[Callable[..., Any]], Replay]:
    emitter, name = traced.emitter, call.root.name
    loads: list[str] = []
    arguments = ", ".join(graph_arguments(traced, call.root, emitter, loads))
    start = emitter.effects_start
    made, effects = emitter.lines[:start], emitter.lines[start:]
    buffers = [variable for source, variable in emitter.loaded.items() if _holds_buffers(source)]

    body = [*emitter.loads, *loads, f"g = graph({arguments})", *emitter.marks(), *made]
    body += [f"of_{variable}, {variable} = {variable}, {{}}" for variable in buffers]
    body += [line for line in effects if line.startswith(tuple(f"{v}[" for v in buffers))]
    changed = tuple_text(f"(of_{variable}, {variable})" for variable in buffers)
    body.append(f"return {traced.result}, {changed}")
    text = function_text(name, call.root.parameters, body)
    captured = dict(emitter.captured)

    def replay(graph: Callable[..., Any]) -> Replay:
        namespace = {**captured, "graph": graph}
        made: Replay = load_source(text, f"<stator capture: {name}>", namespace, graph)[name]
        return made

    return replay


def _holds_buffers(source: Source) -> bool:
    return isinstance(source, DictItemSource) and source.key == "_buffers"
