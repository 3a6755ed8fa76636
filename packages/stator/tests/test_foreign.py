"""Calls from inside modes and transforms of torch run plainly."""

from __future__ import annotations

import stator
import torch
from torch.fx.experimental.proxy_tensor import make_fx


def double(x: torch.Tensor) -> torch.Tensor:
    return x * 2


def test_vmap_over_a_compiled_function() -> None:
    compiled = stator.compile(double, backend="eager")
    assert torch.equal(torch.vmap(compiled)(torch.ones(3, 2)), torch.full((3, 2), 2.0))
    assert compiled.report.compile_count == 0


def test_make_fx_sees_the_operations() -> None:
    compiled = stator.compile(double, backend="eager")
    assert "mul" in make_fx(compiled)(torch.ones(2)).code
    assert compiled.report.compile_count == 0


def test_a_default_device_context_runs_plainly_and_leaves_nothing_behind() -> None:
    compiled = stator.compile(double, backend="eager")
    with torch.device("cpu"):
        compiled(torch.ones(2))
    assert compiled.report.compile_count == 0
    compiled(torch.ones(2))
    assert compiled.report.compile_count == 1
