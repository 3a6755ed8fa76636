"""Services around compilation: cache artifacts, leaf functions, a check of what works, and the
callbacks that are registered with torch."""

from __future__ import annotations

import pathlib
from typing import Any

import pytest
import stator
import torch
import torch._dynamo
import torch._dynamo.callback
from torch._inductor.utils import fresh_cache

X = torch.linspace(-1.0, 2.0, 6)
callbacks: Any = torch._dynamo.callback


def plus(x: torch.Tensor) -> torch.Tensor:
    return x.sin() + 1


def test_callbacks_that_are_registered_with_torch_are_called() -> None:
    found: list[str] = []
    callbacks.on_compile_start(lambda args: found.append(f"start {args.callback_trigger.name}"))
    callbacks.on_compile_end(lambda args: found.append("end"))
    try:
        compiled = stator.compile(plus, backend="eager")
        for _ in range(2):
            compiled(X)
    finally:
        callbacks.callback_handler.clear()
    assert found == ["start DYNAMO", "end"]


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
def test_leaf_function_is_one_node(backend: str) -> None:
    ran: list[tuple[int, ...]] = []

    @stator.leaf_function
    def observed(x: torch.Tensor) -> Any:
        ran.append(tuple(x.shape))
        return (x.cos() if float(x.sum()) > 0 else x.sin(),)

    def observed_fake(x: torch.Tensor) -> Any:
        return (torch.empty_like(x),)

    observed.register_fake(observed_fake)
    compiled = stator.compile(lambda x: observed(x * 2)[0] + 1, backend=backend, fullgraph=True)
    for x in (X, -X):
        expected = observed(x * 2)[0] + 1
        ran.clear()
        assert torch.equal(compiled(x), expected)
        assert ran == [(6,)]


def test_support_is_checked_by_a_small_function() -> None:
    assert stator.is_supported("eager")
    assert stator.is_supported("aot_eager")
    assert not stator.is_supported("tvm")
    assert not stator.is_supported("nope")


@pytest.mark.slow
def test_cache_artifacts_travel_to_an_empty_cache(tmp_path: pathlib.Path) -> None:
    def compiled_in_new_cache(load: bytes | None) -> tuple[Any, Any]:
        with fresh_cache(dir=str(tmp_path)):
            info = None if load is None else stator.load_cache_artifacts(load)
            stator.reset()
            torch._dynamo.utils.counters.clear()
            assert torch.allclose(stator.compile(plus)(X), plus(X))
            hits = torch._dynamo.utils.counters["inductor"]["fxgraph_cache_hit"]
            return (stator.save_cache_artifacts(), info) if load is None else (hits, info)

    (artifacts, saved), _ = compiled_in_new_cache(None)
    assert saved.inductor_artifacts
    hits, loaded = compiled_in_new_cache(artifacts)
    assert loaded.inductor_artifacts == saved.inductor_artifacts
    assert hits == 1
