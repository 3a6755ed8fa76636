"""Operators that are not recorded as nodes, so they run natively: real kernels, fakes and
functionalization disagree about them, or fakes are not precise enough.

Symbolic sizes are compared by their present values: only a break depends on it.
"""

import itertools
import operator
from collections import defaultdict
from collections.abc import Callable, Sequence
from typing import Any

import attrs
import torch
from stator_bytecode.errors import Unsupported
from stator_variables import Kwargs
from torch import SymInt, Tensor, fx
from torch._prims_common import is_non_overlapping_and_dense_or_false

from stator_subgraphs._mutation import NodeTarget, is_in_place, may_write, now, storage_of
from stator_subgraphs._schema import is_pointwise
from stator_subgraphs._structure import tensors_in


@attrs.frozen(eq=False)
class Operation:
    """The facts that the rules read. `tensors` are all among the arguments, in order;
    `placeholders` are the root graph's."""

    target: NodeTarget
    args: Sequence[Any]
    kwargs: Kwargs
    tensors: list[Tensor]
    placeholders: list[fx.Node]
    name: str

    @property
    def inputs(self) -> list[Any]:
        return [node.meta["example_value"] for node in self.placeholders]


def refuse(operation: Operation) -> None:
    """Raises Unsupported for one that has to run natively."""
    for rule in RULES:
        rule(operation)


SEEDING = frozenset(
    {"manual_seed", "manual_seed_all", "seed", "seed_all", "set_rng_state", "set_rng_state_all"}
)
"""Functions by name: torch replaces some of them after import."""
QUANTIZING = ("quantize_per_", "_empty_affine_quantized", "_empty_per_channel_affine_quantized")
SPARSE = (torch.sparse_coo, torch.sparse_csr, torch.sparse_csc, torch.sparse_bsr, torch.sparse_bsc)
SPARSE_CONTENTS = frozenset(
    "_nnz values indices _values _indices col_indices row_indices is_coalesced "
    "sparse_dim dense_dim _dimI _dimV".split()
)
DRAW_FLOATS = (
    "rand",
    "rand_like",
    "uniform_",
    "bernoulli",
    "multinomial",
    "poisson",
    "rrelu",
    "_standard_gamma",
)


def refuse_seeding(operation: Operation) -> None:
    if operation.name in SEEDING and str(
        getattr(operation.target, "__module__", "torch")
    ).startswith("torch"):
        raise Unsupported(
            "random-seeding", f"{operation.name} changes a stream of random numbers of the process"
        )


def refuse_quantizing(operation: Operation) -> None:
    """The fake of a quantized tensor would be a plain one, which nothing needs to dequantize.

    Operators of the same name in other libraries give integers (`quantized_decomposed`).
    """
    is_of_torch = getattr(operation.target, "namespace", "aten") == "aten"
    if operation.name.startswith(QUANTIZING) and is_of_torch:
        raise Unsupported("no-fake-kernel", f"{operation.name}: it gives a quantized tensor")


def refuse_sparse(operation: Operation) -> None:
    """Reject operators on the contents of sparse tensors, and sparse tensors with symbolic sizes.

    A fake of a sparse tensor stores no items, however many the tensor itself does, and no guard
    covers them. Operators treat one with symbolic sizes as a dense one.
    """
    sparse = [tensor for tensor in operation.tensors if tensor.layout in SPARSE]
    if sparse and operation.name in SPARSE_CONTENTS:
        raise Unsupported("data-dependent-shape", f"{operation.name} of a sparse tensor")
    if any(isinstance(size, SymInt) for tensor in sparse for size in tensor.shape):
        raise Unsupported(
            "no-fake-kernel", f"{operation.name} of a sparse tensor with symbolic sizes"
        )


def refuse_drawing(operation: Operation) -> None:
    """Their kernels draw no integers; their fakes do, and the graph would raise behind what it
    wrote."""
    if operation.name in DRAW_FLOATS:
        drawn = operation.kwargs.get("dtype") or next(
            (tensor.dtype for tensor in operation.tensors), torch.float
        )
        if not (drawn.is_floating_point or drawn.is_complex):
            raise Unsupported("no-fake-kernel", f"{operation.name} of {drawn}")


