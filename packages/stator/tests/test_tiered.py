"""Tiers: graphs run as they are while another thread compiles them."""

from __future__ import annotations

import multiprocessing
import pathlib
import threading
import warnings
import weakref
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import attrs
import pytest
import stator
import torch
from stator._regions._compilations import COMPILATIONS
from stator_backends import BackendSpec, aot_eager
from torch import Tensor

X = torch.arange(6.0).reshape(2, 3)


@attrs.define(eq=False)
class Gated:
    """A backend that compiles when it is released, and counts."""

    inner: Any = aot_eager
    spec: BackendSpec = attrs.field(factory=lambda: BackendSpec("gated"))
    released: threading.Event = attrs.field(factory=threading.Event)
    began: threading.Event = attrs.field(factory=threading.Event)
    count: int = 0
    threads: list[int] = attrs.field(factory=list)
    runs: list[int] = attrs.field(factory=list)

    def __call__(self, gm: Any, inputs: Any) -> Any:
        self.began.set()
        assert self.released.wait(20)
        self.count += 1
        self.threads.append(threading.get_ident())
        compiled = self.inner(gm, inputs)

        def run(*args: Any) -> Any:
            self.runs.append(len(args))
            return compiled(*args)

        return run


@pytest.fixture
def gated() -> Iterator[Gated]:
    made = Gated()
    yield made
    made.released.set()
    assert COMPILATIONS.wait(None, 20)


def tiered(fn: Any, backend: Any, **options: Any) -> Any:
    return stator.compile(fn, backend=backend, options={"tiered": True, **options})


def release(backend: Gated, compiled: Any) -> None:
    backend.released.set()
    assert stator.wait(compiled, 20)


def test_first_call_does_not_wait_and_later_ones_run_compiled_code(gated: Gated) -> None:
    compiled = tiered(lambda x: x.sin() * 2, gated)
    expected = X.sin() * 2
    assert torch.equal(compiled(X), expected)
    assert torch.equal(compiled(X), expected)
    assert not gated.runs
    assert not stator.wait(compiled, 0.01)

    release(gated, compiled)
    assert torch.equal(compiled(X), expected)
    assert torch.equal(compiled(X), expected)
    assert (gated.count, gated.runs) == (1, [1, 1])
    assert gated.threads != [threading.get_ident()]
    assert compiled.report.entry_count == 1


def test_report_shows_the_tier_and_the_time_of_the_change(gated: Gated) -> None:
    compiled = tiered(lambda x: x + 1, gated)
    compiled(X)
    assert gated.began.wait(20)
    assert "runs as it is while gated compiles it" in str(compiled.report)
    release(gated, compiled)
    assert "changed to gated after" in str(compiled.report)
    (entry,) = compiled.report.data()["entries"]
    tier = entry["tier"]
    assert tier["state"] == "compiled"
    assert tier["changed"] >= tier["began"] + tier["seconds"] > tier["began"]


def test_without_the_option_the_call_compiles_and_no_thread_is_made() -> None:
    backend = Gated()
    backend.released.set()
    compiled = stator.compile(lambda x: x + 1, backend=backend)
    assert torch.equal(compiled(X), X + 1)
    assert backend.threads == [threading.get_ident()]
    assert compiled.report.entries[0].tier is None
    assert COMPILATIONS.thread is None


def test_backward_of_a_call_that_began_eagerly_is_eager(gated: Gated) -> None:
    weight = torch.ones(3, requires_grad=True)

    def loss(x: Tensor) -> Tensor:
        return (x * weight).tanh().sum()

    def gradient(run: Any) -> Tensor:
        (found,) = torch.autograd.grad(run(X), weight)
        return found

    compiled, expected = tiered(loss, gated), gradient(loss)
    before = compiled(X)
    assert torch.allclose(gradient(compiled), expected)
    release(gated, compiled)
    assert torch.allclose(torch.autograd.grad(before, weight)[0], expected)
    assert torch.allclose(gradient(compiled), expected)
    assert gated.runs


