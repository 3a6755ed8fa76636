"""`nested_compile_region`: a function compiled on its own; equal bodies become one module, called several times."""

from __future__ import annotations

from typing import Any

import torch
from stator_bytecode import HandlerTable, operation
from stator_variables import BodyTrace, Permits, Traced, Tracing, record_wrapping
from torch._guards import TracingContext
from torch._higher_order_ops.invoke_subgraph import invoke_subgraph, invoke_subgraph_placeholder

from stator_subgraphs._captured import Body
from stator_subgraphs._equal import is_same

handlers: HandlerTable[Any, Any] = HandlerTable("higher-order operator")


@handlers.handles(invoke_subgraph_placeholder)
@operation
def region(t: Tracing, args: list[Any], kwargs: dict[str, Any]) -> Any:
    """Plainly it is a call, so effects are kept; writes are where no gradient has to know of them."""
    permits = Permits(effects=True, writes=not torch.is_grad_enabled())
    with BodyTrace(t, "subgraph", permits) as body:
        result = yield from body.run(args[0], args[1:], kwargs)
        graph: Any = body.wrapping(result)
    _share(t.shared.setdefault(nested_region, []), graph)
    return record_wrapping(t, nested_region, graph, "subgraph", result, _named)


def nested_region(subgraph: torch.fx.GraphModule, name: str, *operands: Any) -> Any:
    """`invoke_subgraph` for a compiler that looks. Run as it is, the operator would need one for its backward; there it
    is the plain call that it stands for."""
    if TracingContext.try_get() is None:
        return subgraph(*operands)
    return invoke_subgraph(subgraph, name, *operands)


def _share(known: list[Body], body: Body) -> None:
    """Let the body be the module of an equal one."""
    equal = next((other for other in known if is_same(other, body)), None)
    if equal is None:
        known.append(body)
    else:
        body.module = equal.module


def _named(held: Traced, inputs: tuple[Traced, ...]) -> tuple[Any, ...]:
    """The name of the module tells compilers which calls are of one body."""
    return (held, held.node.target, *inputs)
