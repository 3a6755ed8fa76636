"""`nested_compile_region`: a function compiled on its own; equal bodies become one module, called
several times."""

from typing import Any

import torch
from stator_bytecode import operation
from stator_variables import (
    Args,
    BodyTrace,
    FunctionTable,
    GraphValue,
    Kwargs,
    Permits,
    Space,
    from_traced,
    record_wrapping,
)
from torch._guards import TracingContext
from torch._higher_order_ops.invoke_subgraph import invoke_subgraph, invoke_subgraph_placeholder

from stator_subgraphs._captured_graph import Body
from stator_subgraphs._operators._cond import refuse_overlap
from stator_subgraphs._operators._reuse import RegionCall, ReusableRegion, is_same

handlers = FunctionTable("higher-order operator")


@handlers.handles(invoke_subgraph_placeholder)
@operation
def region(t: Space, args: Args, kwargs: Kwargs) -> Any:
    """Record a call of a region, with its body as a module, or the body of an earlier equal call.

    Eagerly it is a call, so effects are kept; writes are allowed where no gradient depends on them.
    """
    call, known = (
        _call_of(t, args, kwargs),
        t.shared.setdefault(ReusableRegion, []),
    )
    for before in known if call is not None else ():
        operands = before.operands(call) if before.serves(call) else None
        if operands is not None:
            return _again(t, before, operands)

    permits = Permits(effects=True, writes=not t.touched, aliases=True)
    distinct = len(t.heap.assumed_distinct)
    with BodyTrace(t, "subgraph", permits) as body:
        result = yield from body.run(args[0], args[1:], kwargs)
        graph: Any = body.wrapping(result)
        _refuse_as_torch(t, graph)

    _share(t.shared.setdefault(nested_region, []), graph)
    found = record_wrapping(t, nested_region, graph, "subgraph", result, _named)
    call = _call_of(t, args, kwargs)  # sizes are better known now
    if call is not None and len(known) < MANY and len(t.heap.assumed_distinct) == distinct:
        _remember(
            t,
            known,
            ReusableRegion.of(call, graph, result, [vt for vt, _ in body.touched.values()]),
        )
    return found


def _call_of(t: Space, args: Args, kwargs: Kwargs) -> RegionCall | None:
    return None if t.heap.changed else RegionCall.of(t, args[0], args[1:], kwargs)


def _refuse_as_torch(t: Space, graph: Any) -> None:
    """Reject what torch's operator rejects, in its words."""
    if graph.aliased or graph.overlapping:
        raise t.unsupported(
            "alias-in-body",
            "Encountered aliasing during higher order op tracing: "
            "a result that shares memory with an input or another result",
        )
    inputs = [traced for traced in (*graph.arguments, *graph.lifted) if traced is not None]
    refuse_overlap(t, [graph], inputs)
    if graph.written and torch.is_grad_enabled() and any(map(_has_history, inputs)):
        raise t.unsupported(
            "write-in-body",
            "The invoke_subgraph HigherOrderOperator does not currently support training "
            "with in-place input or buffer mutations",
        )


def _has_history(traced: GraphValue) -> bool:
    return isinstance(traced.example, torch.Tensor) and traced.example.requires_grad


MANY = 8
"""The number of earlier regions that a call is compared with."""


def _remember(t: Space, known: list[Any], region: ReusableRegion | None) -> None:
    if region is not None:
        known.append(region)
        t.journal.record(lambda: known.remove(region))


def _again(t: Space, region: ReusableRegion, operands: list[Any]) -> Any:
    held = t.graph.install("subgraph", region.body.module)
    inputs = tuple(getattr(vt, "traced", vt) for vt in operands)
    traced = t.graph.call(nested_region, _named(held, inputs), {}, example=region.example(t))
    outputs = [
        from_traced(t, t.graph.project(traced, index)) for index in range(len(region.body.outputs))
    ]
    return region.given(t, operands, outputs)


def nested_region(subgraph: torch.fx.GraphModule, name: str, *operands: object) -> Any:
    """`invoke_subgraph` for a compiler that looks. Run as it is, the operator would need one for
    its backward; there it is the plain call that it represents; so it is where the body reads a
    number, which its backward would be given."""
    if TracingContext.try_get() is None or subgraph.graph.find_nodes(
        op="call_method", target="item"
    ):
        return subgraph(*operands)
    return invoke_subgraph(subgraph, name, *operands)


@handlers.handles(nested_region, invoke_subgraph)
def region_again(t: Space, args: Args, kwargs: Kwargs) -> Any:
    """Record a region of a graph that is traced again; the name of the module is a new one."""
    return region(t, [args[0], *args[2:]], kwargs)


def _share(known: list[Body], body: Body) -> None:
    """Let the body be the module of an equal one."""
    if (equal := next((other for other in known if is_same(other, body)), None)) is None:
        known.append(body)
    else:
        body.module = equal.module


def _named(held: GraphValue, inputs: tuple[GraphValue, ...]) -> tuple[Any, ...]:
    """Add the name of the module, by which compilers identify calls of one body."""
    return (held, held.node.target, *inputs)
