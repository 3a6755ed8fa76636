"""Tensor methods that are made of others, as plain Python."""

from __future__ import annotations

from typing import Any


def tolist(tensor: Any) -> Any:
    if tensor.dim() == 0:
        return tensor.item()
    return [tolist(row) for row in tensor.unbind(0)]
