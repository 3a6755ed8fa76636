"""Observable effects of a graph: writes to inputs, random numbers, and operators of other
libraries.

The nodes that write are known from the trace (`meta["writes"]`: the storages of example values).
They decide what may be done about a graph that raises (`_recovery.py`): a graph without effects may
simply be run again by the program.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Set
from typing import TYPE_CHECKING

import attrs
import torch
from stator_backends import running_statistics
from stator_subgraphs import (
    CHECKS,
    bodies_of,
    calls_in,
    is_of_torch,
    may_raise,
    name_of,
    node_may_draw,
    storage_of,
)
from torch.fx import GraphModule, Node

if TYPE_CHECKING:
    from stator_subgraphs import CapturedGraph


_SHAPE_CHANGES = {*"as_strided_ squeeze_ swapaxes_ swapdims_ t_ transpose_ unsqueeze_".split()}


@attrs.frozen
class GraphEffects:
    """Changes that running a graph makes outside of it.

    `written` are the positions, among the tensor inputs, of those that share memory with what a
    node writes to.
    """

    written: tuple[int, ...]
    draws: bool  # random numbers, or whatever an operator of another library does
    # other processes took part, a tensor got another storage, or something was printed: nothing
    # takes that back
    is_final: bool
    # and the program may catch what an operator behind raises: autograd may refuse everything of
    # them by then, a new trace included; or it changes their shape, which a new trace starts with
    writes_to_views: bool
    has_checks: bool  # a node raises where an assumption of the trace does not hold
    is_caught: bool  # an operator behind the first effect may raise, and the program may catch it
    # an `except` of the program may catch what some operator raises that may refuse its values
    has_except: bool
    # the program may catch what an operator of another library raises, or anything behind a final
    # effect
    catches_foreign: bool

    @property
    def is_observable(self) -> bool:
        return bool(self.written) or self.draws or self.is_final

    def may_be_undone(self, runs_in_order: bool, forgives: bool) -> bool:
        """Return True if the program may run from the start of the graph after that has raised.

        That is so for graphs that a compiler may reorder, and for checks of what the trace relied
        on. With the option `fallback` (`forgives`) each graph of a compiler may turn out to be one
        that cannot run.
        """
        is_needed = self.has_checks or self.writes_to_views
        if not runs_in_order:
            is_needed = is_needed or self.is_caught or self.has_except or forgives
        return is_needed and not self.is_final and self.is_observable

    @classmethod
    def of(cls, captured: CapturedGraph) -> GraphEffects:
        module = captured.module
        placeholders = module.graph.find_nodes(op="placeholder")
        pairs = zip(placeholders, captured.inputs, strict=True)
        inputs = [node for node, item in pairs if item.kind == "tensor"]
        calls = list(_all_calls(module))

        written = {storage for node in calls for storage in _written(node)}
        is_final, is_caught = any(map(_is_final, calls)), _is_caught_after_effect(module, may_raise)
        positions = [i for i, node in enumerate(inputs) if _storage(node) in written]
        has_views = any(inputs[i].meta["example_value"]._is_view() for i in positions)
        changes_shapes = not _SHAPE_CHANGES.isdisjoint(map(name_of, calls))

        return cls(
            tuple(positions),
            writes_to_views=(has_views and _is_caught_after_effect(module, _may_be_refused))
            or (changes_shapes and is_caught),
            draws=any(map(node_may_draw, calls)),
            is_final=is_final,
            has_checks=any(map(is_check, calls)),
            is_caught=is_caught,
            has_except=any(map(_is_in_except, calls_in(module))),
            catches_foreign=(is_final and is_caught) or any(map(is_foreign_and_caught, calls)),
        )


def has_effect(node: Node, memory: Set[int] | None = None) -> bool:
    """Return True if running the node again, or not at all, could be observed.

    With `memory`, writes count that are to one of these storages.
    """
    calls = [node, *(inner for body in bodies_of(node) for inner in _all_calls(body))]
    return any(
        (_written(call) if memory is None else _written(call) & memory)
        or node_may_draw(call)
        or _is_final(call)
        or "frees_history" in call.meta
        for call in calls
    )


def is_check(node: Node) -> bool:
    """Return True if the node raises on purpose."""
    return name_of(node).startswith(CHECKS)


def _is_caught_after_effect(module: GraphModule, raises: Callable[[Node], bool]) -> bool:
    """Return True for an operator that raises in a `try` behind a write, or in a graph that draws
    anywhere: a compiler may draw first."""
    changed = any(map(node_may_draw, calls_in(module)))
    for node in calls_in(module):
        if changed and node.meta.get("catches_operators") and raises(node):
            return True
        changed = changed or has_effect(node)
    return False


def _may_be_refused(node: Node) -> bool:
    """Return True where autograd takes part, which refuses some views that were written to."""
    example = node.meta.get("example_value")
    return may_raise(node) or bool(getattr(example, "requires_grad", False))


def _is_in_except(node: Node) -> bool:
    """Return True if an `except` may catch what the operator raises for its values.

    Any operator may run out of memory: that is not worth a copy in each call.
    """
    return "has_except" in node.meta and may_raise(node)


def is_foreign_and_caught(node: Node) -> bool:
    """Return True where a compiler would have to keep an order that none keeps: of the operator and
    the writes before it, which the program sees when it handles the exception. The operator cannot
    run again to find out."""
    return bool(node.meta.get("caught")) and not is_of_torch(node.target)


def _all_calls(module: GraphModule) -> Iterator[Node]:
    """Yield the calls of a graph and of the bodies of its higher-order operators."""
    for node in calls_in(module):
        yield node
        for body in bodies_of(node):
            yield from _all_calls(body)


def _written(node: Node) -> set[int]:
    """Return the storages of example values that a node writes to."""
    seen: set[int] = set(node.meta.get("writes", ()))
    if is_silent_write(node):
        written = running_statistics(node) or node.all_input_nodes
        seen.update(filter(None, map(_storage, written)))
    return seen


def _storage(node: Node) -> int | None:
    value = node.meta.get("example_value")
    return storage_of(value) if isinstance(value, torch.Tensor) else None


def is_silent_write(node: Node) -> bool:
    """Return True for kernels that update running statistics without a new version, and for writes
    to `.data`."""
    name = name_of(node)
    if "batch_norm" in name or "instance_norm" in name:
        return node.args[5:6] != (
            False,
        )  # `training` or `use_input_stats` of the functions in `torch`
    return "data" in [argument for argument in node.args if type(argument) is str]


def _is_final(node: Node) -> bool:
    qualified = str(getattr(node.target, "_qualified_op_name", node.target))
    return qualified.startswith("_c10d_functional") or name_of(node) in _FINAL


_FINAL = ("call_torchbind", "print", "_print", "set_", "with_effects")
