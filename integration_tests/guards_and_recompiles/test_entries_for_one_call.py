"""A graph that only the first call runs reaches no compiler: that call runs it as it is, and the
next one compiles.

A first call fills caches, sets attributes, takes a lock to install something, warns once. What each
call does is compiled when it happens again.
"""

# mypy: ignore-errors

from __future__ import annotations

import functools
import threading
from typing import Any

import attrs
import pytest
import stator
import torch
from torch import Tensor, nn

from integration_tests.support.counting import Counting

X = torch.linspace(-1.0, 1.0, 3)


def compiled_graphs(program: Any, plain: Any, calls: int = 4) -> list[int]:
    """The number of graphs compiled in each call; the results are those of plain Python."""
    counting, counts = Counting(), []
    compiled = stator.compile(program, backend=counting)
    for number in range(calls):
        before = counting.count
        x = X + number
        torch.testing.assert_close(compiled(x), plain(x), msg=f"call {number}")
        counts.append(counting.count - before)
    return counts


def of_two(make: Any) -> list[int]:
    return compiled_graphs(make(), make())


# -- what a first call sets ------------------------------------------------------------------------
class Configured(nn.Module):
    kind = None

    def forward(self, x: Tensor) -> Tensor:
        y = x.sin()
        if self.kind is None:
            self.kind = "regression"
        return y * 2 if self.kind == "regression" else y


class Remembering(nn.Module):
    """Computes something for each shape, and keeps the last one."""

    shape = anchors = None

    def forward(self, x: Tensor) -> Tensor:
        if self.shape != x.shape:
            self.shape, self.anchors = x.shape, torch.arange(x.shape[0]) * 2
        return x + self.anchors


