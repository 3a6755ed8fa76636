"""Functions that break repeatedly and contribute nothing to a graph: called natively as a whole."""

from __future__ import annotations

import io
import sys
import time
import traceback
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FunctionType
from typing import Any

import pytest
import stator
import torch
from torch import Tensor

from integration_tests.support.counting import Counting
from integration_tests.support.oracle import assert_same


def reads_clocks(package: Any = torch) -> None:
    """Four breaks: a fourth one in a function is what makes its calls suspect. Only counting can
    show that it computes nothing: by the default it might."""
    time.perf_counter()
    time.time()
    time.perf_counter()
    time.time()


def two_clocks(table: list[Any]) -> int:
    time.perf_counter()
    table.append(len(table))
    reads_clocks()
    return len(table)


def calls_it(x: Tensor) -> Any:
    table: list[Any] = []
    y = x + 1
    n = two_clocks(table)
    return y * n, table


def raises_after_breaks(log: list[str]) -> None:
    time.perf_counter()
    log.append("one")
    reads_clocks()
    log.append("two")
    raise KeyError("three")


def catches_it(x: Tensor) -> Any:
    log: list[str] = []
    y = x + 1
    try:
        raises_after_breaks(log)
    except KeyError as error:
        log.append(str(error))
        frames = traceback.extract_tb(error.__traceback__)
        log += [f"{frame.name}: {frame.line}" for frame in frames]
    return y * 2, log


class Bar:
    """An iterable with clocks in its generator, as a progress bar has."""

    def __init__(self, items: Any) -> None:
        self.items = items
        self.shown: list[int] = []
        self.last = time.perf_counter()

    def __iter__(self) -> Iterator[Any]:
        for number, item in enumerate(self.items):
            yield item
            now = time.perf_counter()
            if now >= self.last:
                self.last = now
                self.shown.append(number)
        time.perf_counter()


def loops_over_a_bar(x: Tensor) -> Any:
    bar = Bar(range(5))
    for i in bar:
        x = x * 1.5 + i
    return x, bar.shown


def leaves_a_bar(x: Tensor) -> Any:
    bar = Bar(range(5))
    for i in bar:
        x = x + i
        if i == 3:
            break
    return x, bar.shown


class Clocked:
    @property
    def ticks(self) -> int:
        reads_clocks()
        return 3


def reads_a_property(x: Tensor) -> Tensor:
    return (x + 1) * Clocked().ticks - 1


@contextmanager
def timed(log: list[str]) -> Iterator[None]:
    time.perf_counter()
    log.append("in")
    try:
        yield
    finally:
        time.perf_counter()
        log.append("out")


def works_inside_with(x: Tensor) -> Any:
    log: list[str] = []
    with timed(log):
        y = x * 2
    return y + 1, log


class Ends:
    def __init__(self, log: list[str], name: str) -> None:
        self.log, self.name = log, name

    def __del__(self) -> None:
        self.log.append(f"end of {self.name}")


def drops_objects(log: list[str]) -> None:
    first = Ends(log, "first")
    time.perf_counter()
    del first
    log.append("after first")
    second = Ends(log, "second")
    reads_clocks()
    log.append(second.name)
    log.append("before the end")


def calls_what_drops(x: Tensor) -> Any:
    log: list[str] = []
    y = x + 1
    drops_objects(log)
    log.append("after the call")
    return y * 2, log


def works_late(x: Tensor) -> Tensor:
    for _ in range(4):
        time.perf_counter()
    return x.sin() + 1


def calls_what_works_late(x: Tensor) -> Tensor:
    return works_late(x * 2) - 1


def names_frames(log: list[str]) -> None:
    time.perf_counter()
    frame = sys._getframe()
    for _ in range(2):
        log.append(frame.f_code.co_name)
        assert frame.f_back is not None
        frame = frame.f_back
    reads_clocks()


def calls_what_names_frames(x: Tensor) -> Any:
    log: list[str] = []
    y = x + 1
    names_frames(log)
    return y * 2, log


PROGRAMS = [
    *(calls_it, catches_it, loops_over_a_bar, leaves_a_bar, reads_a_property, works_inside_with),
    *(calls_what_drops, calls_what_works_late, calls_what_names_frames),
]


@pytest.mark.parametrize("fn", PROGRAMS, ids=lambda fn: fn.__name__)
def test_a_native_call_gives_what_plain_python_gives(fn: Callable[..., Any]) -> None:
    assert_same(fn, stator.compile(fn, backend="eager"), lambda: (torch.arange(4.0),), calls=6)


SETTLED = [calls_it, catches_it, reads_a_property, calls_what_drops, calls_what_names_frames]


@pytest.mark.parametrize("fn", SETTLED, ids=lambda fn: fn.__name__)
def test_the_work_around_a_native_call_stays_captured(fn: Callable[..., Any]) -> None:
    counting = Counting()
    compiled = stator.compile(fn, backend=counting)
    for _ in range(4):
        compiled(torch.arange(4.0))
    settled = compiled.report.entry_count, counting.count
    for _ in range(4):
        compiled(torch.arange(4.0))
    assert (compiled.report.entry_count, counting.count) == settled
    assert "native-call" in [broke.reason for broke in compiled.report.breaks]
    assert compiled.report.graph_count == 2  # before and after the call


