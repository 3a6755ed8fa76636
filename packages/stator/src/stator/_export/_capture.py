"""The graph of one call, with all that it relies on."""

from collections.abc import Mapping
from typing import Any

import torch
from stator_guards import CapturedSource, Guard, Source
from torch.utils import _pytree as pytree

from stator._export._call import CapturedCall, captured_call
from stator._export._program import CapturedGuard, CapturedInput, CapturedOutput, CapturedProgram
from stator._export._traced_call import TracedCall, traced_call
from stator._program._target import parameters_of


def captured(
    f: Any, args: tuple[Any, ...], kwargs: Mapping[str, Any] | None, dynamic_shapes: Any
) -> CapturedProgram:
    """Trace a call, and describe what the graph takes, gives and relies on."""
    traced = traced_call(captured_call(f, args, kwargs), dynamic_shapes)
    placeholders = [node for node in traced.module.graph.nodes if node.op == "placeholder"]
    inputs = [
        _input_spec(node.name, source, traced.call)
        for node, source in zip(placeholders, traced.sources, strict=True)
    ]

    result, _ = traced.replay(lambda *inputs: traced.examples)(*traced.call.state)
    leaves, out_spec = pytree.tree_flatten(result)
    arguments = {
        id(leaf): f"{name}{pytree.keystr(path)}"
        for name, value in zip(*_arguments(traced.call), strict=True)
        for path, leaf in pytree.tree_flatten_with_path(value)[0]
    }

    guards = [guard for guard in traced.guards if not _is_of_call(guard, traced.call)]
    return CapturedProgram(
        traced.module,
        tuple(inputs),
        tuple(_output_spec(leaf, traced, arguments) for leaf in leaves),
        out_spec,
        tuple(map(_readable, [*guards, *traced.conditions])),
        traced.effects,
    )


def _arguments(call: CapturedCall) -> tuple[tuple[str, ...], tuple[Any, ...]]:
    """Return the names that the program has for the flat arguments, and these."""
    return parameters_of(call.root.code), call.state


def _input_spec(name: str, source: Source, call: CapturedCall) -> CapturedInput:
    owner, *_ = call.root.parameters
    *_, first = source.steps()
    start = getattr(first, "parameter", None)
    if start is not None and start != owner:
        return CapturedInput(name, "user input", source.description)

    value = source.evaluate(call.named)
    if isinstance(call.subject, torch.nn.Module):
        for path, parameter in call.subject.named_parameters():
            if parameter is value:
                return CapturedInput(name, "parameter", source.description, path)
        for path, buffer in call.subject.named_buffers():
            if buffer is value:
                return CapturedInput(name, "buffer", source.description, path)
    return CapturedInput(name, "constant", source.description)


def _output_spec(leaf: Any, traced: TracedCall, arguments: Mapping[int, str]) -> CapturedOutput:
    for index, example in enumerate(traced.examples):
        if leaf is example:
            return CapturedOutput("computed", index)
    if isinstance(leaf, torch.Tensor) and id(leaf) in arguments:
        return CapturedOutput("input", arguments[id(leaf)])
    return CapturedOutput("constant", leaf)


def _is_of_call(guard: Guard, call: CapturedCall) -> bool:
    """Return True for a guard about the function that makes the call, which is ours."""
    if guard.source is None:
        return False
    *_, first = guard.source.steps()
    return isinstance(first, CapturedSource) and first.held.get() is call.root.fn


def _readable(guard: Guard) -> CapturedGuard:
    name = "" if guard.source is None else guard.source.description
    return CapturedGuard(name, guard.kind.needed, guard.where)
