"""`backward` inside a region: an operator of the graph, and the `.grad` that leaves have after it.

    loss.backward()     g = gradients([loss], None, [w, b], [None, b_grad], False, False)
                        w.grad = g[0]       # the entry, as any other write to an object

The history of the fake tensors shows which leaves a backward reaches. Where something observes the
backward itself, such as a hook, or where the history begins outside of the region, the call runs
natively.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import torch
from stator_bytecode import Result
from stator_guards import CallSource, Custom, Equals, unhooked_words
from torch import Tensor
from torch._prims_common import is_non_overlapping_and_dense_or_false

from stator_variables._objects._list import ListTracker
from stator_variables._objects._tuple import SequenceTracker
from stator_variables._space import Space
from stator_variables._tensors import _torch_calls
from stator_variables._tensors._backward_operators import Differentiated
from stator_variables._tensors._deferred_calls import DeferredCalls
from stator_variables._tensors._global_mode import GlobalModes
from stator_variables._tensors._history import reached_leaves
from stator_variables._tensors._surroundings import is_surrounded
from stator_variables._tracker import MISSING, Args, Kwargs, VariableTracker, is_a
from stator_variables._trackers import (
    NONE,
    BuiltinTracker,
    ConstantTracker,
    TensorTracker,
    is_none,
)

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
    found = torch.autograd.grad(roots, leaves, seeds, retain_graph, create_graph, allow_unused=True)
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


# -- the calls -------------------------------------------------------------------------------------
def capture_backward(t: Space, given: Mapping[str, Any]) -> Result:
    """Record a call of `torch.autograd.backward`, or return MISSING for one that raises.

    Raises Unsupported where it has to run natively.
    """
    operands = _operands(given, "tensors", "grad_tensors")
    if not operands or _is_given(given, "grad_variables"):
        return MISSING
    _refuse_observed(t)
    t.graph.complete_histories()
    leaves = _leaves(t, operands[0].items)
    if _is_given(given, "inputs"):
        leaves = _restricted(leaves, _items(given["inputs"]))
    if not leaves:
        return MISSING

    if operands[-1].constant() is True:  # gradients with a history of their own, as results
        t.graph.keep_history()
    present = [_gradient(t, leaf) for leaf in leaves]
    operands[2:2] = [ListTracker(leaves), ListTracker(present)]
    made: Any = _record(t, gradients, operands, {}, leaves)
    for leaf, gradient in zip(leaves, made.items, strict=True):
        if not is_none(gradient):
            t.write(leaf, grad=gradient)
    return NONE


def capture_grad(t: Space, given: Mapping[str, Any]) -> Result:
    """The same for `torch.autograd.grad`, about leaves and what the region made."""
    operands = _operands(given, "outputs", "grad_outputs")
    inputs = _items(given["inputs"])
    is_batched = _flag(given, "is_grads_batched", False) is not False
    if not operands or not inputs or is_batched or not all(map(_is_tensor, inputs)):
        return MISSING
    _refuse_observed(t)
    t.graph.complete_histories()
    leaves = _leaves(t, operands[0].items)
    _refuse_unordinary(t, [vt for vt in inputs if vt.source is not None])

    operands.insert(1, ListTracker(inputs))
    named = {name: given[name] for name in ("allow_unused", "materialize_grads") if name in given}
    return _record(t, torch.autograd.grad, operands, named, leaves)


def _record(t: Space, target: Any, args: Args, kwargs: Kwargs, leaves: Sequence[Any]) -> Any:
    """Record the operator, which frees the history that it passes through."""
    operands = [_torch_calls.argument(t, vt) for vt in args]
    named = {name: _torch_calls.argument(t, vt) for name, vt in kwargs.items()}
    traced = t.graph.call(target, operands, named)
    leaf_values = [leaf.before for leaf in leaves]
    t.graph.free_history(traced, leaf_values, is_freed=args[-1].constant() is not True)
    t.journal.assign(t.state(Differentiated), has_backward=True)
    return _torch_calls.from_traced(t, traced, args)


def _operands(given: Mapping[str, Any], roots: str, seeds: str) -> list[Any]:
    """Return the arguments that both calls have: roots, their gradients, `retain_graph` and
    `create_graph`.

    The list is empty if one of them is no argument of an operator.
    """
    creates = _flag(given, "create_graph", False)
    retains = _flag(given, "retain_graph", creates)
    tensors, gradients = _items(given[roots]), _items(given.get(seeds, NONE))
    known = [*tensors, *(seed for seed in gradients if not is_none(seed))]
    if MISSING in (creates, retains) or not all(map(_is_tensor, known)):
        return []
    flags = [ConstantTracker(retains), ConstantTracker(creates)]
    return [ListTracker(tensors), ListTracker(gradients) if gradients else NONE, *flags]


def _is_given(given: Mapping[str, Any], name: str) -> bool:
    return name in given and not is_none(given[name])


def _flag(given: Mapping[str, Any], name: str, default: object) -> Any:
    return given[name].constant() if _is_given(given, name) else default


def _items(vt: VariableTracker) -> list[Any]:
    if is_none(vt):
        return []
    return list(vt.items) if is_a(vt, SequenceTracker) else [vt]


def _is_tensor(vt: VariableTracker) -> bool:
    return is_a(vt, TensorTracker) and vt.cls in _PLAIN


def _refuse_observed(t: Space) -> None:
    """Raise Unsupported where more than the gradients shows how a backward runs."""
    operators = t.state(Differentiated)
    if operators.has_reentrant:
        raise _refusal(t, "a reentrant checkpoint")
    if not t.policy.runs_in_order:
        if operators.has_checkpoint:
            raise _refusal(t, "a checkpoint, which a compiler would not compute again")
        if saves_by_hooks():
            raise _refusal(t, "hooks on saved tensors, of which a compiler has none")
        t.guard(CallSource(saves_by_hooks), Equals(False))
    if t.state(DeferredCalls).calls:
        raise _refusal(t, "a hook that was registered before it")

    is_checked: Any = t.call(BuiltinTracker(torch.is_anomaly_enabled), [])
    before = _native.set_autograd_compiler(None, False)
    _native.set_autograd_compiler(*before)
    if before[0] is not None or is_checked.constant() is not False:
        raise _refusal(t, "compiled autograd or anomaly detection")
    if is_surrounded(t) or t.state(GlobalModes).is_sealed or torch.is_inference_mode_enabled():
        raise _refusal(t, "a mode, a transform or an operator with a body around it")


def saves_by_hooks() -> bool:
    """Return True if hooks of the program see the tensors that autograd saves."""
    return torch._C._autograd._top_saved_tensors_default_hooks(True) is not None


def _refusal(t: Space, detail: str) -> Exception:
    return t.unsupported("backward", f"a backward with {detail}")


# -- leaves ----------------------------------------------------------------------------------------
def _leaves(t: Space, roots: Sequence[Any]) -> list[Any]:
    """Return the leaves that a backward reaches.

    Raises Unsupported if one is no ordinary tensor from outside, or somebody attached a hook to it.
    """
    known = {
        id(vt.before.example): vt for vt in t.heap.trackers.values() if type(vt) is TensorTracker
    }
    found = [
        known.get(id(leaf)) for leaf in reached_leaves([root.before.example for root in roots])
    ]
    _refuse_unordinary(t, found)
    return found


def _refuse_unordinary(t: Space, leaves: Sequence[Any]) -> None:
    if not all(map(_is_ordinary, leaves)):
        raise _refusal(t, "a history that begins outside of the region")
    if not all(is_unhooked(vt.real) for vt in leaves):
        raise _refusal(t, "a hook on a parameter")
    for vt in leaves:
        t.guard(vt.source, UNHOOKED)


def _is_ordinary(vt: Any) -> bool:
    if vt is None:
        return False
    is_from_outside = vt.source is not None and not vt.is_new and vt.data is MISSING
    return is_from_outside and vt.cls in _PLAIN


def is_unhooked(tensor: Tensor) -> bool:
    """Return True for a leaf of autograd without hooks."""
    hooks = tensor._backward_hooks or tensor._post_accumulate_grad_hooks
    return tensor.is_leaf and not hooks


UNHOOKED = Custom(
    "{value}.is_leaf and not ({value}._backward_hooks or {value}._post_accumulate_grad_hooks)",
    is_unhooked,
    "a leaf without hooks",
    unhooked_words,
)


def _restricted(leaves: Sequence[Any], inputs: Sequence[Any]) -> list[Any]:
    """Return the leaves that are among `inputs`; none if these have another tensor."""
    numbers = set(map(id, inputs))
    if not numbers <= set(map(id, leaves)):
        return []
    return [vt for vt in leaves if id(vt) in numbers]


def _gradient(t: Space, leaf: Any) -> Any:
    """Return the present `.grad` of a leaf; raises Unsupported if a gradient is not simply added to
    it."""
    gradient: Any = t.read_tensor(leaf, "grad")
    if is_none(gradient):
        return NONE
    is_simple = is_a(gradient, TensorTracker) and gradient.cls is Tensor
    if not is_simple or gradient.example.layout is not torch.strided:
        raise _refusal(t, "a gradient that is sparse, or of a subclass")
    return gradient
