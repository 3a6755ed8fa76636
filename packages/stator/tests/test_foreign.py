"""Calls from inside dispatch modes and transforms of torch run plainly; function modes are
understood."""

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


def test_a_default_device_has_an_entry_of_its_own() -> None:
    compiled = stator.compile(double, backend="eager")
    with torch.device("cpu"):
        compiled(torch.ones(2))
        assert torch._C._len_torch_function_stack() == 1
    assert compiled.report.compile_count == 1
    compiled(torch.ones(2))
    assert compiled.report.compile_count == 2
