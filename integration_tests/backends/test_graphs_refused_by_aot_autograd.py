"""What AOTAutograd does not take, memory shared in ways that it has no word for above all, runs as
it is."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import pytest
import stator
import torch
from torch import Tensor

Program = Callable[[Tensor, Tensor, Tensor], Any]


def a_view_is_written(x: Tensor, z: Tensor, w: Tensor) -> Any:
    z.mul_(2)
    return x + 1


def a_view_gets_a_history(x: Tensor, z: Tensor, w: Tensor) -> Any:
    z.copy_(x.sum() * w.sum())
    return x + 1


def the_other_gets_a_history(x: Tensor, z: Tensor, w: Tensor) -> Any:
    x.add_(w.sum())
    return z * 2


def both_are_written(x: Tensor, z: Tensor, w: Tensor) -> Any:
    z.add_(1)
    x.mul_(2)
    return z * w.sum()


def what_backward_needs_is_written(x: Tensor, z: Tensor, w: Tensor) -> Any:
    y = (x * w.sum()).exp()
    y.add_(1)
    return y, z.t()


def a_view_is_written_without_gradients(x: Tensor, z: Tensor, w: Tensor) -> Any:
    with torch.no_grad():
        z.mul_(3)
    return (x * w.sum()).sum()


PROGRAMS: tuple[Program, ...] = (
    *(a_view_is_written, a_view_gets_a_history, the_other_gets_a_history, both_are_written),
    *(what_backward_needs_is_written, a_view_is_written_without_gradients),
)


def of_no_gradients(base: Tensor) -> Tensor:
    with torch.no_grad():
        return base[:2]


VIEWS: dict[str, Callable[[Tensor], Tensor]] = {
    "slice": lambda base: base[:2],
    "detached": torch.Tensor.detach,
    "data": lambda base: base.data,
    "another dtype": lambda base: base.view(torch.int32),
    "strided": lambda base: base.as_strided((2, 3), (3, 1), 1),
    "without gradients": of_no_gradients,
}
BASES: dict[str, Callable[[], Tensor]] = {
    "plain": lambda: torch.ones(3, 3),
    "leaf": lambda: torch.ones(3, 3, requires_grad=True),
    "computed": lambda: torch.ones(3, 3, requires_grad=True) * 1,
}


def outcome(fn: Program, view: str, base: str) -> Any:
    """What it gives and leaves, and the gradients if it has any; or what it raises."""
    x, w = BASES[base](), torch.ones(3, requires_grad=True)
    try:
        z = VIEWS[view](x)
        result = fn(x, z, w)
        seen = [
            part.tolist() for part in (*(result if isinstance(result, tuple) else (result,)), x, z)
        ]
    except RuntimeError as error:
        return type(error), str(error).splitlines()[0]
    return seen, x.requires_grad, z.requires_grad


@pytest.mark.filterwarnings("ignore:Error detected in")
@pytest.mark.parametrize("fn", PROGRAMS, ids=lambda fn: fn.__name__)
@pytest.mark.parametrize(("view", "base"), [*itertools.product(VIEWS, BASES)])
def test_a_graph_that_autograd_does_not_take_runs_as_it_is(
    fn: Program, view: str, base: str
) -> None:
    compiled = stator.compile(fn, backend="aot_eager")
    for _ in range(2):
        assert outcome(compiled, view, base) == outcome(fn, view, base)


@pytest.mark.parametrize(
    ("view", "base", "reason"),
    [("another dtype", "plain", "does not yet handle"), ("detached", "leaf", "that has gradients")],
)
def test_operators_that_run_uncompiled_are_reported(view: str, base: str, reason: str) -> None:
    compiled: Any = stator.compile(a_view_is_written, backend="aot_eager")
    assert outcome(compiled, view, base) == outcome(a_view_is_written, view, base)
    (entry,) = compiled.report.entries
    assert any(reason in each.reason for each in entry.uncompiled)
    assert "as it is: " in str(compiled.report) or "as they are: " in str(compiled.report)
    some = {1: "1 operator is"}.get(entry.compiled_count, f"{entry.compiled_count} operators are")
    assert f"{some} compiled" in str(compiled.report)

    options = {"uncompiled": "error"}
    whole: Any = stator.compile(a_view_is_written, backend="aot_eager", options=options)
    x = BASES[base]()
    with pytest.raises(stator.errors.Unsupported, match="uncompiled") as caught:
        whole(x, VIEWS[view](x), torch.ones(3, 3, requires_grad=True))
    assert caught.value.reason == "uncompiled-operator"


@pytest.mark.parametrize("view", ["detached", "data", "slice"])
def test_memory_that_gets_shared_once_sizes_are_symbols(view: str) -> None:
    def fn(x: Tensor, z: Tensor) -> Any:
        x.add_(1)
        z.mul_(2)
        return x * 3, z * 2

    def outcome_of(call: Callable[[Tensor, Tensor], Any], size: int, shared: bool) -> list[Any]:
        x = torch.arange(float(size))
        z = VIEWS[view](x) if shared else torch.ones(size)
        return [part.tolist() for part in (*call(x, z), x, z)]

    compiled = stator.compile(fn, backend="aot_eager")
    for size, shared in ((4, False), (6, False), (6, True), (5, True)):
        assert outcome_of(compiled, size, shared) == outcome_of(fn, size, shared)


def test_what_a_compiler_raises_is_still_its_failure() -> None:
    def failing(graph: Any, inputs: Any) -> Any:
        raise AssertionError("aot_autograd() does not yet handle this")

    with pytest.raises(stator.BackendFailed, match="does not yet handle this"):
        stator.compile(a_view_is_written, backend=failing)(
            torch.ones(2), torch.ones(2), torch.ones(2)
        )
