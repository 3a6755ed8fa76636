"""Assertions are checked by the forward pass, as in the program, and by no other.

    if not (x > 0).all():    # `torch._assert_async` in the graph
        raise ValueError
    return x * w

AOTAutograd repeats in backward whatever may raise and follows from what it saves, here `x`: work
for nothing, and an error that the program does not have if `x` has changed by then.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import torch
from torch._functorch import config as functorch_config
from torch.fx import GraphModule

from stator_backends._graph_facts import all_nodes

_ASSERTIONS = (
    torch._assert_async,
    torch.ops.aten._assert_async.default,
    torch.ops.aten._assert_async.msg,
)


@contextmanager
def assertions_in_forward(gm: GraphModule) -> Iterator[None]:
    """Keep the assertions of a graph that is compiled inside out of its backward."""
    if all(node.target not in _ASSERTIONS for node in all_nodes(gm)):
        yield
        return

    settings: Any = functorch_config
    of_user = settings.joint_custom_pass

    def mark(joint: GraphModule, inputs: Sequence[Any]) -> GraphModule:
        """Mark assertions of the joint graph before it is parted."""
        found = joint if of_user is None else of_user(joint, inputs)
        for node in found.graph.nodes:
            if node.target in _ASSERTIONS and node.meta.get(_TAG) == "is_forward":
                node.meta[_TAG] = "must_be_in_forward"
        return found

    with settings.patch(joint_custom_pass=mark):
        yield


_TAG = "partitioner_tag"
