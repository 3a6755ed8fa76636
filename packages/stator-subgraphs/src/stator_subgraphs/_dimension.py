"""How each dimension of an input is treated, in the words of `ShapeEnv`."""

from collections.abc import Sequence

import torch
from stator_bytecode.errors import InvalidUse
from stator_variables import Dim
from torch._guards import Source as AnyTorchSource
from torch.fx.experimental import symbolic_shapes as shapes
from torch.utils._sympy.numbers import int_oo
from torch.utils._sympy.value_ranges import ValueRanges

KINDS = {kind: shapes.DimDynamic[kind.upper()] for kind in ("static", "dynamic", "unbacked")}
Constraint = shapes.StrictMinMaxConstraint | shapes.RelaxedUnspecConstraint | None


def symbolic_context(
    source: AnyTorchSource, tensor: torch.Tensor, dims: Sequence[Dim]
) -> shapes.StatefulSymbolicContext:
    """Says which symbols `tensor` gets; the same object gives the same symbols when it is made fake again."""
    if len(dims) != tensor.dim():
        raise InvalidUse(f"{source.name} has {tensor.dim()} dimensions, but {len(dims)} are described")
    base = tensor._base if tensor._is_view() else None
    return shapes.StatefulSymbolicContext(
        dynamic_sizes=[KINDS[dim.kind] for dim in dims],
        dynamic_strides=[shapes.DimDynamic.DYNAMIC if dim.stride else shapes.DimDynamic.INFER_STRIDE for dim in dims],
        constraint_sizes=[_constraint(dim) for dim in dims],
        constraint_strides=[None] * len(dims),
        unbacked_bounds={i: (dim.low, dim.high) for i, dim in enumerate(dims) if _bounded_unbacked(dim)} or None,
        view_base_context=None if base is None else symbolic_context(source, base, [Dim()] * base.dim()),
        tensor_source=source,
    )


def is_static(dims: Sequence[Dim]) -> bool:
    return all(dim.kind == "static" and not dim.stride for dim in dims)


def _constraint(dim: Dim) -> Constraint:
    if dim.kind != "dynamic":
        return None
    if dim.low is not None or dim.high is not None:
        low, high = 0 if dim.low is None else dim.low, int_oo if dim.high is None else dim.high
        return shapes.StrictMinMaxConstraint(warn_only=not dim.strict, vr=ValueRanges(low, high))
    return shapes.RelaxedUnspecConstraint(warn_only=False) if dim.strict else None


def _bounded_unbacked(dim: Dim) -> bool:
    return dim.kind == "unbacked" and (dim.low is not None or dim.high is not None)
