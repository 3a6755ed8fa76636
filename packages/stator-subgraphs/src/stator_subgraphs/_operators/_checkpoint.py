"""`torch.utils.checkpoint.checkpoint`: the forward pass is one body, which a compiler may run once more in backward."""

from __future__ import annotations

from typing import Any

import torch
from stator_bytecode import HandlerTable, operation
from stator_variables import MISSING, BodyTrace, Permits, Tracing, record_wrapping
from torch.utils import checkpoint as checkpointing

from stator_subgraphs._operators._recompute import same_random_numbers
from stator_subgraphs._random import may_draw

handlers: HandlerTable[Any, Any] = HandlerTable("higher-order operator")

UNDERSTOOD = {
    "use_reentrant": (False,),
    "preserve_rng_state": (True, False),
    "determinism_check": ("default", "none"),
    "debug": (False,),
    "early_stop": (True, False),
}


@handlers.handles(checkpointing.checkpoint)
@operation
def checkpoint(t: Tracing, args: list[Any], kwargs: dict[str, Any]) -> Any:
    """Plain Python runs the body once more in backward, effects included; a graph cannot, so they are only kept where
    there is no backward."""
    options = {name: kwargs.pop(name).constant() for name in UNDERSTOOD.keys() & kwargs.keys()}
    if not args or options.get("use_reentrant", MISSING) is MISSING or "context_fn" in kwargs:
        raise t.unsupported("higher-order-operator", "checkpoint with these options")
    if any(value not in UNDERSTOOD[name] for name, value in options.items()):
        raise t.unsupported("higher-order-operator", f"checkpoint with {options}")
    once = not torch.is_grad_enabled()
    with BodyTrace(t, "wrap_body", Permits(effects=once, writes=once, aliases=True)) as body:
        result = yield from body.run(args[0], args[1:], kwargs)
        graph = body.wrapping(result)
    if options.get("preserve_rng_state", True) and may_draw(graph.module):
        graph.module.meta["_checkpoint_context_fn"] = same_random_numbers
    return record_wrapping(t, torch.ops.higher_order.tag_activation_checkpoint, graph, "wrap_body", result, **options)
