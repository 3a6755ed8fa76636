"""A profile shows what runs without one: a profiler outside of a compiled function changes neither
its entries nor its graphs, and ranges that are marked in it are left out."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import Any

import pytest
import stator
import torch
from torch import Tensor
from torch.profiler import ProfilerActivity, profile, record_function

from integration_tests.support.counting import Counting
from integration_tests.support.oracle import assert_same

autograd: Any = torch.autograd
X = torch.linspace(-1, 1, 3)
RANGE = record_function("one for all calls")
PROFILERS: dict[str, Callable[[], Any]] = {
    "of torch.profiler": lambda: profile(activities=[ProfilerActivity.CPU]),
    "with modules": lambda: profile(activities=[ProfilerActivity.CPU], with_modules=True),
    "with memory": lambda: profile(activities=[ProfilerActivity.CPU], profile_memory=True),
    "of autograd": torch.autograd.profiler.profile,
}


def ranges(x: Tensor) -> Tensor:
    with record_function("outer"):
        y = x * 2
        with torch.autograd.profiler.record_function("inner", "arguments"):
            return y + 1


@record_function("decorated")
def marked(x: Tensor) -> Tensor:
    return x * 2


def a_marked_function(x: Tensor) -> Tensor:
    return marked(x) + marked(x + 1)


def a_range_from_outside(x: Tensor) -> Tensor:
    with RANGE:
        return x * 2


def a_range_that_is_left_by_an_error(x: Tensor) -> Any:
    try:
        with record_function("left"):
            y = x * 2
            raise IndexError("no more")
    except IndexError as error:
        return y, error.args


def a_range_without_a_with(x: Tensor) -> Any:
    marker: Any = record_function("by hand")
    entered = marker.__enter__()
    y = x * 2
    marker.__exit__(None, None, None)
    return y, entered is marker, marker.name


CAPTURED = (
    ranges,
    a_marked_function,
    a_range_from_outside,
    a_range_that_is_left_by_an_error,
    a_range_without_a_with,
)


def counts(compiled: Any) -> tuple[int, int]:
    return len(compiled.report.entries), len(compiled.report.breaks)


@pytest.mark.parametrize("program", CAPTURED, ids=lambda each: each.__name__)
@pytest.mark.parametrize("is_first", [False, True], ids=["later", "at the first call"])
def test_ranges_are_captured_with_a_profiler_and_without(
    program: Callable[..., Any], is_first: bool
) -> None:
    backend = Counting()
    compiled = stator.compile(program, backend=backend, fullgraph=True)

    for profiled in (is_first, not is_first, is_first):
        with profile(activities=[ProfilerActivity.CPU]) if profiled else contextlib.nullcontext():
            assert_same(program, compiled, lambda: (X.clone(),), calls=1)

    assert backend.count == 1
    assert counts(compiled) == (1, 0)


@pytest.mark.parametrize("profiler", PROFILERS.values(), ids=PROFILERS)
def test_a_step_of_an_optimizer_is_the_same_under_a_profiler(profiler: Callable[[], Any]) -> None:
    linear = torch.nn.Linear(2, 2)
    optimizer = torch.optim.SGD(linear.parameters(), momentum=0.9)
    linear(torch.ones(1, 2)).sum().backward()
    compiled: Any = stator.compile(optimizer.step, backend="eager")
    for _ in range(2):
        compiled()
    before = counts(compiled)

    with profiler() as profiled:
        compiled()

    assert counts(compiled) == before
    assert not before[1]
    assert any("aten::" in event.key for event in profiled.key_averages())


def test_a_range_around_a_break_ends_nothing_that_was_left_out() -> None:
    def program(x: Tensor, shown: list[str]) -> Tensor:
        with record_function("around"):
            y = x * 2
            shown.append(repr(y))
            return y + 1

    compiled: Any = stator.compile(program, backend="eager")
    for profiled in (False, True, False):
        with profile(activities=[ProfilerActivity.CPU]) if profiled else contextlib.nullcontext():
            assert_same(program, compiled, lambda: (X.clone(), []), calls=1)
    assert len(compiled.report.breaks) == 1


def test_a_range_that_a_compiled_function_has_left_can_be_used_in_plain_python() -> None:
    marker = record_function("used in both")

    def program(x: Tensor) -> Tensor:
        with marker:
            return x * 2

    compiled: Any = stator.compile(program, backend="eager", fullgraph=True)
    for _ in range(2):
        compiled(X)
        assert marker.run_callbacks_on_exit

    with profile(activities=[ProfilerActivity.CPU]) as profiled:
        program(X)
    assert "used in both" in [event.key for event in profiled.key_averages()]


def test_a_profile_that_the_function_itself_takes_has_its_ranges() -> None:
    def within(x: Tensor) -> Tensor:
        with record_function("mine"):
            return x * 2

    def program(x: Tensor) -> tuple[Tensor, bool]:
        with profile(activities=[ProfilerActivity.CPU]) as profiled:
            y = within(x)
        return y, "mine" in [event.key for event in profiled.key_averages()]

    compiled: Any = stator.compile(program, backend="eager")
    assert_same(program, compiled, lambda: (X.clone(),))


def test_a_program_that_asks_for_the_profiler_gets_the_answer() -> None:
    def program(x: Tensor) -> Tensor:
        return x + 1 if autograd._profiler_enabled() else x + 2

    compiled: Any = stator.compile(program, backend="eager", fullgraph=True)
    assert_same(program, compiled, lambda: (X.clone(),))
    with profile(activities=[ProfilerActivity.CPU]):
        assert_same(program, compiled, lambda: (X.clone(),))
    assert_same(program, compiled, lambda: (X.clone(),))
    assert counts(compiled) == (2, 0)