def refuse_new_leaves(example: Any, given: Sequence[Tensor]) -> None:
    """Reject a new leaf, as in `torch.ones(3, requires_grad=True)`: compilers differentiate a graph
    by its inputs alone."""
    for tensor in tensors_in(example):
        # reading `is_leaf` of a stale view raises
        is_new_leaf = tensor.requires_grad and not tensor._is_view() and tensor.is_leaf
        if is_new_leaf and all(tensor is not known for known in given):
            raise Unsupported("graph-result", "a tensor that is made here and requires gradients")


# -- writes ----------------------------------------------------------------------------------------
def refuse_partial_overlap(operation: Operation) -> None:
    """Raises Unsupported for an operator in place, or into `out`, that writes to memory which it
    reads shifted or transposed. Real kernels raise then, or read what they wrote
    (`at::get_overlap_status`); fakes and what is functionalised do not: so it runs natively, where
    its `try` is.
    """
    name, tensors = operation.name, operation.tensors
    found = is_in_place(operation.target) and any(
        _overlaps_in_part(tensors[0], other) for other in tensors[1:]
    )
    first = 1 if hasattr(torch.ops.aten, f"{name}_") else 0  # which kernels take as `out`, too
    out = list(tensors_in([operation.kwargs.get("out")]))
    read = list(tensors_in(operation.args[first:]))
    is_read = any(one is other for one in out for other in read) and not is_pointwise(name)
    if found or is_read or any(_overlaps(one, other) for one in out for other in tensors):
        raise Unsupported(
            "operator-error", f"{name}: it writes to memory that it also reads in another order"
        )


def refuse_setting(operation: Operation) -> None:
    """The same for `x[1:] = x[:-1]`, once it is done. By positions or a mask, kernels take nothing
    of the same memory at all."""
    if operation.target not in (operator.setitem, "__setitem__"):
        return
    tensor, place, value = operation.args
    if not isinstance(value, Tensor) or tensor.layout is not torch.strided:
        return
    if storage_of(tensor) != storage_of(value):
        return

    parts = place if isinstance(place, tuple) else (place,)
    if all(part is None or part is ... or type(part) in (int, slice, SymInt) for part in parts):
        written = tensor[place]
        found = now(written.numel()) == now(value.numel()) and _overlaps_in_part(written, value)
    else:
        found = tensor is value or _overlaps(tensor, value)
    if found:
        raise Unsupported(
            "operator-error", "setitem: it writes to memory that it also reads in another order"
        )


def refuse_detaching(operation: Operation) -> None:
    """Raises Unsupported for `detach_` of an input: compilers put back what is written, no more."""
    tensors = operation.tensors
    is_to_lose = operation.name == "detach_" and tensors[0].requires_grad
    if is_to_lose and any(tensors[0] is given for given in operation.inputs):
        raise Unsupported(
            "graph-result", "detach_: a tensor from outside that needs no gradients any more"
        )


FLOATS, INTEGERS = float | torch.SymFloat, int | SymInt
GIVING_FLOATS = ("ldexp_", "logit_")
CASTING = frozenset(
    "add_ sub_ subtract_ mul_ multiply_ addcmul_ addcdiv_ "
    "iadd isub imul __iadd__ __isub__ __imul__".split()
)


def refuse_casts(operation: Operation) -> None:
    """Raises Unsupported where a result may be of a type that the tensor it is written to does not
    hold. Real kernels raise then, those of fakes do not always, and what is functionalised writes
    what the cast leaves."""
    name = operation.name.removeprefix("_foreach_")
    if name not in CASTING and name not in GIVING_FLOATS:
        return
    given: list[Any] = [
        *operation.args[1:],
        *operation.kwargs.values(),
        *([1.0] if name in GIVING_FLOATS else []),
    ]

    for place, written in enumerate(tensors_in(operation.args[:1])):
        parts = [
            part[place] if type(part) in (list, tuple) and place < len(part) else part
            for part in given
        ]
        values = [
            _sample(part)
            for part in parts
            if isinstance(part, Tensor | complex | FLOATS | INTEGERS)
        ]

        if not all(
            torch.can_cast(torch.result_type(written, value), written.dtype) for value in values
        ):
            raise Unsupported(
                "operator-error", f"{name}: its result cannot be cast to {written.dtype}"
            )


def _sample(value: Any) -> Any:
    """A number represents its kind: `result_type` takes no symbols, and no integers of over 64
    bits."""
    return (
        1.0
        if isinstance(value, FLOATS)
        else 1
        if isinstance(value, INTEGERS) and type(value) is not bool
        else value
    )


