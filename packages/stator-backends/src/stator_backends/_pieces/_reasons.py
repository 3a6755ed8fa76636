"""Operators whose meaning a compiler would change, each with the nodes that run natively for it."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import torch
from torch import Tensor
from torch.fx import GraphModule, Node
from torch.utils._python_dispatch import is_traceable_wrapper_subclass
from torch.utils._pytree import tree_flatten

from stator_backends._alias import has_storage, is_leaf, was_written
from stator_backends._backend import BackendSpec
from stator_backends._contracts._shared_memory import memory_seen_as_several_kinds
from stator_backends._graph_facts import (
    all_nodes,
    example_of,
    memory_of,
    memory_written,
    placeholders,
    tensors_returned,
    written_inputs,
)
from stator_backends._pieces._division import NATIVE, Division, calls_of, computes, views_for
from stator_backends._pieces._recurrent import recurrent_with_dropout

Nodes = Iterable[Node]


def reason_for_whole(gm: GraphModule, spec: BackendSpec) -> str:
    """Return what the backend does not take by its spec; empty if it takes the graph."""
    examples = map(example_of, gm.graph.nodes)
    if not spec.symbolic_shapes and any(isinstance(each, torch.SymInt) for each in examples):
        return f"symbolic sizes, which the backend {spec.name!r} does not take"
    if not spec.training and any(value.requires_grad for value in tensors_returned(gm)):
        return f"gradients, which the backend {spec.name!r} does not have"
    return ""


def divide(gm: GraphModule, spec: BackendSpec, division: Division) -> bool:
    """Divide a graph, or a piece of one, at nodes of which a compiler does not keep the meaning.

    Returns True if there are any.
    """
    added = _divide_at_writes(gm, division)
    for reason, find in _REASONS.items():
        nodes = [node for node in find(gm) if node.op.startswith("call_")]
        added |= division.add(nodes, reason)
    if spec.name in _DROPS_COPIES:
        added |= division.add(_copies_dropped(gm), COPY)
    return added


# -- gradients of a tensor with others in it -------------------------------------------------------
def _wrappers_with_gradients(gm: GraphModule) -> Nodes:
    """Return what computes with wrapper tensors, if gradients arrive for some that are returned or
    written to.

    AOTAutograd guesses the class of such a gradient, and raises in backward if one is missing or of
    another class.
    """
    inputs = [example_of(node) for node in placeholders(gm)]
    results = [node for node in gm.graph.output_node().all_input_nodes if NATIVE not in node.meta]
    trained = [value for value in map(example_of, results) if _has_gradients(value)]
    trained += [
        value
        for value in inputs
        if isinstance(value, Tensor) and value.requires_grad and was_written(value)
    ]
    if not any(map(is_traceable_wrapper_subclass, trained)):
        return ()
    return [node for node in calls_of(gm) if _is_about(node, is_traceable_wrapper_subclass)]


def _has_gradients(value: object) -> bool:
    return isinstance(value, Tensor) and value.requires_grad


def _is_about(node: Node, holds: Callable[[Any], bool]) -> bool:
    """Return True if an operand or a result is a tensor of some kind."""
    for each in (node, *node.all_input_nodes):
        example = example_of(each)
        parts = example if isinstance(example, tuple | list) else (example,)
        if any(isinstance(part, Tensor) and holds(part) for part in parts):
            return True
    return False


# -- writes ----------------------------------------------------------------------------------------
WRITES_WITH_GRADIENTS = "a write to a tensor that has gradients"


def _divide_at_writes(gm: GraphModule, division: Division) -> bool:
    """Divide at writes such as `w.data.clamp_(0, 1)`, or `y.mul_(x)` of what precedes a break.

    AOTAutograd copies the outcome to the input. If it saved the input for backward, it refuses that
    copy; if it saved a copy of the input, backward misses what is written past autograd later.
    Neither concerns a leaf that backward does not need, such as the weight of a moving average. In
    a piece of its own a write whose backward needs no value of the input, such as `y[mask] = 0`, is
    compiled.
    """
    gives_gradients = any(value.requires_grad for value in tensors_returned(gm))
    written = [value for _, value, _ in written_inputs(gm) if value.requires_grad]
    inner = {memory_of(value) for value in written if not is_leaf(value)}
    leaves = {
        memory_of(value)
        for value in written
        if is_leaf(value) and gives_gradients and _is_differentiated(gm, value)
    }

    nodes, views = _writes_to(gm, inner | leaves)
    linear = [node for node in nodes if _is_linear_write(node, inner)]
    others = [node for node in nodes if node not in linear]
    if not others and all(node in linear or not computes(node) for node in calls_of(gm)):
        return False
    is_isolated = division.isolate(linear, views)
    natives = others + views_for(Division(dict.fromkeys(others, "")), gm, inner | leaves)
    return division.add(natives, WRITES_WITH_GRADIENTS) or is_isolated


def _is_linear_write(node: Node, memory: set[int]) -> bool:
    """Return True for a write by autograd whose gradient needs nothing of what is overwritten."""
    name = _name_of(node)
    return name in _LINEAR_WRITES and memory.issuperset(node.meta["writes"])


_LINEAR_WRITES = frozenset(
    "setitem add_ iadd sub_ isub copy_ fill_ zero_ masked_fill_ masked_scatter_ index_add_ "
    "index_copy_ index_fill_ index_put_ scatter_ scatter_add_".split()
)


def _writes_to(gm: GraphModule, memory: set[int]) -> tuple[list[Node], list[Node]]:
    """Return the nodes that write to these memories, and the views that only they use."""
    if not memory:
        return [], []
    nodes = [node for node in calls_of(gm) if not memory.isdisjoint(node.meta.get("writes", ()))]
    return nodes, views_for(Division(dict.fromkeys(nodes, "")), gm, memory)


def _is_differentiated(gm: GraphModule, value: Tensor) -> bool:
    """Return True if an operator on the memory of an input gives a result with a history."""
    memory = memory_of(value)
    for node in all_nodes(gm):
        operands = map(example_of, node.all_input_nodes)
        if any(has_storage(each) and memory_of(each) == memory for each in operands):
            results, _ = tree_flatten(example_of(node))
            if any(isinstance(each, Tensor) and not is_leaf(each) for each in results):
                return True
    return False


def _writes_to_windows(gm: GraphModule) -> Nodes:
    """Return a write to `x.unfold(0, 2, 3)`, and that view: functionalized, it sets elements of `x`
    between windows to 0."""
    unfolded = [node for node in all_nodes(gm) if node.target in _UNFOLD]
    examples = [example_of(node) for node in unfolded]
    memory = {memory_of(value) for value in examples if has_storage(value)}
    memory &= memory_written(gm)
    if not memory:
        return ()
    views = [node for node in unfolded if memory_of(example_of(node)) in memory]
    nodes, more = _writes_to(gm, memory)
    return [*views, *nodes, *more]


_UNFOLD = ("unfold", Tensor.unfold)


# -- random numbers --------------------------------------------------------------------------------
def _drawn_into_transposed(gm: GraphModule) -> Nodes:
    """Return writes such as `x.t().bernoulli_(0.5)`: functionalized, they draw the same numbers in
    the order of a contiguous tensor."""
    nodes = [node for node in calls_of(gm) if _name_of(node) == "bernoulli_"]
    return [node for node in nodes if not _is_in_order(example_of(node))]


def _drops_everything(gm: GraphModule) -> Nodes:
    """Return dropout of all elements: torch draws no numbers for it, decompositions do."""
    nodes = [node for node in calls_of(gm) if _name_of(node) in ("dropout", "dropout_")]
    return [node for node in nodes if 1 in (*node.args[1:2], node.kwargs.get("p"))]


def _is_in_order(value: Any) -> bool:
    """Return True if the strides of a tensor do not increase."""
    strides = list(value.stride())
    return strides == sorted(strides, reverse=True)


# -- kinds of memory -------------------------------------------------------------------------------
def _sparse(gm: GraphModule) -> Nodes:
    """Return what computes with sparse tensors: AOTAutograd takes some of that, but the kernels are
    never compiled."""
    return [node for node in calls_of(gm) if _is_about(node, _is_sparse)]


def _is_sparse(value: Tensor) -> bool:
    return value.layout not in _DENSE


_DENSE = (torch.strided, torch.jagged)


def _views_of_other_kinds(gm: GraphModule) -> Nodes:
    """Return the views of results that see their memory as numbers of another kind."""
    memory = memory_seen_as_several_kinds(gm)
    first: dict[int, Any] = {}
    found = []
    for node in gm.graph.nodes:
        value = example_of(node)
        if not has_storage(value) or memory_of(value) not in memory:
            continue
        kind = (value.dtype, value.is_conj(), value.is_neg())
        if first.setdefault(memory_of(value), kind) != kind and not computes(node):
            found.append(node)
    return found


# -- copies that Inductor drops --------------------------------------------------------------------
COPY = "a copy of an input that is written to in part"
_DROPS_COPIES = ("inductor",)


def _copies_dropped(gm: GraphModule) -> list[Node]:
    """Return the copies in graphs such as `x[1:3].mul_(2); y = x.clone()`.

    Inductor takes `x` itself for `y`, also where `x` is written to again, or where `y` is a result.
    It does so for copies with the sizes, strides and numbers of what is copied.
    """
    inputs = [example_of(node) for node in placeholders(gm)]
    memory = {memory_of(value) for value in inputs if has_storage(value)}
    changed: set[int] = set()
    found = []
    for node in calls_of(gm):
        given = node.args[0] if node.args else None
        first: Any = example_of(given)
        # operators over lists write to each item as a whole
        targets = map(example_of, given) if isinstance(given, list | tuple) else (first,)
        written = memory.intersection(node.meta.get("writes", ()))
        is_view = any(all(each is not value for value in inputs) for each in targets)
        if is_view or _name_of(node).startswith(_WRITES_IN_PART):
            changed |= written
        is_copy = _name_of(node) in _COPIES and has_storage(first)
        if is_copy and memory_of(first) in changed and _is_equal_copy(node, first):
            found.append(node)
    return found


def _is_equal_copy(node: Node, first: Tensor) -> bool:
    """Return True if the result has a memory of its own, and is laid out as `first` is."""
    value = example_of(node)
    if not has_storage(value) or memory_of(value) == memory_of(first):
        return False
    return _layout(value) == _layout(first)


def _layout(value: Tensor) -> tuple[object, ...]:
    """Return what Inductor compares. Sizes are compared as texts, which adds no guard."""
    return value.dtype, value.device, str(value.shape), str(value.stride())


def _name_of(node: Node) -> str:
    return str(getattr(node.target, "__name__", node.target))


_WRITES_IN_PART = ("setitem", "index_", "scatter_", "put_", "select_", "slice_")
_COPIES = ("clone", "contiguous", "to", "reshape", "flatten", "type", "float", "copy", "deepcopy")


_REASONS: dict[str, Callable[[GraphModule], Nodes]] = {
    "gradients of a tensor with others in it": _wrappers_with_gradients,
    "a write to windows of memory": _writes_to_windows,
    "sparse tensors": _sparse,
    "dropout between the layers of a recurrent operator": recurrent_with_dropout,
    "dropout of all elements": _drops_everything,
    "numbers that are drawn into a transposed tensor": _drawn_into_transposed,
    "results that are one memory seen as numbers of several kinds": _views_of_other_kinds,
}
