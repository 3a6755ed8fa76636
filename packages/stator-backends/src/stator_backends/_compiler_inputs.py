"""Example inputs as a compiler takes them: symbols for numbers, fake tensors with the symbols of
the trace."""

import sys
from collections.abc import Container, Mapping, Sequence
from typing import Any

import torch
from torch import Tensor
from torch._guards import TracingContext
from torch._subclasses.fake_tensor import FakeTensor, FakeTensorMode
from torch.fx import GraphModule, Node
from torch.utils._python_dispatch import is_traceable_wrapper_subclass

from ._backend import BackendSpec
from ._context import PlaceholderSource, static_context, without_number
from ._graph_facts import example_of, has_symbol_inside, placeholders


def with_symbols(gm: GraphModule, inputs: Sequence[Any]) -> list[Any]:
    """Replace the number given for a symbolic placeholder by its symbol: a compiler would make a
    new one of it."""
    symbolic = (torch.SymInt, torch.SymFloat, torch.SymBool)
    examples = [example_of(node) for node in placeholders(gm)]
    return [
        example if isinstance(example, symbolic) else value
        for value, example in zip(inputs, examples, strict=True)
    ]


def record_contexts(
    gm: GraphModule,
    inputs: list[Any],
    spec: BackendSpec,
    context: TracingContext,
    contexts: Mapping[Tensor, Any],
    hides_floats: bool,
    prepared: Container[int] = (),
) -> None:
    """Record in ``context`` how each input becomes fake again; make it fake in place for a backend
    that takes fakes. Inputs with an id in `prepared` are fake already."""
    mode = context.fake_mode
    assert mode is not None
    for position, (value, node) in enumerate(zip(inputs, placeholders(gm), strict=True)):
        if not isinstance(value, Tensor):
            continue
        if id(value) in prepared:
            inputs[position] = mode.from_tensor(value)
            continue
        if isinstance(value, FakeTensor) or _is_known_by_trace_only(value, node, contexts):
            inputs[position] = mode.from_tensor(node.meta.get("example_value", value))
            continue

        symbolic = contexts.get(value)
        if symbolic is None:
            symbolic = static_context(value, PlaceholderSource(position))
        if hides_floats or not has_symbol_inside(node):
            symbolic = without_number(symbolic)
        context.tensor_to_context[value] = symbolic
        if spec.fake_inputs:
            inputs[position] = _fake(mode, value, symbolic)


def symbolic_input(mode: FakeTensorMode, value: Any, contexts: Mapping[Tensor, Any]) -> Any:
    """Return an input with the symbols that its context has for its sizes, or as it is."""
    symbolic = contexts.get(value) if isinstance(value, Tensor) else None
    return value if symbolic is None else _fake(mode, value, symbolic)


def _fake(mode: FakeTensorMode, value: Tensor, symbolic: Any) -> Tensor:
    return mode.from_tensor(value, source=symbolic.tensor_source, symbolic_context=symbolic)


def _is_known_by_trace_only(value: Tensor, node: Node, contexts: Mapping[Tensor, Any]) -> bool:
    """Return True for a tensor with symbols, or a wrapper, without context: only its node has its
    fake form."""
    if value in contexts:
        return False
    example = example_of(node)
    symbolic = isinstance(example, FakeTensor) and example._has_symbolic_sizes_strides
    return bool(symbolic or (example is not None and is_traceable_wrapper_subclass(value)))


def forget_floats(fake_mode: FakeTensorMode, hides_floats: bool) -> None:
    """Reset the names of float symbols that torch makes constants: it has one set for all
    compilations.

    The `ShapeEnv` still has the symbols that are hidden from the compiler, which must not read
    them.
    """
    state = getattr(sys.modules.get("torch._dynamo.symbolic_convert"), "TensorifyState", None)
    if state is None:
        return

    state.clear()
    if hides_floats:
        for symbol in getattr(fake_mode.shape_env, "backed_var_to_val", ()):
            state.specialize(str(symbol))


def shape_guards_of(fake_mode: FakeTensorMode) -> list[Any]:
    """Return the guards on symbols that were added while compiling too."""
    return [] if (shape_env := fake_mode.shape_env) is None else list(shape_env.guards)
