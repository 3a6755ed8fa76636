"""What changes the meaning of tensor operations from outside is guarded; back in the old state the
guard holds."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from stator_guards import GlobalState, Guard, ParameterSource, TensorMatch, compile_guards  # noqa: E402
from torch.overrides import BaseTorchFunctionMode  # noqa: E402
from torch.utils._python_dispatch import TorchDispatchMode  # noqa: E402


@contextlib.contextmanager
def default_dtype() -> Iterator[None]:
    torch.set_default_dtype(torch.float64)
    try:
        yield
    finally:
        torch.set_default_dtype(torch.float32)


@contextlib.contextmanager
def deterministic() -> Iterator[None]:
    torch.use_deterministic_algorithms(True)
    try:
        yield
    finally:
        torch.use_deterministic_algorithms(False)


@contextlib.contextmanager
def functorch_layer() -> Iterator[None]:
    torch._C._functorch._vmap_increment_nesting(2, "error")
    try:
        yield
    finally:
        torch._C._functorch._vmap_decrement_nesting()


@contextlib.contextmanager
def nested(*contexts: Any) -> Iterator[None]:
    with contextlib.ExitStack() as stack:
        for context in contexts:
            stack.enter_context(context)
        yield


def graph() -> Any:
    """A hook that AOTAutograd compiles into its graphs."""
    return torch.fx.symbolic_trace(torch.nn.Identity())


STATES: dict[str, Callable[[], Any]] = {
    "no_grad": torch.no_grad,
    "inference mode": torch.inference_mode,
    "autocast": lambda: torch.autocast("cpu", dtype=torch.bfloat16),
    "default device": lambda: torch.device("meta"),
    "function mode": BaseTorchFunctionMode,
    "dispatch mode": TorchDispatchMode,
    "functorch": functorch_layer,
    "saved tensor hooks": lambda: torch.autograd.graph.saved_tensors_hooks(graph(), graph()),
    "forward AD": torch.autograd.forward_ad.dual_level,
    "default dtype": default_dtype,
    "deterministic": deterministic,
}


@pytest.mark.parametrize("enter", STATES.values(), ids=STATES)
def test_each_state_misses_both_ways(enter: Callable[[], Any]) -> None:
    outside = compile_guards([Guard(None, GlobalState())], [])
    assert outside.check()
    assert outside.mirror()
    assert outside.explain() == []
    with enter():
        assert not outside.check()
        assert not outside.mirror()
        (failure,) = outside.explain()
        assert failure.found
        inside = compile_guards([Guard(None, GlobalState())], [])
        assert inside.check()
        assert inside.mirror()
    assert outside.check()
    assert not inside.check()
    assert not inside.mirror()


def test_hooks_that_are_called_when_a_graph_runs_are_no_state() -> None:
    guard_set = compile_guards([Guard(None, GlobalState())], [])
    with torch.autograd.graph.saved_tensors_hooks(lambda t: t, lambda t: t):
        assert guard_set.check()
        assert guard_set.mirror()
        assert compile_guards([Guard(None, GlobalState())], []).check()


@pytest.mark.parametrize("state", STATES)
def test_hooks_for_saved_tensors_are_no_state_where_none_is_saved(state: str) -> None:
    guards = [Guard(None, GlobalState(saves_tensors=False))]
    outside = compile_guards(guards, [])
    assert "hooks" not in outside.source
    assert outside.check()
    with STATES[state]():
        inside = compile_guards([Guard(None, GlobalState(saves_tensors=False))], [])
        expected = state == "saved tensor hooks"
        assert outside.check() is outside.mirror() is expected
        assert bool(outside.explain()) is not expected
        assert inside.check()
        assert inside.mirror()
    assert inside.check() is inside.mirror() is expected


@pytest.mark.parametrize("enter", STATES.values(), ids=STATES)
@pytest.mark.parametrize("kind", ["plain", "parameter", "inference", "sparse", "subclass"])
def test_each_state_misses_where_tensors_are_checked_too(
    enter: Callable[[], Any], kind: str
) -> None:
    class Subclass(torch.Tensor): ...

    with torch.inference_mode(kind == "inference"):
        tensor = torch.ones(2, 2)
    made = {"parameter": torch.nn.Parameter, "sparse": torch.Tensor.to_sparse, "subclass": Subclass}
    tensor = made.get(kind, lambda same: same)(tensor)
    guard_set = compile_guards(
        [Guard(None, GlobalState()), Guard(ParameterSource("x"), TensorMatch(tensor))], ["x"]
    )
    for _ in range(3):
        assert guard_set.check(tensor)
        with enter():
            assert not guard_set.check(tensor)
    assert guard_set.check(tensor)


def test_inference_mode_is_told_from_no_grad() -> None:
    with torch.no_grad():
        guard_set = compile_guards([Guard(None, GlobalState())], [])
    with torch.inference_mode():
        assert not guard_set.check()


def test_two_default_devices_are_told_apart() -> None:
    with torch.device("meta"):
        guard_set = compile_guards([Guard(None, GlobalState())], [])
    with torch.device("cpu"):
        assert not guard_set.check()
    with torch.device("meta"):
        assert guard_set.check()


def test_one_set_needs_one_guard_only() -> None:
    assert compile_guards([Guard(None, GlobalState())] * 3, []).check()