def test_the_report_names_a_native_call_once() -> None:
    compiled = stator.compile(calls_it, backend="eager")
    for _ in range(4):
        compiled(torch.arange(4.0))
    lines = [broke.detail for broke in compiled.report.breaks if broke.reason == "native-call"]
    assert lines == ["two_clocks, in which no graph gained an operation"]


def test_a_generator_that_only_breaks_costs_one_break_for_each_item() -> None:
    compiled = stator.compile(loops_over_a_bar, backend="eager")
    for _ in range(4):
        compiled(torch.arange(4.0))
    settled = compiled.report.entry_count
    for n in (5, 6, 7):
        compiled(torch.arange(float(n)))
        compiled(torch.arange(float(n)))
    assert settled <= 16
    assert compiled.report.entry_count <= settled + 6  # what depends on the size


def test_a_function_that_works_after_its_breaks_is_always_traced() -> None:
    counting = Counting()
    compiled = stator.compile(calls_what_works_late, backend=counting)
    for _ in range(6):
        compiled(torch.arange(4.0))
    assert compiled.report.op_count == 4
    assert all(broke.reason != "native-call" for broke in compiled.report.breaks)


def test_a_function_that_works_in_some_calls_is_always_traced() -> None:
    def sometimes(x: Tensor, works: bool) -> Tensor:
        reads_clocks()
        if works:
            x = x.sin()
        reads_clocks()
        return x

    def fn(x: Tensor, works: bool) -> Tensor:
        return sometimes(x * 2, works) + 1

    compiled = stator.compile(fn, backend="eager")
    for works in (True, False, False, False, False, True):
        assert torch.equal(compiled(torch.ones(3), works), fn(torch.ones(3), works))
    native = {broke.detail for broke in compiled.report.breaks if broke.reason == "native-call"}
    assert native == {"reads_clocks, in which no graph gained an operation"}


def test_other_code_in_the_place_of_a_native_function_is_traced() -> None:
    def helper(x: Tensor) -> Tensor:
        reads_clocks()
        return x

    def works(x: Tensor) -> Tensor:
        return x.sin() * 2

    def fn(x: Tensor) -> Tensor:
        return helper(x + 1) * 3

    counting = Counting()
    compiled = stator.compile(fn, backend=counting)
    for _ in range(4):
        compiled(torch.ones(3))
    assert isinstance(helper, FunctionType)
    helper.__code__ = works.__code__
    before = counting.count
    assert torch.equal(compiled(torch.ones(3)), fn(torch.ones(3)))
    assert counting.count == before + 1  # the whole function


def test_a_call_that_breaks_many_times_is_finished_natively_in_the_first_call() -> None:
    def draws(out: io.StringIO) -> int:
        print(1, file=out)
        print(2, file=out)
        for _ in range(40):
            time.perf_counter()
            print(3, file=out)
        return 40

    def fn(x: Tensor) -> Any:
        out = io.StringIO()
        y = x + 1
        n = draws(out)
        return y * n, out.getvalue()

    compiled = stator.compile(fn, backend="eager")
    for _ in range(3):
        expected, given = fn(torch.ones(2)), compiled(torch.ones(2))
        assert torch.equal(expected[0], given[0])
        assert expected[1] == given[1]
    assert compiled.report.entry_count < 30
    assert "native-call" in [broke.reason for broke in compiled.report.breaks]


def test_a_module_among_the_locals_is_not_given_up_before_it_ran() -> None:
    layer = torch.nn.Linear(3, 3)

    def prepares(layer: torch.nn.Module, x: Tensor) -> Any:
        for _ in range(20):
            time.perf_counter()
            time.time()
        return layer(x)

    def fn(x: Tensor) -> Any:
        return prepares(layer, x + 1)

    counting = Counting()
    compiled = stator.compile(fn, backend=counting)
    x = torch.ones(2, 3)
    assert torch.allclose(compiled(x), fn(x))
    assert all(broke.reason != "native-call" for broke in compiled.report.breaks)


def test_a_native_call_is_dumped_and_loaded(tmp_path: Any) -> None:
    compiled = stator.compile(calls_it, backend="eager")
    for _ in range(4):
        compiled(torch.arange(4.0))
    loaded = stator.load(stator.dump(compiled, tmp_path))
    expected, given = calls_it(torch.arange(4.0)), loaded(torch.arange(4.0))
    assert torch.equal(expected[0], given[0])
    assert expected[1] == given[1]


def test_a_reset_forgets_native_calls() -> None:
    compiled = stator.compile(calls_it, backend="eager")
    for _ in range(4):
        compiled(torch.arange(4.0))
    stator.reset()
    compiled(torch.arange(4.0))
    assert all(broke.reason != "native-call" for broke in compiled.report.breaks)


def test_a_native_call_keeps_no_object_alive() -> None:
    class Held:
        pass

    def helper(held: Held) -> None:
        reads_clocks()

    def fn(x: Tensor) -> Any:
        held = Held()
        helper(held)
        seen = weakref.ref(held)
        y = x + 1
        del held
        return y, seen() is None

    compiled = stator.compile(fn, backend="eager")
    for _ in range(5):
        assert compiled(torch.ones(2))[1]
