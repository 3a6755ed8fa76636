"""`set_stance`: what compiled objects do with their entries, set here or through torch."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
import stator
import torch

from integration_tests.support.counting import Counting

X = torch.linspace(-1.0, 2.0, 6)
Stance = Callable[..., Any]


def plus(x: torch.Tensor) -> torch.Tensor:
    return x.sin() + 1


@pytest.fixture(autouse=True)
def default_stance() -> Iterator[None]:
    yield
    stator.set_stance("default")
    torch.compiler.set_stance("default")


def compiled(counting: Counting) -> Any:
    return stator.compile(plus, backend=counting)


def test_nothing_runs_compiled_under_force_eager() -> None:
    counting = Counting()
    ours = compiled(counting)
    ours(X)
    ran: list[bool] = []

    def observed(x: torch.Tensor) -> torch.Tensor:
        ran.append(torch.compiler.is_compiling())
        return x

    watching = stator.compile(observed, backend="eager")
    with stator.set_stance("force_eager"):
        assert torch.equal(ours(X.double()), plus(X.double()))
        watching(X)
    assert ran == [False]
    assert counting.count == 1
    ours(X.double())
    assert counting.count == 2


@pytest.mark.parametrize("set_stance", [stator.set_stance, torch.compiler.set_stance])
def test_hit_runs_eagerly_under_force_eager(set_stance: Stance) -> None:
    ours = stator.compile(plus, backend=lambda graph, inputs: lambda x: (x * 0,))
    assert torch.equal(ours(X), X * 0)
    for _ in range(2):
        with set_stance("force_eager"):
            assert torch.equal(ours(X), plus(X))
        assert torch.equal(ours(X), X * 0)


@pytest.mark.parametrize("set_stance", [stator.set_stance, torch.compiler.set_stance])
def test_new_calls_run_eagerly_under_eager_on_recompile(set_stance: Stance) -> None:
    counting = Counting()
    ours = compiled(counting)
    ours(X)
    with set_stance("eager_on_recompile"):
        for x in (X, X.double(), torch.ones(2, 2)):
            assert torch.equal(ours(x), plus(x))
    assert counting.count == 1


@pytest.mark.parametrize("set_stance", [stator.set_stance, torch.compiler.set_stance])
def test_new_calls_raise_under_fail_on_recompile(set_stance: Stance) -> None:
    ours = compiled(Counting())
    ours(X)
    with set_stance("fail_on_recompile"):
        assert torch.equal(ours(X), plus(X))
        with pytest.raises(stator.InvalidUse, match="must not be compiled again"):
            ours(X.double())
    assert torch.equal(ours(X.double()), plus(X.double()))


@pytest.mark.parametrize("set_stance", [stator.set_stance, torch.compiler.set_stance])
@pytest.mark.parametrize("stance", ["eager_then_compile", "aot_eager_then_compile"])
def test_first_call_runs_eagerly_and_counts_for_sizes(set_stance: Stance, stance: str) -> None:
    counting = Counting()
    ours = compiled(counting)
    with set_stance(stance):
        for size, count in ((3, 0), (4, 1), (5, 1), (6, 1)):
            assert torch.equal(ours(torch.ones(size)), plus(torch.ones(size)))
            assert counting.count == count


@pytest.mark.parametrize("set_stance", [stator.set_stance, torch.compiler.set_stance])
def test_forced_backend_is_used_in_place_of_all_others(set_stance: Stance) -> None:
    counting, other = Counting(), Counting()
    ours = compiled(counting)
    ours(X)
    with set_stance("default", force_backend=other):
        for _ in range(3):
            assert torch.equal(ours(X), plus(X))
    assert (counting.count, other.count) == (1, 1)
    ours(X)
    assert (counting.count, other.count) == (1, 1)


def test_stance_is_set_for_good_by_a_call_and_for_calls_by_a_decorator() -> None:
    counting = Counting()
    ours = compiled(counting)

    @stator.set_stance("force_eager")
    def eagerly() -> Any:
        return ours(X)

    assert torch.equal(eagerly(), plus(X))
    assert counting.count == 0
    stator.set_stance("force_eager")
    ours(X)
    assert counting.count == 0
    stator.set_stance("default")
    ours(X)
    assert counting.count == 1


def test_stance_that_is_set_by_the_compiled_function() -> None:
    ours = stator.compile(plus, backend="eager")

    def fn(x: torch.Tensor) -> Any:
        y = x * 2
        with stator.set_stance("force_eager"):
            z = ours(y)
        return z + 1

    around = stator.compile(fn, backend="eager")
    for _ in range(3):
        assert torch.equal(around(X), plus(X * 2) + 1)


def test_unknown_stances_and_arguments_are_rejected() -> None:
    with pytest.raises(stator.InvalidOption, match="stance='eager' is not valid"):
        stator.set_stance("eager")
    with pytest.raises(stator.InvalidUse, match="skip_guard_eval_unsafe"):
        stator.set_stance("default", skip_guard_eval_unsafe=True)
    with pytest.raises(stator.InvalidUse, match="force_backend"):
        stator.set_stance("force_eager", force_backend="eager")


def test_eager_call_counts_for_numbers_that_change() -> None:
    counting = Counting()
    scaled = stator.compile(lambda x, k: x * k + x.size(0), backend=counting)
    with stator.set_stance("eager_then_compile"):
        for k in (2, 3, 4, 5):
            assert torch.equal(scaled(X, k), X * k + 6)
    assert counting.count == 1
