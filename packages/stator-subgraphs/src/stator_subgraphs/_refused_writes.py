"""Writes that are no nodes: real kernels, fakes and what is functionalised do not agree, so they run natively.

Sizes that are symbols are taken for what they are now: all that hangs on it is a break.
"""

from __future__ import annotations

import itertools
import operator
from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import Any

import torch
from stator_bytecode.errors import Unsupported
from torch._prims_common import is_non_overlapping_and_dense_or_false

from stator_subgraphs._mutation import may_write, now, storage_of
from stator_subgraphs._structure import tensors_in

IN_PLACE_OPERATORS = frozenset(
    {operator.iadd, operator.isub, operator.imul, operator.itruediv, operator.ifloordiv, operator.imod, operator.ipow}
    | {operator.iand, operator.ior, operator.ixor, operator.ilshift, operator.irshift}
)


def refuse_partial_overlap(target: Any, tensors: list[torch.Tensor], out: Any) -> None:
    """Raises Unsupported for an operator in place, or into `out`, that writes to memory which it reads shifted or
    transposed. Real kernels raise then, or read what they wrote (`at::get_overlap_status`); fakes and what is
    functionalised do not: so it runs natively, where its `try` is.
    """
    name = target if isinstance(target, str) else getattr(target, "__name__", "")
    in_place = (name.endswith("_") and not name.endswith("__")) or target in IN_PLACE_OPERATORS
    found = in_place and any(_overlaps_in_part(tensors[0], other) for other in tensors[1:])
    if found or any(_overlaps(one, other) for one in tensors_in([out]) for other in tensors):
        raise Unsupported("operator-error", f"{name}: it writes to memory that it also reads in another order")


def refuse_setting(target: Any, args: Sequence[Any]) -> None:
    """The same for `x[1:] = x[:-1]`. By positions or a mask, kernels take nothing of the same memory at all."""
    if target not in (operator.setitem, "__setitem__") or not isinstance(value := args[2], torch.Tensor):
        return
    if storage_of(tensor := args[0]) != storage_of(value) or tensor.layout is not torch.strided:
        return
    parts = args[1] if isinstance(args[1], tuple) else (args[1],)
    if all(part is None or part is ... or type(part) in (int, slice, torch.SymInt) for part in parts):
        written = tensor[args[1]]
        found = now(written.numel()) == now(value.numel()) and _overlaps_in_part(written, value)
    else:
        found = tensor is value or _overlaps(tensor, value)
    if found:
        raise Unsupported("operator-error", "setitem: it writes to memory that it also reads in another order")


def refuse_detaching(target: Any, tensors: list[torch.Tensor], inputs: Iterable[Any]) -> None:
    """Raises Unsupported for `detach_` of an input: compilers put back what is written, no more."""
    name = target if isinstance(target, str) else getattr(target, "__name__", "")
    if name == "detach_" and tensors[0].requires_grad and any(tensors[0] is given for given in inputs):
        raise Unsupported("graph-result", "detach_: a tensor from outside that needs no gradients any more")


MULTIPLYING = frozenset({"mul_", "multiply_", "imul", "__imul__", "_foreach_mul_"})
FLOATS = float | torch.SymFloat


def refuse_casts(target: Any, tensors: list[torch.Tensor], args: Sequence[Any]) -> None:
    """Raises Unsupported where a product that is written to a tensor of integers may be none. Real kernels raise then,
    those of fakes do not always, and what is functionalised writes what the cast leaves."""
    name = target if isinstance(target, str) else getattr(target, "__name__", "")
    if name not in MULTIPLYING or not tensors or tensors[0].is_floating_point() or tensors[0].is_complex():
        return
    wider = FLOATS if tensors[0].dtype is not torch.bool else FLOATS | int | torch.SymInt
    numbers = [item for given in args for item in (given if type(given) in (list, tuple) else [given])]
    if any(isinstance(number, wider) and type(number) is not bool for number in numbers):
        raise Unsupported("operator-error", f"{name}: its result cannot be cast to {tensors[0].dtype}")


