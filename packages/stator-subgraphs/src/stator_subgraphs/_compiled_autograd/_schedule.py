"""The order in which the engine would run the nodes of a backward.

Compiled autograd visits them in an order of its own, a stack. Hooks and sums of gradients have to
happen in the engine's order: the node made last first, and the accumulation of a gradient at once.
"""

import sys
from collections import Counter
from collections.abc import Sequence
from typing import Any, TypeAlias

import attrs
import torch
from torch.autograd.graph import _engine_run_backward, get_gradient_edge

_native: Any = torch._C

AutogradNode: TypeAlias = Any
"""A node of autograd. torch has an abstract class for it, which most nodes are no instances of."""


@attrs.frozen
class Visit:
    """A visit of a node, its position in the engine's order, and True if a node follows that is
    needed for a gradient that was requested."""

    name: str
    rank: int
    leads_on: bool = True


def engine_order(caller: Any) -> list[Visit]:
    """Return the visits of the nodes, in their order.

    `caller` is the frame that the engine was entered from, or one that was called by that; with
    another one than torch's the result is empty, and the order of the visits has to do.
    """
    if caller.f_code is not _engine_run_backward.__code__:
        caller = caller.f_back
    if caller.f_code is not _engine_run_backward.__code__:
        return []

    roots = [_function_of(root) for root in caller.f_locals["t_outputs"]]
    wanted = [_function_of(value) for value in caller.f_locals["args"][3]]
    with torch.autograd.set_multithreading_enabled(False):  # what the next call insists on
        order = _native._current_graph_task_execution_order()
    executed = _leading_to(wanted, order) if wanted else order
    ranks = {function: rank for rank, function in enumerate(executed, 1)}

    visits = [Visit("torch::autograd::GraphRoot", 0)]
    for each in _visits(roots, ranks):
        leads_on = any(following in ranks for following, _ in each.next_functions)
        visits.append(Visit(each.name(), ranks[each], leads_on))
    return visits


def _function_of(value: Any) -> AutogradNode:
    return get_gradient_edge(value).node if isinstance(value, torch.Tensor) else value[0]


def _leading_to(
    wanted: Sequence[AutogradNode], order: Sequence[AutogradNode]
) -> list[AutogradNode]:
    found = set(wanted)
    for function in reversed(order):
        if any(following in found for following, _ in function.next_functions):
            found.add(function)
    return [function for function in order if function in found]


def _visits(roots: Sequence[AutogradNode], executed: dict[AutogradNode, int]) -> list[AutogradNode]:
    """Return the nodes in the order of the stack: a node follows the last one that leads to it."""
    edges = {function: [each for each, _ in function.next_functions] for function in executed}
    missing = Counter(roots)
    for followers in edges.values():
        missing.update(followers)

    visited: list[AutogradNode] = []
    stack: list[AutogradNode] = []
    followers = list(roots)
    while followers is not None:
        for function in followers:
            missing[function] -= 1
            if function in edges and not missing[function]:
                stack.append(function)
        if not stack:
            break
        visited.append(stack.pop())
        followers = edges[visited[-1]]

    return visited


def calling_frame() -> Any:
    """Return the frame that called the method of the capture that calls this function."""
    return sys._getframe(2)
