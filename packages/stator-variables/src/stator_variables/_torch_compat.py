"""All that depends on the release of torch: each item with its reason, and what others have.

The other modules of this package use these names and compare no versions. What is listed here is
on `docs/reference/versions.md`, too.
"""

from __future__ import annotations

from typing import Any

import torch

_C: Any = torch._C


def _with_setter(names: str, prefix: str = "_set_") -> tuple[str, ...]:
    """Return the names whose setter this release has."""
    return tuple(name for name in names.split() if hasattr(_C, f"{prefix}{name}"))


SETTINGS = _with_setter(
    "cublaslt_prefer_grouped_gemm native_aot_enabled native_aot_unconditional_masked"
)
"""Settings `_get_NAME` and `_set_NAME` that 2.13 does not have; the first is in 2.14, the others
are in 2.15."""

ATTENTION = _with_setter("fa4", "_set_sdp_use_")
"""Kernels of attention that can be switched on and off: FlashAttention 4 since 2.15."""

QUERIES = """_cuda_tunableop_wildcard_fallback_is_enabled _get_symbolize_mode
_is_cudnn_attention_decode_disabled"""
"""Queries of state that 2.15 adds; what sets it is the environment, or no function of torch's."""
