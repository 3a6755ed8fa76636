"""Backends by the names that torch has for them, default backends, and what can be listed."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from typing import Any

import pytest
import stator
import torch
import torch._dynamo

from integration_tests.support.counting import Counting

X = torch.linspace(-1.0, 2.0, 6)
compiler: Any = torch.compiler
dynamo: Any = torch._dynamo

RUNNING = [
    *("ts", "aot_ts", "cudagraphs", "eager_noexcept", "eager_debug", "pre_dispatch_eager"),
    *("aot_eager_default_partitioner", "aot_eager_decomp_partition_crossref", "invoke_subgraph"),
]
MISSING = {"tvm": "apache-tvm", "openxla": "torch_xla", "openxla_eval": "torch_xla"}


def plus(x: torch.Tensor) -> torch.Tensor:
    return x.sin() + 1


@pytest.fixture(autouse=True)
def default_backends() -> Iterator[None]:
    yield
    stator.set_default_backend(None)
    compiler.set_default_backend(None)


@pytest.mark.parametrize("name", RUNNING)
def test_backend_of_torch_runs(name: str) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert torch.allclose(stator.compile(plus, backend=name)(X), plus(X))


@pytest.mark.parametrize("name", MISSING)
def test_backend_whose_compiler_is_not_installed(name: str) -> None:
    with pytest.raises(stator.BackendFailed, match=MISSING[name]):
        stator.compile(plus, backend=name)(X)


def test_backend_that_is_registered_with_torch() -> None:
    counting = Counting()
    name = "counting_backend_of_a_test"

    def counted(graph: Any, inputs: Any) -> Any:
        return counting(graph, inputs)

    dynamo.register_backend(counted, name=name)
    try:
        assert name in stator.list_backends()
        assert torch.equal(stator.compile(plus, backend=name)(X), plus(X))
    finally:
        registry: Any = torch._dynamo.backends.registry
        del registry._BACKENDS[name], registry._COMPILER_FNS[name]
    assert counting.count == 1


def test_unknown_backend_is_rejected() -> None:
    with pytest.raises(stator.UnknownBackend, match="nope"):
        stator.compile(plus, backend="nope")


def test_backends_are_listed_by_tags() -> None:
    assert {"eager", "inductor", "aot_eager", "ts"} <= {*stator.list_backends()}
    listed = stator.list_backends(exclude_tags=("debug", "experimental"))
    assert {*compiler.list_backends()} <= {*listed}
    assert not {"eager", "aot_eager", "ts"} & {*listed}


def test_modes_and_options_are_those_of_inductor() -> None:
    assert {"default", "reduce-overhead", "max-autotune"} <= {*stator.list_modes()}
    assert "max_autotune" in stator.list_options()
    assert "triton.cudagraphs" in stator.list_options()


def test_default_backend() -> None:
    ours, of_torch = Counting(), Counting()
    compiler.set_default_backend(of_torch)
    stator.compile(plus)(X)
    stator.set_default_backend(ours)
    stator.compile(plus)(X)
    stator.compile(plus, backend=None)(X.double())
    assert (of_torch.count, ours.count) == (1, 2)
    with pytest.raises(stator.UnknownBackend):
        stator.set_default_backend("nope")
