"""Graphs that run uncompiled although the backend compiles: AOTAutograd refuses them, or would
change their meaning."""

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from traceback import walk_tb
from typing import Any

import torch
from torch import Tensor
from torch._functorch import _aot_autograd
from torch._subclasses.fake_tensor import (
    DataDependentOutputException,
    DynamicOutputShapeException,
    UnsupportedOperatorException,
)
from torch.fx import GraphModule, Node
from torch.utils._python_dispatch import is_traceable_wrapper_subclass
from torch.utils._pytree import tree_flatten

from ._alias import has_storage, is_leaf, was_written
from ._backend import BackendSpec
from ._contracts._shared_memory import returns_memory_as_several_kinds
from ._graph_facts import (
    all_nodes,
    example_of,
    memory_of,
    memory_written,
    placeholders,
    tensors_returned,
    written_inputs,
)
from .errors import BackendError


def reason_to_run_uncompiled(gm: GraphModule, spec: BackendSpec) -> str:
    """Return why a compiler would not keep the meaning of this graph, or does not take it by its
    spec; empty if it does both."""
    if not spec.symbolic_shapes and any(isinstance(each, torch.SymInt) for each in _examples(gm)):
        return f"symbolic sizes, which the backend {spec.name!r} does not take"
    if not spec.training and any(value.requires_grad for value in tensors_returned(gm)):
        return f"gradients, which the backend {spec.name!r} does not have"
    return next((reason for reason, holds in _REASONS.items() if holds(gm)), "")


def _examples(gm: GraphModule) -> Iterator[Any]:
    return map(example_of, gm.graph.nodes)


def refused_by_autograd(failure: BackendError) -> str:
    """Return what AOTAutograd raised for a graph that it does not take; empty for any other
    failure.

    Examples are inputs that share memory without being views of each other for autograd, a write to
    what backward needs, or a backward that no fake tensor can pass. The error may come from a
    function of torch that AOTAutograd calls, as long as that compiles nothing.
    """
    error = failure.__cause__
    traceback = None if error is None else error.__traceback__
    files = [frame.f_code.co_filename for frame, _ in walk_tb(traceback)]
    inside = [i for i, file in enumerate(files) if file.startswith(_AOT_AUTOGRAD)]
    if not inside:
        return ""

    called = files[inside[-1] :]
    is_its_own = all(file.startswith(_TORCH) and not file.startswith(_COMPILERS) for file in called)
    if isinstance(error, _UNTRACEABLE) or is_its_own:
        return f"{type(error).__name__}: {error}"
    return ""


_UNTRACEABLE = (
    UnsupportedOperatorException,
    DynamicOutputShapeException,
    DataDependentOutputException,
)
_AOT_AUTOGRAD, _TORCH = (
    str(Path(str(module.__file__)).parent) + os.sep for module in (_aot_autograd, torch)
)
_COMPILERS = tuple(
    str(Path(_TORCH, *parts)) + os.sep for parts in (("_inductor",), ("_dynamo", "backends"))
)


def _differentiates_wrappers(gm: GraphModule) -> bool:
    """Return True if gradients arrive for wrapper tensors, returned or written to.

    AOTAutograd guesses the class of such a gradient, and raises in backward if one is missing or of
    another class.
    """
    inputs = [example_of(node) for node in placeholders(gm)]
    trained = [value for value in tensors_returned(gm) if value.requires_grad]
    trained += [
        value
        for value in inputs
        if isinstance(value, Tensor) and value.requires_grad and was_written(value)
    ]
    return any(map(is_traceable_wrapper_subclass, trained))


def _writes_to_tensor_with_gradients(gm: GraphModule) -> bool:
    """Return True for writes such as `w.data.clamp_(0, 1)`, or `y.mul_(x)` of what precedes a graph
    break.

    AOTAutograd copies the outcome to the input. If it saved the input for backward, it refuses that
    copy; if it saved a copy of the input, backward misses what is written past autograd later.
    Neither concerns a leaf that backward does not need, such as the weight of a moving average.
    """
    gives_gradients = any(value.requires_grad for value in tensors_returned(gm))
    return any(
        value.requires_grad
        and (not is_leaf(value) or (gives_gradients and _is_differentiated(gm, value)))
        for _, value, _ in written_inputs(gm)
    )


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


def _writes_to_unfolded_memory(gm: GraphModule) -> bool:
    """Return True for a write to `x.unfold(0, 2, 3)`: functionalized, it sets elements of `x`
    between windows to 0."""
    unfolded = [example_of(node) for node in all_nodes(gm) if node.target in _UNFOLD]
    memory = {memory_of(value) for value in unfolded if has_storage(value)}
    return not memory.isdisjoint(memory_written(gm))


_UNFOLD = ("unfold", Tensor.unfold)


def _has_sparse_tensors(gm: GraphModule) -> bool:
    """Return True if a value is sparse: AOTAutograd takes some such graphs, but their kernels are
    never compiled."""
    for node in all_nodes(gm):
        value = example_of(node)
        parts: Any = value if isinstance(value, tuple | list) else (value,)
        if any(isinstance(part, Tensor) and part.layout not in _DENSE for part in parts):
            return True
    return False


_DENSE = (torch.strided, torch.jagged)


def _copies_input_written_in_part(gm: GraphModule) -> bool:
    """Return True for `x[1:3].mul_(2); y = x.clone()`: Inductor takes `x` itself for `y`, also
    where `x` is written to again."""
    inputs = [example_of(node) for node in placeholders(gm)]
    memory = {memory_of(value) for value in inputs if has_storage(value)}
    changed: set[int] = set()
    for node in all_nodes(gm):
        given = node.args[0] if node.args else None
        first: Any = example_of(given)
        # operators over lists write to each item as a whole
        targets = map(example_of, given) if isinstance(given, list | tuple) else (first,)
        written = memory.intersection(node.meta.get("writes", ()))
        is_view = any(all(each is not value for value in inputs) for each in targets)
        if is_view or _name_of(node).startswith(_WRITES_IN_PART):
            changed |= written
        is_copy = _name_of(node) in _COPIES and has_storage(first)
        if is_copy and memory_of(first) in changed and _has_own_memory(node, first):
            return True
    return False


def _has_own_memory(node: Node, first: Tensor) -> bool:
    value = example_of(node)
    return has_storage(value) and memory_of(value) != memory_of(first)


def _name_of(node: Node) -> str:
    return str(getattr(node.target, "__name__", node.target))


_WRITES_IN_PART = ("setitem", "index_", "scatter_", "put_", "select_", "slice_")
_COPIES = ("clone", "contiguous", "to", "reshape", "flatten", "type", "float", "copy", "deepcopy")


_REASONS: dict[str, Callable[[GraphModule], bool]] = {
    "gradients of a tensor with others in it": _differentiates_wrappers,
    "a write to a tensor that has gradients": _writes_to_tensor_with_gradients,
    "a write to windows of memory": _writes_to_unfolded_memory,
    "sparse tensors": _has_sparse_tensors,
    "a copy of an input that is written to in part": _copies_input_written_in_part,
    "results that are one memory seen as numbers of several kinds": returns_memory_as_several_kinds,
}
