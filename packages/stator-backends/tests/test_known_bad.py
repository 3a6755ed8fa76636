"""Backends with one fault each: the kit has to notice every one of them."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from typing import Any

import pytest
import torch
from stator_backends import Backend, eager
from stator_backends.conformance import BackendConformance


def _around(change: Callable[[Callable[..., Any]], Callable[..., Any]]) -> Backend:
    def backend(gm: torch.fx.GraphModule, example_inputs: Sequence[Any]) -> Any:
        return change(gm.forward)

    return backend


def _drops_gradients(forward: Callable[..., Any]) -> Callable[..., Any]:
    return torch.no_grad()(forward)


def _drops_writes(forward: Callable[..., Any]) -> Callable[..., Any]:
    def call(*args: Any) -> Any:
        return forward(*[arg.clone() if isinstance(arg, torch.Tensor) else arg for arg in args])

    return call


def _loses_constants(forward: Callable[..., Any]) -> Callable[..., Any]:
    return lambda *args: tuple(value for value in forward(*args) if value is not None)


def _is_slightly_off(forward: Callable[..., Any]) -> Callable[..., Any]:
    return lambda *args: tuple(
        v * 1.01 if isinstance(v, torch.Tensor) else v for v in forward(*args)
    )


def _works_once(forward: Callable[..., Any]) -> Callable[..., Any]:
    left = [forward]

    def call(*args: Any) -> Any:
        return left.pop()(*args)

    return call


def _always_contiguous(forward: Callable[..., Any]) -> Callable[..., Any]:
    return lambda *args: tuple(
        v.contiguous() if isinstance(v, torch.Tensor) else v for v in forward(*args)
    )


def _bakes_in_the_sizes(gm: torch.fx.GraphModule, example_inputs: Sequence[Any]) -> Any:
    sizes = [
        value.node.hint if isinstance(value, torch.SymInt) else None for value in example_inputs
    ]
    return lambda *args: gm.forward(
        *[arg if size is None else size for arg, size in zip(args, sizes, strict=True)]
    )


def _draws_at_run_time(forward: Callable[..., Any]) -> Callable[..., Any]:
    return lambda *args: tuple(
        v + torch.rand(()) if isinstance(v, torch.Tensor) else v for v in forward(*args)
    )


def failures(backend: Backend) -> set[str]:
    """The tests of the kit that this backend fails."""
    kit, failed = BackendConformance(), set()
    for name, test in inspect.getmembers(kit, inspect.ismethod):
        if name.startswith("test_") and "backend" in inspect.signature(test).parameters:
            try:
                test(backend)
            except (Exception, pytest.fail.Exception):
                failed.add(name)
    return failed


def test_kit_passes_the_reference() -> None:
    assert failures(eager) == set()


@pytest.mark.parametrize(
    ("backend", "noticed_by"),
    [
        (_around(_drops_gradients), "test_properties_of_eager_execution_are_kept"),
        (_around(_drops_writes), "test_properties_of_eager_execution_are_kept"),
        (_around(_loses_constants), "test_properties_of_eager_execution_are_kept"),
        (_around(_is_slightly_off), "test_properties_of_eager_execution_are_kept"),
        (_around(_works_once), "test_properties_of_eager_execution_are_kept"),
        (_around(_always_contiguous), "test_properties_of_eager_execution_are_kept"),
        (_around(_draws_at_run_time), "test_properties_of_eager_execution_are_kept"),
        (_bakes_in_the_sizes, "test_properties_of_eager_execution_are_kept"),
        (lambda gm, inputs: None, "test_graph_without_inputs"),
    ],
)
def test_kit_notices(backend: Backend, noticed_by: str) -> None:
    assert noticed_by in failures(backend)


def test_weakened_kit_fails() -> None:
    class Weak(BackendConformance):
        def test_graph_without_inputs(self, backend: Backend) -> None:
            pass

    with pytest.raises(
        AssertionError, match="test_graph_without_inputs replaces a test of BackendConformance"
    ):
        Weak().test_nothing_weakened()


def test_xfail_with_a_reason_is_no_weakening() -> None:
    class Honest(BackendConformance):
        @pytest.mark.xfail(strict=True, reason="no kernel for it yet")
        def test_graph_without_inputs(self, backend: Backend) -> None:
            super().test_graph_without_inputs(backend)

    Honest().test_nothing_weakened()
