"""Division of a graph into runs of consecutive nodes, which are compiled, or run natively."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby
from operator import getitem
from typing import Any

import attrs
import torch
from torch import Tensor
from torch._ops import HigherOrderOperator
from torch.amp import autocast_mode
from torch.fx import GraphModule, Node
from torch.utils._python_dispatch import is_traceable_wrapper_subclass

from stator_backends._alias import has_storage
from stator_backends._graph_facts import example_of, memory_of

NATIVE, STARTS, APART, SETS_STATE, KEPT = "native", "starts", "apart", "sets_state", "kept"
LEVEL, DIFFERENTIATES, BESIDE = "level", "differentiates", "beside"
"""Keys of `Node.meta` that a front end sets.

- `native`: why the node runs as it is.
- `starts`: a piece begins with the node.
- `apart`: nothing that uses its result may be compiled together with it.
- `sets_state`: it changes a mode, which later nodes run under.
- `kept`: its result is needed where a later node raises.
- `level`: it runs under a level of forward-mode derivatives.
- `differentiates`: it is a backward pass, from the values in its first argument.
- `beside`: it is compiled together with what gives its first argument, or not at all.
"""

NUMBERS = (int, float, bool, torch.SymInt, torch.SymFloat, torch.SymBool)


@attrs.define(eq=False)
class Division:
    """The nodes that run natively, each with the reason, and those with which a new piece
    begins."""

    native: dict[Node, str] = attrs.field(factory=dict)
    starts: set[Node] = attrs.field(factory=set)

    @classmethod
    def by_front_end(cls, gm: GraphModule) -> Division:
        """Return the division that the metadata of the nodes requires."""
        made = cls()
        for node in calls_of(gm):
            if NATIVE in node.meta:
                made.native[node] = node.meta[NATIVE]
            if STARTS in node.meta:
                made.starts.add(node)
            if APART in node.meta and any(user.op != "output" for user in node.users):
                made.starts.add(node.next)
        return made

    def __bool__(self) -> bool:
        return bool(self.native or self.starts)

    def add(self, nodes: Iterable[Node], reason: str) -> bool:
        """Let these nodes run natively; return True if one of them did not before."""
        added = [node for node in nodes if node not in self.native]
        self.native.update(dict.fromkeys(added, reason))
        return bool(added)

    def isolate(self, nodes: Iterable[Node], with_views: Iterable[Node]) -> bool:
        """Let these nodes, and the views directly before them, be pieces of their own; return True
        if they were not."""
        views = {*with_views}
        before = len(self.starts)
        for node in nodes:
            first = node
            while first.prev in views:
                first = first.prev
            self.starts |= {first, node.next}
        return len(self.starts) > before


@attrs.frozen(eq=False)
class NodeRun:
    """Consecutive nodes that are compiled together; or, if `is_native`, none of them is."""

    nodes: tuple[Node, ...]
    is_native: bool


def calls_of(gm: GraphModule) -> list[Node]:
    """Return the nodes of a graph that do something."""
    return [node for node in gm.graph.nodes if node.op.startswith("call_")]


def runs_of(gm: GraphModule, division: Division, gradients: bool) -> list[NodeRun]:
    """Return all calls of a graph in runs, in program order.

    `gradients` is the grad mode at the beginning. What sets modes is compiled with a piece that
    leaves them as it finds them, and runs natively else.
    """
    order = _with_projections(calls_of(gm))
    native = {node for node in order if node in division.native or LEVEL in node.meta}
    starts = _starts(order, division.starts)
    while True:
        while _spread(order, native, starts):
            pass
        runs = _runs(order, native, starts)
        unbalanced = _unbalanced_setters(runs, gradients)
        if not unbalanced:
            return [_without_work(run) for run in runs]
        native |= unbalanced


def _unbalanced_setters(runs: Sequence[NodeRun], gradients: bool) -> set[Node]:
    """Return what sets modes in a compiled run that leaves them otherwise than it finds them."""
    found: set[Node] = set()
    for run in runs:
        before = gradients
        setters = [node for node in run.nodes if SETS_STATE in node.meta]
        for node in setters:
            if node.target is torch._C._set_grad_enabled:
                gradients = bool(node.args[0])
        if run.is_native:
            continue

        others = [node for node in setters if not _is_restored(node, run)]
        if others or gradients is not before:
            found.update(setters)
    return found


def _is_restored(node: Node, run: NodeRun) -> bool:
    """Return True for setters of the grad mode, and for autocast that the same run enters and
    leaves."""
    if node.target is torch._C._set_grad_enabled:
        return True
    if node.target is autocast_mode._enter_autocast:
        return bool(node.users) and all(user in run.nodes for user in node.users)
    return node.target is autocast_mode._exit_autocast and node.args[0] in run.nodes


def _with_projections(calls: Sequence[Node]) -> list[Node]:
    """Put the parts of a result, such as an item of a tuple, directly behind what gives it."""
    order: list[Node] = []
    for node in calls:
        if not is_projection(node):
            order.append(node)
            order += _projections(node)
    return order


def _projections(node: Node) -> Iterator[Node]:
    for user in node.users:
        if is_projection(user):
            yield user
            yield from _projections(user)


def is_projection(node: Node) -> bool:
    """Return True for an item of a value that is no tensor, of a call."""
    if node.target is not getitem:
        return False
    owner: Any = node.args[0]
    is_of_call = isinstance(owner, Node) and owner.op.startswith("call_")
    return is_of_call and isinstance(example_of(owner), tuple | list | dict)


def _starts(order: Sequence[Node], starts: set[Node]) -> set[Node]:
    """Return the first node of the order that is at or behind each start in the graph."""
    found: set[Node] = set()
    for start in starts:
        node = start
        while node.op != "output" and (not node.op.startswith("call_") or is_projection(node)):
            node = node.next
        found.add(node)
    return found.intersection(order)


def _runs(order: Sequence[Node], native: set[Node], starts: set[Node]) -> list[NodeRun]:
    numbers: dict[Node, tuple[int, bool]] = {}
    number = 0
    for node in order:
        number += node in starts
        numbers[node] = number, node in native
    groups = groupby(order, numbers.__getitem__)
    return [NodeRun(tuple(nodes), is_native) for (_, is_native), nodes in groups]


def _spread(order: Sequence[Node], native: set[Node], starts: set[Node]) -> bool:
    """Let both ends of a value that no compiled piece takes or gives run natively; return True if
    that changes something."""
    run_of = {node: run for run in _runs(order, native, starts) for node in run.nodes}
    before = len(native)
    for node in order:
        if BESIDE in node.meta and run_of.get(node.all_input_nodes[0]) is not run_of[node]:
            native.add(node)
        if is_crossing(example_of(node)):
            continue
        for user in node.users:
            if user.op == "output" or run_of[user] is run_of[node]:
                continue
            native |= {node, user}
    return len(native) > before


def is_crossing(example: object) -> bool:
    """Return True for the kinds of values that a compiled piece takes and gives."""
    if isinstance(example, Tensor):
        is_wrapped = torch._C._functorch.is_functorch_wrapped_tensor(example)
        # the sizes of jagged tensors are numbers that no other fake mode knows
        return not is_wrapped and not is_traceable_wrapper_subclass(example)
    return isinstance(example, NUMBERS)


def _without_work(run: NodeRun) -> NodeRun:
    """Return the run as a native one if it computes nothing: a view costs less than the call of a
    compiled piece."""
    if run.is_native or any(map(computes, run.nodes)):
        return run
    return NodeRun(run.nodes, is_native=True)


def computes(node: Node) -> bool:
    """Return True for an operator that computes or writes tensors: numbers and views are no
    work."""
    if "writes" in node.meta:
        return True
    results = _tensors(example_of(node))
    if is_projection(node) or not results:
        return False
    if isinstance(node.target, HigherOrderOperator):
        return True  # it may compute a value that it does not return

    operands = [each for given in node.all_input_nodes for each in _tensors(example_of(given))]
    memory = {memory_of(each) for each in operands if has_storage(each)}
    return not all(has_storage(each) and memory_of(each) in memory for each in results)


def _tensors(example: object) -> list[Tensor]:
    parts = example if isinstance(example, tuple | list) else [example]
    return [part for part in parts if isinstance(part, Tensor)]


def views_for(division: Division, gm: GraphModule, memory: set[int]) -> list[Node]:
    """Return the views of these memories that only native nodes use. What is detached is none: a
    piece that takes the tensor itself would write to it by autograd."""
    found: list[Node] = []
    native = {*division.native}
    for node in reversed(calls_of(gm)):
        example = example_of(node)
        is_of_memory = has_storage(example) and memory_of(example) in memory
        if not (is_of_memory and example._is_view()) or computes(node) or node in native:
            continue
        if node.users and native.issuperset(node.users):
            native.add(node)
            found.append(node)
    return found
