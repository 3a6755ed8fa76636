"""`backward` inside a region: an operator of the graph, and the `.grad` that leaves have after it.

    loss.backward()     g = gradients([loss], None, [w, b], [None, b_grad], False, False)
                        w.grad = g[0]       # the entry, as any other write to an object

The history of the fake tensors shows which leaves a backward reaches. Where something observes the
backward itself, such as a hook, or where the history begins outside of the region, the call runs
natively.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import torch
from stator_bytecode import Result
from stator_guards import Custom
from torch import Tensor
from torch._prims_common import is_non_overlapping_and_dense_or_false

from stator_variables._objects._list import ListTracker
from stator_variables._objects._tuple import SequenceTracker
from stator_variables._space import Space
from stator_variables._tensors import _torch_calls
from stator_variables._tracker import MISSING, VariableTracker, is_a
from stator_variables._trackers import NONE, ConstantTracker, TensorTracker, is_none

_PLAIN = (Tensor, torch.nn.Parameter)
_native: Any = torch._C._dynamo.compiled_autograd


# -- the operator ----------------------------------------------------------------------------------
def gradients(
    roots: Sequence[Tensor],
    seeds: Sequence[Tensor | None] | None,
    leaves: Sequence[Tensor],
    present: Sequence[Tensor | None],
    retain_graph: bool,
    create_graph: bool,
) -> tuple[Tensor | None, ...]:
    """Return what becomes the `.grad` of each leaf, None where it stays the object it is.

    `present` are the gradients that the leaves have; new ones are added to them.
    """
    found = torch.autograd.grad(
        roots, leaves, seeds, retain_graph, create_graph, allow_unused=True
    )
    references = Counter(map(id, (*found, *(seeds or ()))))
    made: list[Tensor | None] = []
    with torch.set_grad_enabled(create_graph):
        for leaf, old, new in zip(leaves, present, found, strict=True):
            references[id(new)] -= 1
            made.append(_accumulated(leaf, old, new, references[id(new)] > 0))
    return tuple(made)


def _accumulated(
    leaf: Tensor, old: Tensor | None, new: Tensor | None, is_shared: bool
) -> Tensor | None:
    """Do what the engine does for one leaf (AccumulateGrad in
    torch/csrc/autograd/functions/accumulate_grad.h)."""
    if new is None:
        return None
    if new.layout is not torch.strided:
        raise NotImplementedError("a gradient that is sparse")

    if old is not None:
        if torch.is_grad_enabled():
            return old + new
        old.add_(new)
        return None
    if not (is_shared or torch.is_grad_enabled()) and _has_layout_of(new, leaf):
        return new
    if is_non_overlapping_and_dense_or_false(leaf):
        return new.new_empty_strided(leaf.size(), leaf.stride(), dtype=leaf.dtype).copy_(new)
    return new.clone(memory_format=torch.contiguous_format)


def _has_layout_of(gradient: Tensor, leaf: Tensor) -> bool:
    """Return True if a gradient may become `.grad` as it is (torch/csrc/autograd/utils/
    grad_layout_contract.h)."""
    if leaf.is_contiguous() or not is_non_overlapping_and_dense_or_false(leaf):
        return gradient.is_contiguous()
    dimensions = zip(leaf.size(), leaf.stride(), gradient.stride(), strict=True)
    return all(size == 1 or ours == theirs for size, ours, theirs in dimensions)


# -- the call --------------------------------------------------------------------------------------
def capture(t: Space, given: Mapping[str, Any]) -> Result:
    """Record a call of `torch.autograd.backward`, or return MISSING where it has to run
    natively."""
    if not _is_unobserved(t) or is_given(given, "grad_variables"):
        return MISSING
    creates = _flag(given, "create_graph", False)
    retains = _flag(given, "retain_graph", creates)
    roots = _items(given["tensors"])
    seeds = _items(given.get("grad_tensors", NONE))
    if MISSING in (creates, retains) or not all(map(_is_differentiable, roots)):
        return MISSING
    if not all(is_none(seed) or is_a(seed, TensorTracker) for seed in seeds):
        return MISSING

    leaves = _leaves(t, roots)
    if leaves is not None and is_given(given, "inputs"):
        leaves = _restricted(leaves, _items(given["inputs"]))
    if not leaves:
        return MISSING
    present = [_gradient(t, leaf) for leaf in leaves]
    if MISSING in present:
        return MISSING
    operands = [
        ListTracker(roots),
        ListTracker(seeds) if seeds else NONE,
        ListTracker(leaves),
        ListTracker(present),
    ]
    made = _torch_calls.record(
        t, gradients, [*operands, ConstantTracker(retains), ConstantTracker(creates)]
    )
    for leaf, gradient in zip(leaves, made.items, strict=True):
        if not is_none(gradient):
            t.write(leaf, grad=gradient)
    return NONE


def is_given(given: Mapping[str, Any], name: str) -> bool:
    return name in given and not is_none(given[name])


def _flag(given: Mapping[str, Any], name: str, default: object) -> Any:
    return given[name].constant() if is_given(given, name) else default


def _items(vt: VariableTracker) -> list[Any]:
    if is_none(vt):
        return []
    return list(vt.items) if is_a(vt, SequenceTracker) else [vt]


def _is_unobserved(t: Space) -> bool:
    """Return True if nothing but the gradients shows how a backward runs."""
    if not t.policy.runs_in_order or t.hooks or t.touched or t.levels or t.overrides.modes:
        return False
    if torch.is_inference_mode_enabled() or torch.is_anomaly_enabled():
        return False
    before = _native.set_autograd_compiler(None, False)
    _native.set_autograd_compiler(*before)
    return before[0] is None


def _is_differentiable(vt: VariableTracker) -> bool:
    return is_a(vt, TensorTracker) and vt.cls in _PLAIN and vt.traced.example.requires_grad


# -- leaves ----------------------------------------------------------------------------------------
def _leaves(t: Space, roots: Sequence[Any]) -> list[Any] | None:
    """Return the leaves that a backward reaches; None if one is no ordinary tensor from outside,
    to which nobody has attached a hook."""
    known = {id(vt.before.example): vt for vt in t.heap.values() if type(vt) is TensorTracker}
    found = [known.get(id(leaf)) for leaf in _reached(root.before.example for root in roots)]
    if not all(vt is not None and _is_ordinary(vt) for vt in found):
        return None
    for vt in found:
        t.guard(vt.source, UNHOOKED)
    return found


def _reached(roots: Iterable[Tensor]) -> list[Tensor]:
    """Return the leaves in the history of fake tensors."""
    leaves: dict[int, Tensor] = {}
    pending: list[Any] = []
    for root in roots:
        if root.grad_fn is None:
            leaves[id(root)] = root
        else:
            pending.append(root.grad_fn)
    seen = set(pending)
    while pending:
        node = pending.pop()
        if (leaf := getattr(node, "variable", None)) is not None:
            leaves[id(leaf)] = leaf
        following = {each for each, _ in node.next_functions if each is not None} - seen
        seen |= following
        pending += following
    return [*leaves.values()]


def _is_ordinary(vt: Any) -> bool:
    is_from_outside = vt.source is not None and not vt.is_new and vt.data is MISSING
    return is_from_outside and vt.cls in _PLAIN and is_unhooked(vt.real)


def is_unhooked(tensor: Tensor) -> bool:
    """Return True for a leaf of autograd without hooks."""
    hooks = tensor._backward_hooks or tensor._post_accumulate_grad_hooks  # type: ignore[attr-defined]
    return tensor.is_leaf and not hooks


UNHOOKED = Custom(
    "{value}.is_leaf and not ({value}._backward_hooks or {value}._post_accumulate_grad_hooks)",
    is_unhooked,
    "a leaf without hooks",
)


def _restricted(leaves: Sequence[Any], inputs: Sequence[Any]) -> list[Any] | None:
    """Return the leaves that `inputs` has; None if an input is no leaf from outside."""
    if not inputs or not all(is_a(vt, TensorTracker) and vt.source is not None for vt in inputs):
        return None
    return [leaf for leaf in leaves if any(vt is leaf for vt in inputs)]


def _gradient(t: Space, leaf: Any) -> Any:
    """Return the present `.grad` of a leaf; MISSING if a gradient is not simply added to it."""
    gradient: Any = t.read_tensor(leaf, "grad")
    if is_none(gradient):
        return NONE
    is_simple = is_a(gradient, TensorTracker) and gradient.cls is Tensor
    if not is_simple or gradient.example.layout is not torch.strided:
        return MISSING
    return gradient
