"""`stator.capture`: the graph of one call with everything that it stands on."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from stator_guards import Guard, Source
from torch.utils import _pytree as pytree

from stator._export._call import CapturedCall, captured_call
from stator._export._program import CapturedGuard, CapturedInput, CapturedOutput, CapturedProgram
from stator._export._traced_call import TracedCall, traced_call


def capture(
    f: Any,
    args: tuple[Any, ...],
    kwargs: Mapping[str, Any] | None = None,
    *,
    dynamic_shapes: Any = None,
) -> CapturedProgram:
    """Capture one call of a function or module as one graph, without compiling or running it.

    `dynamic_shapes` is a specification as `torch.export.export` takes it; without one, all sizes
    are constants. Raises Unsupported, with the line of the program, where the call is not one
    graph, and InvalidUse for arguments that `f` does not take.
    """
    traced = traced_call(captured_call(f, args, kwargs), dynamic_shapes)
    named = traced.call.named
    placeholders = [node for node in traced.module.graph.nodes if node.op == "placeholder"]
    inputs = [
        _input_spec(node.name, source, traced.call)
        for node, source in zip(placeholders, traced.sources, strict=True)
    ]
    result, _ = traced.replay(lambda *inputs: traced.examples)(*traced.call.state)
    leaves, out_spec = pytree.tree_flatten(result)
    arguments = {
        id(leaf): f"{name}{pytree.keystr(path)}"
        for name, value in named.items()
        for path, leaf in pytree.tree_flatten_with_path(value)[0]
    }
    return CapturedProgram(
        traced.module,
        tuple(inputs),
        tuple(_output_spec(leaf, traced, arguments) for leaf in leaves),
        out_spec,
        tuple(map(_readable, [*traced.guards, *traced.conditions])),
        traced.effects,
    )


def _input_spec(name: str, source: Source, call: CapturedCall) -> CapturedInput:
    owner, *_ = call.root.parameters
    *_, first = source.steps()
    start = getattr(first, "parameter", None)
    if start is not None and start != owner:
        return CapturedInput(name, "user input", source.name)

    value = source.evaluate(call.named)
    if isinstance(call.subject, torch.nn.Module):
        for path, parameter in call.subject.named_parameters():
            if parameter is value:
                return CapturedInput(name, "parameter", source.name, path)
        for path, buffer in call.subject.named_buffers():
            if buffer is value:
                return CapturedInput(name, "buffer", source.name, path)
    return CapturedInput(name, "constant", source.name)


def _output_spec(leaf: Any, traced: TracedCall, arguments: Mapping[int, str]) -> CapturedOutput:
    for index, example in enumerate(traced.examples):
        if leaf is example:
            return CapturedOutput("computed", index)
    if isinstance(leaf, torch.Tensor) and id(leaf) in arguments:
        return CapturedOutput("input", arguments[id(leaf)])
    return CapturedOutput("constant", leaf)


def _readable(guard: Guard) -> CapturedGuard:
    name = "" if guard.source is None else guard.source.description
    return CapturedGuard(name, guard.kind.needed, guard.where)
