"""Functions of torch in C that branch on values of tensors, as the operators that they consist of,
where the values are known to be valid."""

from __future__ import annotations

from typing import Any

import torch

__app_level__ = True


def cov(x: Any, correction: int) -> object:
    """The covariance of rows without weights (Correlation.cpp)."""
    rows = x if x.dim() == 2 else x.view(1, -1)
    degrees = rows.size(1) - correction
    if degrees <= 0:  # which is warned of
        return torch.ops.aten.cov.default(x, correction=correction)

    mean = rows.sum(1) / rows.size(1)
    rows = rows - mean.unsqueeze(1)
    return (rows.mm(rows.t().conj()) / degrees).squeeze()


def corrcoef(x: Any) -> object:
    found = torch.cov(x)
    if found.dim() == 0:
        return found / found

    variances = found.diag()
    deviations = torch.sqrt(variances.real if variances.is_complex() else variances)
    found = found / deviations.view(-1, 1) / deviations.view(1, -1)
    if found.is_complex():
        return torch.complex(found.real.clip(-1, 1), found.imag.clip(-1, 1))
    return found.clip(-1, 1)


def pairs(x: Any, repeated: bool) -> object:
    """The combinations of two elements."""
    count = x.size(0)
    corner = torch.ones(count, count, dtype=torch.bool, device=x.device).triu(0 if repeated else 1)
    of_pairs = count * (count + 1) // 2 if repeated else count * (count - 1) // 2

    # `triu_indices` gives the same and makes a constant of the size.
    first, second = torch.nonzero_static(corner, size=of_pairs).unbind(1)
    grids = torch.meshgrid(x, x, indexing="ij")
    return torch.stack([grid[first, second] for grid in grids], 1)


def all_close(
    input: Any, other: Any, rtol: float = 1e-05, atol: float = 1e-08, equal_nan: bool = False
) -> bool:
    return bool(torch.isclose(input, other, rtol, atol, equal_nan).all())