def refuse_repeats(operation: Operation) -> None:
    """Raises Unsupported for an operator over lists that writes to memory which it meets at another
    place of a list again: real kernels take one place after the other, what is functionalised takes
    all as they were before."""
    name = operation.name
    if not (name.startswith(("_foreach_", "_fused_")) and name.endswith("_")):
        return
    sequences = [given for given in operation.args if type(given) in (list, tuple)]
    lists = [[item for item in given if isinstance(item, Tensor)] for given in sequences]
    written = len(lists) if name.startswith("_fused_") else 1
    met: defaultdict[int, list[tuple[int, int, Tensor]]] = defaultdict(list)
    for which, tensors in enumerate(lists):
        for place, tensor in enumerate(tensors):
            met[storage_of(tensor)].append((which, place, tensor))
    for pair in (pair for same in met.values() for pair in itertools.combinations(same, 2)):
        (which, place, tensor), (_, other_place, other) = pair
        if which < written and place != other_place and _meet(tensor, other):
            raise Unsupported("operator-error", f"{name}: it writes to memory that it meets again")


def refuse_marked(operation: Operation) -> None:
    """Raises Unsupported for a write to an inference tensor outside inference mode. Real kernels
    raise then, some of them after they wrote; fakes do not where the write is to a view, or to one
    of a list."""
    if torch.is_inference_mode_enabled() or not may_write(operation.target, operation.kwargs):
        return
    name, args = operation.name, operation.args
    written = args if name.startswith("_fused_") else args[:1]
    if any(tensor.is_inference() for tensor in tensors_in([*written, operation.kwargs.get("out")])):
        raise Unsupported(
            "operator-error", f"{name}: it writes to an inference tensor outside inference mode"
        )


def _meet(one: Tensor, other: Tensor) -> bool:
    if one is other or one.layout is not torch.strided:
        return True
    (start, end), (other_start, other_end) = _extent(one), _extent(other)
    return start < other_end and other_start < end


def _extent(tensor: Tensor) -> tuple[int, int]:
    """The first byte, and the one after the last; of sizes that data decide, nothing."""
    look = [now(number) for number in (*tensor.size(), *tensor.stride(), tensor.storage_offset())]
    if None in look or 0 in look[: tensor.dim()]:
        return 0, 0
    start, reach = (
        look[-1],
        sum((size - 1) * stride for size, stride in zip(look, look[tensor.dim() :], strict=False)),
    )
    return start * tensor.element_size(), (start + reach + 1) * tensor.element_size()


def _overlaps(written: Tensor, other: Tensor) -> bool:
    if (
        written is other
        or written.layout is not torch.strided
        or storage_of(written) != storage_of(other)
    ):
        return False
    return _meet(written, other) and _look(written) != _look(other)


def _look(tensor: Tensor) -> tuple[Any, ...]:
    return _extent(tensor), [now(number) for number in (*tensor.size(), *tensor.stride())]


def _overlaps_in_part(written: Tensor, other: Tensor) -> bool:
    dense = is_non_overlapping_and_dense_or_false
    return _overlaps(written, other) and dense(written) and dense(other)


def refuse_expanded(name: str, written: list[Tensor]) -> None:
    """Raises Unsupported where elements of what was written to share memory: real kernels raise, or
    warn of it. The few that do neither (`fill_`) are no nodes, either: functionalised, an element
    of the base becomes a sum of its copies.
    """
    for tensor in written:
        if tensor.layout is torch.strided and _shares_elements(tensor):
            raise Unsupported(
                "operator-error", f"{name}: it writes to a tensor of which elements share memory"
            )


def _shares_elements(tensor: Tensor) -> bool:
    """Expanded, or with steps shorter than what lies between (`x.unfold(0, 3, 1)`)."""
    steps = [
        (now(stride), now(size))
        for stride, size in zip(tensor.stride(), tensor.size(), strict=True)
    ]
    reach = 0
    for stride, size in sorted(step for step in steps if None not in step and step[1] != 1):
        if stride <= reach:
            return all(size != 0 for _, size in steps)
        reach += stride * (size - 1)
    return False


RULES: tuple[Callable[[Operation], None], ...] = (
    *(refuse_seeding, refuse_quantizing, refuse_sparse, refuse_drawing),
    *(refuse_partial_overlap, refuse_marked, refuse_repeats, refuse_casts, refuse_detaching),
)