def test_training_is_the_same_over_the_change(gated: Gated) -> None:
    def train(compile: Any) -> list[float]:
        torch.manual_seed(0)
        model = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.Tanh(), torch.nn.Linear(4, 1))
        optimizer = torch.optim.SGD(model.parameters(), 0.1)
        run, losses = compile(model), []
        for step in range(6):
            optimizer.zero_grad()
            loss = run(X).square().mean()
            if step == 3 and run is not model:
                release(gated, run)  # between the forward and its backward
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
        return losses

    expected = train(lambda model: model)
    assert train(lambda model: tiered(model, gated)) == pytest.approx(expected)
    assert gated.runs


def test_backward_is_compiled_in_the_thread_too() -> None:
    threads: list[int] = []

    def compiler(gm: Any, inputs: Any) -> Any:
        threads.append(threading.get_ident())
        return aot_eager.compilers[0](gm, inputs)

    backend = attrs.evolve(aot_eager, compilers=(compiler, compiler))
    compiled = tiered(lambda x: (x * x).sin().sum(), backend)
    x = X.clone().requires_grad_()
    compiled(x)
    assert stator.wait(compiled, 20)
    assert len(threads) == 2
    compiled(x).backward()
    assert torch.allclose(x.grad if x.grad is not None else X, 2 * X * (X * X).cos())
    assert len(threads) == 2
    assert threading.get_ident() not in threads


def test_call_that_needs_a_trace_meanwhile_runs_plainly(gated: Gated) -> None:
    compiled = tiered(lambda x: x.cos() + x.dim(), gated)
    compiled(X)
    assert gated.began.wait(20)
    assert torch.equal(compiled(X[0]), X[0].cos() + 1)
    assert compiled.report.entry_count == 1
    release(gated, compiled)
    assert torch.equal(compiled(X[0]), X[0].cos() + 1)
    assert stator.wait(compiled, 20)
    assert torch.equal(compiled(X[0]), X[0].cos() + 1)
    assert compiled.report.entry_count == gated.count == 2


def test_continuations_of_the_first_call_are_traced_in_it(gated: Gated) -> None:
    def fn(x: Tensor) -> Tensor:
        y = x.sin() * 2
        stator.graph_break()
        return y.cos() + 1

    compiled = tiered(fn, gated)
    assert torch.equal(compiled(X), fn(X))
    assert compiled.report.entry_count == 2
    release(gated, compiled)
    for _ in range(20):  # more than the runs of an entry that are counted
        assert torch.equal(compiled(X), fn(X))
    assert gated.count == 2
    assert gated.runs == [1] * 40


def test_equal_graphs_are_compiled_once(gated: Gated) -> None:
    def fn(x: Tensor) -> Tensor:
        for _ in range(3):
            x = (x * 2).sin().cos()
            stator.graph_break()
        return x

    compiled = tiered(fn, gated)
    assert torch.equal(compiled(X), fn(X))
    release(gated, compiled)
    assert torch.equal(compiled(X), fn(X))
    assert gated.count == 1
    assert len(gated.runs) == 3


def test_failure_leaves_the_eager_tier_with_one_warning() -> None:
    def failing(gm: Any, inputs: Any) -> Any:
        raise ValueError("no such instruction")

    compiled = tiered(lambda x: x * 3, failing)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        assert torch.equal(compiled(X), X * 3)
        assert stator.wait(compiled, 20)
        for _ in range(3):
            assert torch.equal(compiled(X), X * 3)
    (warning,) = caught
    assert "no such instruction" in str(warning.message)
    assert "stays eager, as failing failed" in str(compiled.report)


def test_failure_is_shown_by_a_later_call() -> None:
    def failing(gm: Any, inputs: Any) -> Any:
        raise ValueError("no such instruction")

    compiled = tiered(lambda x: x * 3, failing)
    compiled(X)
    assert COMPILATIONS.wait(None, 20)
    with pytest.warns(UserWarning, match="no such instruction"):
        compiled(X)
    compiled(X)


