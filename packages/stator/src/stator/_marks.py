"""How users say what is to be symbolic. The marks are those of torch: attributes on the tensor, whoever sets them.

stator.mark_dynamic(x, 0, min=2, max=64)     one graph for all sizes of dimension 0; an error where none can be
stator.mark_static(y)                        no symbols for it, also where its sizes change
"""

from collections.abc import Iterable
from typing import Any

import attrs
import torch
from stator_variables import Dim

from stator.errors import InvalidUse

Index = int | Iterable[int]


@attrs.frozen
class DimRange:
    """The sizes that a marked dimension may have, both included."""

    dim: int
    min: int | None
    max: int | None


def mark_dynamic(tensor: torch.Tensor, index: Index, *, min: int | None = None, max: int | None = None) -> None:
    """These dimensions are symbols from the first call on. Code that needs one of their sizes as a constant, or sizes
    outside the range, are InvalidUse."""
    for dim in _indices(tensor, index):
        _attribute(tensor, "_dynamo_dynamic_indices", set()).add(dim)
        _attribute(tensor, "_dynamo_dynamic_range", set()).add(DimRange(dim, min, max))


def maybe_mark_dynamic(tensor: torch.Tensor, index: Index) -> None:
    """These dimensions are symbols from the first call on, where that is possible."""
    for dim in _indices(tensor, index):
        _attribute(tensor, "_dynamo_weak_dynamic_indices", set()).add(dim)


def mark_unbacked(tensor: torch.Tensor, index: Index, *, min: int | None = None, max: int | None = None) -> None:
    """These dimensions are symbols that nothing may ask the value of: not even 0 and 1 have graphs of their own."""
    for dim in _indices(tensor, index):
        _attribute(tensor, "_dynamo_unbacked_indices", set()).add(dim)
        if min is not None or max is not None:
            _attribute(tensor, "_dynamo_unbacked_bounds", {})[dim] = (min, max)


def mark_static(tensor: torch.Tensor, index: Index | None = None) -> None:
    """These dimensions (default: all) are constants: each of their sizes has a graph of its own."""
    for dim in _indices(tensor, range(tensor.dim()) if index is None else index):
        _attribute(tensor, "_dynamo_static_indices", set()).add(dim)


def mark_static_address(tensor: torch.Tensor, guard: bool = False) -> None:
    """The tensor stays where it is in memory, as parameters do. `guard`: another tensor in its place is noticed."""
    tensor._dynamo_static_input_type = "guarded" if guard else "unguarded"  # type: ignore[attr-defined]


def _indices(tensor: torch.Tensor, index: Index) -> list[int]:
    found = [index] if isinstance(index, int) else list(index)
    for dim in found:
        if not 0 <= dim < tensor.dim():
            raise InvalidUse(f"a tensor of {tensor.dim()} dimensions has no dimension {dim}", "count from 0")
    tensor._has_dynamo_dim_marking = True  # type: ignore[attr-defined]
    return found


def _attribute(tensor: torch.Tensor, name: str, empty: Any) -> Any:
    if not hasattr(tensor, name):
        setattr(tensor, name, empty)
    return getattr(tensor, name)


def marks_of(tensor: torch.Tensor) -> dict[int, Dim]:
    """The dimensions that carry marks; of several marks the last of: weak, dynamic, unbacked, static."""
    found = {index: Dim("dynamic") for index in getattr(tensor, "_dynamo_weak_dynamic_indices", ())}
    if not getattr(tensor, "_has_dynamo_dim_marking", False) and not found:
        return found
    ranges = {each.dim: (each.min, each.max) for each in getattr(tensor, "_dynamo_dynamic_range", ())}
    for index in getattr(tensor, "_dynamo_dynamic_indices", ()):
        found[index] = Dim("dynamic", *ranges.get(index, (None, None)), strict=True)
    bounds = getattr(tensor, "_dynamo_unbacked_bounds", {})
    for name in ("_dynamo_unbacked_indices", "_dynamo_strict_unbacked_indices"):
        found |= {index: Dim("unbacked", *bounds.get(index, (None, None))) for index in getattr(tensor, name, ())}
    return found | {index: Dim() for index in getattr(tensor, "_dynamo_static_indices", ())}
