"""Checkpointed calls, as the nodes of the graph make them."""

import copy
from typing import Any

import torch
from torch._guards import TracingContext
from torch.fx import GraphModule
from torch.utils import checkpoint as checkpointing
from torch.utils._python_dispatch import _get_current_dispatch_mode

from stator_subgraphs._captured_graph import CapturedModule

real_checkpoint: Any = checkpointing.checkpoint  # torch leaves it without types
tag_activation_checkpoint = torch.ops.higher_order.tag_activation_checkpoint


def checkpointed(body: GraphModule, *inputs: object, **options: object) -> object:
    """`torch.utils.checkpoint.checkpoint` over a body."""
    if TracingContext.try_get() is not None:
        return tag_activation_checkpoint(_letting_operators_pass(body), *inputs, **options)
    policy = body.meta.get("_checkpoint_context_fn")
    return real_checkpoint(
        body, *inputs, **options, **({} if policy is None else {"context_fn": policy})
    )


def _letting_operators_pass(body: GraphModule) -> GraphModule:
    """Return the body for torch's operator, which runs it in a dispatch mode to mark operators.

    That mode supports few operators with bodies and rejects the others (`cond`, `scan`, ...). A
    call at the start of the body makes it accept them all.
    """
    copied = CapturedModule(body, copy.deepcopy(body.graph))
    copied.meta.update(body.meta)
    first = next(node for node in copied.graph.nodes if node.op != "placeholder")
    with copied.graph.inserting_before(first):
        copied.graph.call_function(_let_operators_pass)
    return copied


def _let_operators_pass() -> None:
    mode: Any = _get_current_dispatch_mode()
    mode.supports_higher_order_operators = True


def checkpointed_reentrantly(
    body: GraphModule, count: int, *inputs: object, **options: object
) -> Any:
    """The same over a body; `count` of the inputs are arguments, the others what the function uses
    besides."""
    if TracingContext.try_get() is not None:
        return tag_activation_checkpoint(
            _letting_operators_pass(body), *inputs, use_reentrant=False
        )
    if any(isinstance(value, torch._subclasses.FakeTensor) for value in inputs):
        options["preserve_rng_state"] = False  # a fake has no such state
    return real_checkpoint(lambda *taken: body(*taken, *inputs[count:]), *inputs[:count], **options)


CHECKPOINTS = {checkpointed: 0, checkpointed_reentrantly: 1}
"""The targets of checkpoints; with how many arguments between the body and its inputs."""