def test_inputs_may_be_changed_while_they_are_compiled_for(gated: Gated) -> None:
    def fn(x: Tensor, y: Tensor) -> Tensor:
        return x @ y + x.shape[0]

    compiled = tiered(fn, gated)
    x, y = torch.randn(2, 3), torch.randn(3, 5)
    compiled(x, y)
    x.t_()
    y.resize_(1)
    release(gated, compiled)
    x, y = torch.randn(2, 3), torch.randn(3, 5)
    assert torch.allclose(compiled(x, y), fn(x, y))
    assert gated.runs == [2]


def test_inputs_do_not_live_longer_for_it(gated: Gated) -> None:
    compiled = tiered(lambda x: x * 2 + 1, gated)
    x = torch.randn(3)
    compiled(x)
    reference = weakref.ref(x)
    del x
    assert reference() is None


def test_inputs_that_share_memory_are_guarded_from_the_start(gated: Gated) -> None:
    def fn(x: Tensor, y: Tensor) -> Tensor:
        x.add_(1)
        return x + y

    def both(x: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
        return compiled(x, y), x

    compiled = tiered(fn, gated)
    for _ in range(2):
        assert torch.equal(compiled(X.clone(), X.clone()), X + 1 + X)
        shared = X.clone()
        assert torch.equal(compiled(shared, shared), 2 * (X + 1))
        release(gated, compiled)


def test_random_numbers_are_those_of_the_program(gated: Gated) -> None:
    def drawing(gm: Any, inputs: Any) -> Any:
        torch.nn.functional.dropout(X, 0.5)
        return aot_eager(gm, inputs)

    def numbers(run: Any) -> list[Tensor]:
        torch.manual_seed(3)
        found = [run(X)]
        found.append(torch.rand(2))
        if run is compiled:
            release(gated, compiled)
        return [*found, torch.rand(2), run(X), torch.rand(2)]

    def noisy(x: Tensor) -> Tensor:
        return x + torch.rand(3)

    compiled = tiered(noisy, gated)
    assert all(map(torch.equal, numbers(compiled), numbers(noisy)))


@pytest.mark.parametrize("mode", [torch.no_grad, torch.enable_grad, torch.inference_mode])
def test_modes_of_the_call_are_those_of_the_thread(gated: Gated, mode: Any) -> None:
    weight = torch.ones(3, requires_grad=True)
    compiled = tiered(lambda x: x * weight, gated)
    with mode():
        expected = (X * weight).requires_grad
        compiled(X)
    release(gated, compiled)
    with mode():
        found = compiled(X)
    assert gated.runs
    assert found.requires_grad == expected
    assert found.is_inference() == (mode is torch.inference_mode)


def test_modes_that_the_program_sets_inside(gated: Gated) -> None:
    def fn(x: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
        with torch.autocast("cpu", torch.bfloat16):
            z = x @ y
        with torch.no_grad():
            return z, y * 2

    compiled = tiered(fn, gated)
    y = torch.ones(3, 3, requires_grad=True)
    for _ in range(2):
        found, expected = compiled(X, y), fn(X, y)
        assert all(map(torch.equal, found, expected))
        assert [each.dtype for each in found] == [each.dtype for each in expected]
        assert [each.requires_grad for each in found] == [True, False]
        release(gated, compiled)
    assert gated.runs == [2]


def test_settings_of_the_thread_of_the_call_hold_for_its_compilation() -> None:
    from torch._functorch import config

    seen: list[bool] = []

    def reading(gm: Any, inputs: Any) -> Any:
        seen.append(config.treat_parameters_as_free_to_save)
        return aot_eager(gm, inputs)

    with config.patch(treat_parameters_as_free_to_save=False):
        compiled = tiered(lambda x: x - 1, reading)
        compiled(X)
    assert stator.wait(compiled, 20)
    assert seen == [False]


def test_compilation_under_another_default_dtype_is_made_again(gated: Gated) -> None:
    def fn(x: Tensor) -> Tensor:
        return x + torch.ones(3)

    compiled = tiered(fn, gated)
    compiled(X)
    assert gated.began.wait(20)
    torch.set_default_dtype(torch.float64)
    try:
        release(gated, compiled)
    finally:
        torch.set_default_dtype(torch.float32)
    assert "the next call compiles it again: Outdated" in str(compiled.report)
    for _ in range(2):
        assert torch.equal(compiled(X), fn(X))
        assert stator.wait(compiled, 20)
    assert (gated.count, gated.runs) == (2, [1])


def test_sizes_that_the_backend_specializes_on_are_guarded_afterwards(gated: Gated) -> None:
    def specializing(gm: Any, inputs: Any) -> Any:
        sizes = [value for value in inputs if isinstance(value, torch.SymInt)]
        gated.runs.append(int(sizes[0]))
        return aot_eager(gm, inputs)

    def fn(x: Tensor) -> Tensor:
        return x.sin() + x.shape[0]

    compiled = stator.compile(fn, backend=specializing, options={"tiered": True}, dynamic=True)
    for size in (3, 4, 3, 4, 5):
        x = torch.randn(size, 2)
        assert torch.equal(compiled(x), x.sin() + size)
        assert stator.wait(compiled, 20)
    assert gated.runs == [3, 4, 5]


def test_floats_that_the_backend_specializes_on_are_traced_again() -> None:
    def specializing(gm: Any, inputs: Any) -> Any:
        for value in inputs:
            if isinstance(value, torch.SymFloat):
                float(value)
        return aot_eager(gm, inputs)

    compiled = tiered(lambda x, factor: x * factor, specializing)
    for factor in (0.5, 1.5, 2.5, 1.5, 3.5):
        assert torch.equal(compiled(X, factor), X * factor)
        assert stator.wait(compiled, 20)


def test_exceptions_of_the_graph_are_those_of_the_program(gated: Gated) -> None:
    def fn(x: Tensor, index: Tensor) -> Tensor:
        y = x * 2
        try:
            return y[index]
        except IndexError:
            return y - 1

    compiled = tiered(fn, gated)
    good, bad = torch.tensor([1]), torch.tensor([7])
    for _ in range(3):
        assert torch.equal(compiled(X, good), X[good] * 2)
        assert torch.equal(compiled(X, bad), X * 2 - 1)
        release(gated, compiled)


def test_writes_before_an_exception_are_made_once(gated: Gated) -> None:
    def fn(x: Tensor, index: Tensor) -> Tensor:
        try:
            x.add_(1)
            return x[index] * 2
        except IndexError:
            return x

    compiled = tiered(fn, gated)
    good, bad = torch.tensor([1]), torch.tensor([7])
    compiled(X.clone(), good)
    assert gated.began.wait(20)
    for _ in range(3):  # while the other thread compiles, and afterwards
        for index in (good, bad):
            left, right = X.clone(), X.clone()
            assert torch.equal(compiled(left, index), fn(right, index))
            assert torch.equal(left, right)
        release(gated, compiled)


def test_reset_drops_what_waits_and_its_thread_ends(gated: Gated) -> None:
    compiled = tiered(lambda x: x + 5, gated)
    other = tiered(lambda x: x + 6, gated)
    compiled(X)
    assert gated.began.wait(20)
    other(X)
    thread = COMPILATIONS.thread
    stator.reset()
    assert stator.wait(timeout=0)
    gated.released.set()
    assert thread is not None
    thread.join(20)
    assert not thread.is_alive()
    assert gated.count == 1
    assert torch.equal(compiled(X), X + 5)
    release(gated, compiled)
    assert torch.equal(compiled(X), X + 5)
    assert len(gated.runs) == 1


def test_recompilations_under_four_threads_lose_nothing() -> None:
    def fn(x: Tensor, n: int) -> Tensor:
        return x * n + x.dim()

    compiled = stator.compile(
        fn, backend=aot_eager, dynamic=False, options={"tiered": True}, recompile_limit=64
    )

    def call(i: int) -> bool:
        x = X.reshape((1,) * (i % 3) + (6,))
        return torch.equal(compiled(x, i % 5), fn(x, i % 5))

    with ThreadPoolExecutor(4) as threads:
        assert all(threads.map(call, range(60)))
    assert stator.wait(compiled, 20)
    assert all(map(call, range(15)))
    assert stator.wait(compiled, 20)
    states = [entry.tier.state for entry in compiled.report.entries if entry.tier]
    assert set(states) == {"compiled"}


@pytest.mark.slow
def test_a_thousand_recompilations_under_four_threads_lose_nothing() -> None:
    graphs: list[int] = []

    def counting(gm: Any, inputs: Any) -> Any:
        graphs.append(1)
        return gm.forward

    def fn(x: Tensor, n: int) -> Tensor:
        return x * n + n

    options = {"tiered": True}
    runs = [
        stator.compile(
            fn, backend=counting, dynamic=False, options=options, recompile_limit=64, name=f"{i}"
        )
        for i in range(20)
    ]

    def call(job: tuple[int, int]) -> bool:
        return torch.equal(runs[job[0]](X, job[1]), fn(X, job[1]))

    jobs = [(i, n) for n in range(50) for i in range(20)]
    with ThreadPoolExecutor(4) as threads:
        for start in range(0, len(jobs), 4):
            together = jobs[start : start + 4]
            for _ in together:  # one that needs a trace while another is compiled runs plainly
                assert all(threads.map(call, together))
                assert stator.wait(timeout=60)

    states = [entry.tier.state for run in runs for entry in run.report.entries if entry.tier]
    assert states == ["compiled"] * 1000
    assert len(graphs) == 1000
    assert all(map(call, jobs))
    assert len(graphs) == 1000


@pytest.mark.slow
def test_compiler_process_that_is_killed_leaves_the_eager_tier(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from torch._inductor import config

    killed = tmp_path / "c++"
    killed.write_text(
        '#!/bin/sh\ncase "$*" in *--version*) exec c++ --version;; esac\nkill -9 $$\n'
    )
    killed.chmod(0o755)
    monkeypatch.setenv("TORCHINDUCTOR_CACHE_DIR", str(tmp_path / "inductor"))
    monkeypatch.setattr(config.cpp, "cxx", (str(killed),))
    compiled = tiered(lambda x: (x * 2.25).sin() + x.cos(), "inductor")
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for _ in range(3):
            assert torch.equal(compiled(X), (X * 2.25).sin() + X.cos())
            assert stator.wait(compiled, 100)
    failures = [each for each in caught if "stays eager" in str(each.message)]
    assert len(failures) == 1
    if (thread := COMPILATIONS.thread) is not None:
        thread.join(20)
    assert not multiprocessing.active_children()


def test_functions_of_a_module_and_shared_entries(gated: Gated) -> None:
    models = [torch.nn.Linear(3, 2) for _ in range(2)]
    runs = [tiered(model, gated) for model in models]
    for _ in range(2):
        for run, model in zip(runs, models, strict=True):
            assert torch.allclose(run(X), model(X))
        release(gated, runs[0])
    assert gated.count == 1
    assert len(gated.runs) == 2


def test_uncompiled_operators_are_warned_of_after_the_change(gated: Gated) -> None:
    compiled = tiered(lambda x: (x * 2).to_sparse().to_dense() + 1, gated)
    compiled(X)
    gated.released.set()
    with pytest.warns(UserWarning, match="run uncompiled"):
        stator.wait(compiled, 20)
    assert torch.equal(compiled(X), X * 2 + 1)
    assert compiled.report.uncompiled