def refuse_repeats(target: Any, args: Sequence[Any]) -> None:
    """Raises Unsupported for an operator over lists that writes to memory which it meets at another place of a list
    again: real kernels take one place after the other, what is functionalised takes all as they were before."""
    name = getattr(target, "__name__", "")
    if not (name.startswith(("_foreach_", "_fused_")) and name.endswith("_")):
        return
    lists = [
        [item for item in given if isinstance(item, torch.Tensor)] for given in args if type(given) in (list, tuple)
    ]
    written = len(lists) if name.startswith("_fused_") else 1
    met: defaultdict[int, list[tuple[int, int, torch.Tensor]]] = defaultdict(list)
    for which, tensors in enumerate(lists):
        for place, tensor in enumerate(tensors):
            met[storage_of(tensor)].append((which, place, tensor))
    for pair in (pair for same in met.values() for pair in itertools.combinations(same, 2)):
        (which, place, tensor), (_, other_place, other) = pair
        if which < written and place != other_place and _meet(tensor, other):
            raise Unsupported("operator-error", f"{name}: it writes to memory that it meets again")


def refuse_marked(target: Any, args: Sequence[Any], kwargs: dict[str, Any]) -> None:
    """Raises Unsupported for a write to an inference tensor outside inference mode. Real kernels raise then, some of
    them after they wrote; fakes do not where the write is to a view, or to one of a list."""
    if torch.is_inference_mode_enabled() or not may_write(target, kwargs):
        return
    name = target if isinstance(target, str) else getattr(target, "__name__", "")
    written = args if name.startswith("_fused_") else args[:1]
    if any(tensor.is_inference() for tensor in tensors_in([*written, kwargs.get("out")])):
        raise Unsupported("operator-error", f"{name}: it writes to an inference tensor outside inference mode")


def _meet(one: torch.Tensor, other: torch.Tensor) -> bool:
    if one is other or one.layout is not torch.strided:
        return True
    (start, end), (other_start, other_end) = _extent(one), _extent(other)
    return start < other_end and other_start < end


def _extent(tensor: torch.Tensor) -> tuple[int, int]:
    """The first byte, and the one after the last; of sizes that data decide, nothing."""
    look = [now(number) for number in (*tensor.size(), *tensor.stride(), tensor.storage_offset())]
    if None in look or 0 in look[: tensor.dim()]:
        return 0, 0
    start, reach = look[-1], sum((size - 1) * stride for size, stride in zip(look, look[tensor.dim() :], strict=False))
    return start * tensor.element_size(), (start + reach + 1) * tensor.element_size()


def _overlaps(written: torch.Tensor, other: torch.Tensor) -> bool:
    if written is other or written.layout is not torch.strided or storage_of(written) != storage_of(other):
        return False
    return _meet(written, other) and _look(written) != _look(other)


def _look(tensor: torch.Tensor) -> tuple[Any, ...]:
    return _extent(tensor), [now(number) for number in (*tensor.size(), *tensor.stride())]


def _overlaps_in_part(written: torch.Tensor, other: torch.Tensor) -> bool:
    dense = is_non_overlapping_and_dense_or_false
    return _overlaps(written, other) and dense(written) and dense(other)


def refuse_expanded(target: Any, written: list[torch.Tensor]) -> None:
    """Raises Unsupported where elements of what was written to share memory: real kernels raise, or warn of it. The few
    that do neither (`fill_`) are no nodes, either: functionalised, an element of the base becomes a sum of its copies.
    """
    for tensor in written:
        if tensor.layout is torch.strided and _shares_elements(tensor):
            name = getattr(target, "__name__", target)
            raise Unsupported("operator-error", f"{name}: it writes to a tensor of which elements share memory")


def _shares_elements(tensor: torch.Tensor) -> bool:
    """Expanded, or with steps shorter than what lies between (`x.unfold(0, 3, 1)`)."""
    steps = [(now(stride), now(size)) for stride, size in zip(tensor.stride(), tensor.size(), strict=True)]
    reach = 0
    for stride, size in sorted(step for step in steps if None not in step and step[1] != 1):
        if stride <= reach:
            return all(size != 0 for _, size in steps)
        reach += stride * (size - 1)
    return False
