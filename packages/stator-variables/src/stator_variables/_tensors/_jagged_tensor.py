"""Jagged nested tensors: the graph takes their parts as inputs, and puts them together.

A jagged tensor is its values, one row after the other, with the offsets at which rows begin. Its
ragged size is no number: it represents the identity of the offsets, so tensors with equal rows are
those that share one offsets tensor.

    n * 2           the graph: n = nested_view(n_values, n_offsets, 1); mul = n * 2

So everything that is known of plain inputs (guards, sizes that change, memory in common) holds for
the parts, and the number of rows and their lengths become symbols like other sizes.
"""

from functools import partial
from typing import Any

import torch
from stator_guards import AttrSource, CallSource, Equals, Source, TensorMatch, TypeIs
from torch.nested._internal import nested_tensor
from torch.nested._internal.nested_tensor import NestedTensor

from stator_variables._space import Space
from stator_variables._tensors import _torch_calls
from stator_variables._tensors._history import history_of
from stator_variables._tensors._jagged_parts import PARTS, JaggedParts
from stator_variables._trace._memory import InputMemory
from stator_variables._tracker import MISSING, VariableTracker
from stator_variables._trackers import NONE, ConstantTracker, TensorTracker

make_of_offsets: Any = nested_tensor.nested_view_from_values_offsets
make_of_lengths: Any = nested_tensor.nested_view_from_values_offsets_lengths
BOUNDS = ("min_seqlen", "max_seqlen")


class _Values(torch.autograd.Function):
    """The values of a jagged tensor, and its history, as a tensor that is no view of it."""

    @staticmethod
    def forward(ctx: Any, tensor: Any) -> Any:
        ctx.parts = tensor._offsets, tensor._lengths, tensor._ragged_idx
        ctx.bounds = tensor._maybe_min_seqlen, tensor._maybe_max_seqlen
        return tensor._values.detach()

    @staticmethod
    def backward(ctx: Any, gradient: object) -> object:
        return nested_view(gradient, *ctx.parts, *ctx.bounds)


def values_of(tensor: object) -> Any:
    """The values with the history of the whole, in whatever mode: the graph may set another one."""
    with torch.enable_grad():
        return _Values.apply(tensor)  # type: ignore[no-untyped-call]


def nested_view(
    values: Any,
    offsets: Any,
    lengths: Any = None,
    ragged: int = 1,
    shortest: int | None = None,
    longest: int | None = None,
) -> Any:
    """The jagged tensor of these parts; it has their history in whatever mode it is first used."""
    make = make_of_offsets if lengths is None else partial(make_of_lengths, lengths=lengths)
    with torch.set_grad_enabled(values.requires_grad):
        return make(values, offsets, ragged_idx=ragged, min_seqlen=shortest, max_seqlen=longest)


def form_of(tensor: Any) -> tuple[Any, ...]:
    """The facts that do not follow from the parts: flags, the ragged dimension, and which parts
    there are."""
    given = (tensor._lengths, *map(tensor._metadata_cache.get, BOUNDS))
    return tensor.requires_grad, tensor._ragged_idx, *(part is None for part in given)


def shortest_of(tensor: Any) -> Any:
    return tensor._maybe_min_seqlen


def longest_of(tensor: Any) -> Any:
    return tensor._maybe_max_seqlen


def build(t: Space, real: Any, source: Source) -> Any:
    if torch.is_inference_mode_enabled() or real.is_inference():
        raise t.unsupported("tensor-subclass", "a jagged tensor in inference mode")
    t.guard(source, TypeIs(NestedTensor))
    t.guard(CallSource(form_of, source), Equals(form_of(real)))
    values = _values(t, real, source)
    parts: list[Any] = [
        NONE if part is None else t.wrap(part, AttrSource(source, name))
        for name, part in (("_offsets", real._offsets), ("_lengths", real._lengths))
    ]

    ragged = ConstantTracker(real._ragged_idx)
    bounds = [_bound(t, read, real, source) for read in (shortest_of, longest_of)]
    made = _torch_calls.record_without_modes(t, nested_view, [values, *parts, ragged, *bounds], {})
    t.state(InputMemory).jagged |= {id(made.example), values.example.untyped_storage()._cdata}
    vt = TensorTracker(made.traced, NestedTensor)
    if real.requires_grad:
        vt.history = history_of(made.example)
    return vt


def _values(t: Space, real: Any, source: Source) -> Any:
    part, inner = AttrSource(source, "_values"), real._values
    if not real.requires_grad:
        return t.wrap(inner, part)
    t.keep_apart(part, inner)
    whole, tensor = CallSource(values_of, source), values_of(real)
    dims = t.policy.dims(part, inner)
    traced = t.graph.tensor_input(whole, tensor, dims, part.name, part)
    sizes = [i for i, size in enumerate(traced.example.shape) if type(size) is not int]
    with t.caller_modes():
        t.guard(part, TensorMatch(inner, frozenset(sizes)))
    return TensorTracker(traced, torch.Tensor)


def _bound(t: Space, read: Any, real: object, source: Source) -> VariableTracker:
    """The length of the shortest or longest row, if it was computed before: a number like others
    that change."""
    if (value := read(real)) is None:
        return NONE
    traced = t.graph.number_input(CallSource(read, source), value, read.__name__)
    return _torch_calls.number(t, traced)


def own(t: Space, vt: Any, name: str) -> Any:
    """An attribute that the object keeps: a part, which nothing writes to, or what it was made
    of."""
    value = getattr(vt.example, name, MISSING)
    if name == "_ragged_idx":
        return ConstantTracker(value)
    if name in PARTS and value is not MISSING:
        return NONE if value is None else _part(t, vt, name, value)
    if name in vars(vt.example):
        raise t.unsupported("tensor-attribute", f"the attribute {name} of a jagged tensor")
    return MISSING


def _part(t: Space, vt: TensorTracker, name: str, value: object) -> Any:
    """One tracker for each part, whichever of the tensors that share it is read."""
    parts = t.state(JaggedParts).known
    if id(value) not in parts:
        made = _torch_calls.from_traced(t, t.graph.attribute(vt.traced, name), [vt])
        t.journal.put(parts, id(value), made)
    return parts[id(value)]