class Filling(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.memo: dict[str, Any] = {}

    def forward(self, x: Tensor) -> Tensor:
        if "scale" not in self.memo:
            self.memo["scale"] = torch.ones(()) * 3
        return x * self.memo["scale"]


class Installed(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        if not getattr(self, "is_installed", False):
            self.is_installed = True
        return x.cos()


@pytest.mark.parametrize("cls", [Configured, Remembering, Filling, Installed])
def test_graph_that_its_own_effects_outdate_is_compiled_in_the_next_call(cls: type) -> None:
    assert of_two(cls) == [0, 1, 0, 0]


def test_global_that_the_first_call_sets() -> None:
    def make() -> Any:
        namespace: dict[str, Any] = {}
        text = (
            "ready = None\n"
            "def f(x):\n"
            "    global ready\n"
            "    if ready is None:\n"
            "        ready = 2\n"
            "    return x * ready\n"
        )
        exec(text, namespace)  # a module of its own
        return namespace["f"]

    assert of_two(make) == [0, 1, 0, 0]


def test_cell_that_the_first_call_sets() -> None:
    def make() -> Any:
        ready = None

        def f(x: Tensor) -> Tensor:
            nonlocal ready
            if ready is None:
                ready = "yes"
            return x * len(ready)

        return f

    assert of_two(make) == [0, 1, 0, 0]


def test_state_that_is_set_back_outdates_nothing() -> None:
    class Toggled(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.mode = "a"

        def forward(self, x: Tensor) -> Tensor:
            before, self.mode = self.mode, "b"
            y = x * len(self.mode)
            self.mode = before
            return y

    assert of_two(Toggled) == [1, 0, 0, 0]


def test_argument_that_is_a_new_dict_in_each_call_outdates_nothing() -> None:
    def program(x: Tensor, batch: dict[str, Any]) -> Tensor:
        if "scaled" not in batch:
            batch["scaled"] = x * 2
        return batch["scaled"] + 1

    counting = Counting()
    compiled = stator.compile(program, backend=counting)
    for _ in range(2):
        batch: dict[str, Any] = {}
        assert compiled(X, batch).equal(X * 2 + 1)
        assert batch["scaled"].equal(X * 2)
    assert counting.count == 1


def test_counter_is_compiled_when_it_has_changed_once() -> None:
    class Counted(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.calls = 0

        def forward(self, x: Tensor) -> Tensor:
            self.calls += 1
            return x * self.calls

    assert of_two(Counted) == [0, 1, 0, 0]


def test_text_that_changes_in_every_call_is_compiled_from_the_second_on() -> None:
    class Named(nn.Module):
        name = ""

        def forward(self, x: Tensor) -> Tensor:
            self.name += "a"
            return x * len(self.name)

    assert of_two(Named) == [0, 1, 1, 1]


def test_switch_that_each_call_turns_is_compiled_both_ways() -> None:
    class Switched(nn.Module):
        is_on = False

        def forward(self, x: Tensor) -> Tensor:
            self.is_on = not self.is_on
            return x.sin() if self.is_on else x.cos()

    assert compiled_graphs(Switched(), Switched(), 6) == [0, 1, 1, 0, 0, 0]


def test_one_graph_is_promised_and_the_first_call_sets_an_attribute() -> None:
    counting, module, plain = Counting(), Configured(), Configured()
    compiled = stator.compile(module, backend=counting, fullgraph=True)
    for _ in range(3):
        assert compiled(X).equal(plain(X))
    assert counting.count == 1
    assert module.kind == "regression"


def test_gradients_of_the_call_that_runs_uncompiled() -> None:
    module, plain = Configured(), Configured()
    compiled = stator.compile(module, backend="aot_eager")
    for _ in range(3):
        x, y = X.clone().requires_grad_(), X.clone().requires_grad_()
        compiled(x).sum().backward()
        plain(y).sum().backward()
        assert x.grad.equal(y.grad)


def test_random_numbers_of_the_call_that_runs_uncompiled() -> None:
    class Noisy(Configured):
        def forward(self, x: Tensor) -> Tensor:
            return super().forward(x + torch.rand(3)) * torch.rand(3)

    compiled, plain = stator.compile(Noisy(), backend="aot_eager"), Noisy()
    for seed in range(3):
        results = []
        for program in (compiled, plain):
            torch.manual_seed(seed)
            results.append((program(X), torch.rand(2)))
        assert all(map(torch.equal, *results))


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
def test_error_in_the_call_that_runs_uncompiled(backend: str) -> None:
    @attrs.define
    class State:
        kind: str | None = None

    def program(x: Tensor, index: Tensor, state: State) -> Tensor:
        if state.kind is None:
            state.kind = "used"
        return x[index] * 2

    compiled, state = stator.compile(program, backend=backend), State()
    with pytest.raises(IndexError):
        compiled(X, torch.tensor([7]), state)
    assert state.kind == "used"
    for _ in range(2):
        assert compiled(X, torch.tensor([1, 0]), state).equal(X[[1, 0]] * 2)


# -- breaks whose cause is gone --------------------------------------------------------------------
def caching_program(cached: Any, log: list[str]) -> Any:
    def f(x: Tensor) -> Tensor:
        y = x.sin()
        log.append("called")  # so that the cache is not filled ahead
        scale = cached(len(log) * 0)
        return y.cos() * scale

    return f


def test_graphs_around_a_break_that_does_not_return_are_compiled_as_one() -> None:
    def make() -> Any:
        return caching_program(functools.lru_cache(lambda key: key + 2), [])

    assert of_two(make) == [0, 1, 0, 0]


def test_cause_that_returns_is_compiled_with_its_break() -> None:
    cached = functools.lru_cache(lambda key: key + 2)
    log: list[str] = []
    counting = Counting()
    compiled = stator.compile(caching_program(cached, log), backend=counting)
    counts = []
    for number in range(8):
        if number % 2:
            cached.cache_clear()
        assert compiled(X).equal(X.sin().cos() * 2)
        counts.append(counting.count)
    assert len(log) == 8
    assert counts[0] == 0
    assert counts[4] == counts[-1]
    assert counts[-1] <= 3


def test_lock_for_an_installation_is_no_second_compilation() -> None:
    def make() -> Any:
        lock, installed = threading.Lock(), []

        def f(x: Tensor) -> Tensor:
            if not installed:
                with lock:
                    installed.append(True)
            return x.sin() * 2

        return f

    assert of_two(make) == [0, 1, 0, 0]


def test_state_set_while_a_lock_is_held() -> None:
    class Locked(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.lock = threading.Lock()

        def forward(self, x: Tensor) -> Tensor:
            if not getattr(self, "ready", False):
                with self.lock:
                    self.ready = True
            return x.sin() * 2

    assert of_two(Locked) == [0, 1, 0, 0]


def test_lock_that_each_call_takes_is_compiled_around_at_once() -> None:
    def make() -> Any:
        lock = threading.Lock()

        def f(x: Tensor) -> Tensor:
            y = x.sin()
            with lock:
                y = y.cos()
            return y * 2

        return f

    assert of_two(make) == [3, 0, 0, 0]


def test_continuation_behind_a_counter_is_compiled_at_once() -> None:
    class Logging(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.calls = 0

        def forward(self, x: Tensor) -> Tensor:
            self.calls += 1
            stator.graph_break()
            return x.sin() * 2

    assert of_two(Logging)[0] == 1


def test_rounds_of_a_loop_are_compiled_in_a_call_that_serves_once() -> None:
    class Looping(nn.Module):
        kind = None

        def forward(self, x: Tensor) -> Tensor:
            if self.kind is None:
                self.kind = "a"
            for _ in range(4):
                x = x.sin() * 2
                stator.graph_break()
            return x

    counts = of_two(Looping)
    assert counts[0] >= 1  # from the second round on
    assert counts[2:] == [0, 0]


# -- several compiled objects, threads, settings ---------------------------------------------------
def test_each_of_two_objects_that_share_entries_is_right() -> None:
    counting = Counting()
    modules = [Configured(), Configured()]
    compiled = [stator.compile(module, backend=counting) for module in modules]
    for _ in range(3):
        for one in compiled:
            assert one(X).equal(X.sin() * 2)
    assert counting.count == 1


def test_threads_that_make_their_first_calls_at_once() -> None:
    counting, module = Counting(), Configured()
    compiled = stator.compile(module, backend=counting)
    start, results = threading.Barrier(4), []

    def call() -> None:
        start.wait()
        for _ in range(3):
            results.append(compiled(X))

    threads = [threading.Thread(target=call) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(results) == 12
    assert all(result.equal(X.sin() * 2) for result in results)
    assert counting.count == 1


def test_backend_that_does_not_compile_needs_no_second_trace() -> None:
    module = Configured()
    compiled = stator.compile(module, backend="eager")
    compiled(X)
    assert compiled.report.graph_count == 1


def test_reset_begins_anew() -> None:
    counting, module = Counting(), Configured()
    compiled = stator.compile(module, backend=counting)
    for _ in range(2):
        compiled(X)
    stator.reset()
    module.kind = None
    for _ in range(2):
        compiled(X)
    assert counting.count == 2
