"""The faults of a graph module, as text: what compilers downstream rely on and would report far
from the cause."""

from collections.abc import Iterator
from typing import Any

import torch
from stator_variables import GraphValue
from torch import fx
from torch._subclasses.fake_tensor import FakeTensor
from torch.fx import Graph, GraphModule, Node

from stator_subgraphs._symbol import SymbolicTypes, symbols_of, symbols_of_any

NUMBERS = (int, float, bool, *SymbolicTypes)


def check_graph(module: GraphModule, *, is_body: bool = False) -> list[str]:
    """Everything that is wrong with a finished graph or one of its bodies; empty when a compiler
    may see it. A body may give one value as it is (the condition of a loop)."""
    graph = module.graph
    faults = [
        *_lint(module),
        *_nodes(graph),
        *_placeholders(graph),
        *_symbols(graph),
        *_output(graph, is_body),
    ]
    for name, child in module.named_children():
        if isinstance(child, GraphModule):
            faults += [f"{name}: {fault}" for fault in check_graph(child, is_body=True)]
    return faults


def _lint(module: GraphModule) -> Iterator[str]:
    try:
        module.graph.lint()
    except RuntimeError as error:
        yield f"lint: {error}"


def _nodes(graph: Graph) -> Iterator[str]:
    known = set(graph.nodes)

    for node in graph.nodes:
        yield from (
            f"{node} uses {source} of another graph"
            for source in node.all_input_nodes
            if source not in known
        )
        if node.op.startswith("call_") and "example_value" not in node.meta:
            yield f"{node} has no example"

        if (
            node.op.startswith("call_")
            and "stack_trace" not in node.meta
            and "source_fn_stack" in node.meta
        ):
            yield f"{node} has no line of the program in its metadata"
        yield from _leaks(node)


LEAKED = (fx.Proxy, GraphValue, FakeTensor, *SymbolicTypes)


def _leaks(node: Node) -> Iterator[str]:
    """Yield objects that belong to the trace and not to the graph: as an argument, one would be a
    constant of one compilation."""
    found: list[Any] = []
    fx.node.map_aggregate((node.args, node.kwargs), found.append)
    yield from (
        f"{node} has a {type(item).__name__} of the trace in it"
        for item in found
        if isinstance(item, LEAKED)
    )


def _placeholders(graph: Graph) -> Iterator[str]:
    started = False
    for node in graph.nodes:
        if node.op != "placeholder":
            started = True
            continue
        if started:
            yield f"the placeholder {node} comes after an operator"
        if "example_value" not in node.meta:
            yield f"the placeholder {node} has no example"
        elif (
            isinstance(node.meta["example_value"], (torch.Tensor, *SymbolicTypes))
            and node.type is None
        ):
            yield f"the placeholder {node} has no type"


def _symbols(graph: Graph) -> Iterator[str]:
    """Each symbol of an example is a placeholder, or made by a node, before it is met; in a body
    its place is free."""
    is_body = not any(
        hasattr(node, "_dynamo_source") for node in graph.find_nodes(op="placeholder")
    )
    bound: set[Any] = set()
    if is_body:
        bound = {
            symbol for node in graph.find_nodes(op="placeholder") for symbol in _bound_by(node)
        }
    for node in graph.nodes:
        bound |= _bound_by(node)
        if missing := {*symbols_of_any(node.meta.get("example_value"))} - bound - _of_offset(node):
            names = ", ".join(sorted(map(str, missing)))
            yield f"{node} has symbols that nothing before it binds: {names}"


def _of_offset(node: Node) -> set[Any]:
    """Return the symbols of a result's storage offset, which the operator itself determines: a loop
    in its rounds."""
    example = node.meta.get("example_value")
    parts = example if isinstance(example, tuple | list) else [example]
    if node.op == "placeholder":
        return set()
    tensors = [
        part for part in parts if isinstance(part, torch.Tensor) and part.layout is torch.strided
    ]
    return {symbol for tensor in tensors for symbol in symbols_of(tensor.storage_offset())}


def _bound_by(node: Node) -> set[Any]:
    bindings = node.meta.get("unbacked_bindings") or {}
    example = node.meta.get("example_value")
    binds = node.op == "placeholder" or (node.op, node.target) == ("call_method", "item")
    return {
        *bindings,
        *(symbols_of(example) if binds and isinstance(example, SymbolicTypes) else []),
    }


def _output(graph: Graph, is_body: bool) -> Iterator[str]:
    if (last := next(iter(reversed(graph.nodes)), None)) is None or last.op != "output":
        yield "the last node is no output"
    elif is_body and isinstance(last.args[0], Node):
        return
    elif not isinstance(last.args[0], tuple):
        yield "the output is no tuple"
    else:
        allowed = (Node, *NUMBERS, type(None))
        yield from (
            f"the output has {value!r} in it"
            for value in last.args[0]
            if not isinstance(value, allowed)
        )
