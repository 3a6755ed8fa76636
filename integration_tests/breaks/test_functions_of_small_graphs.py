"""Functions whose graphs have fewer than two operators between breaks: called natively from the
sixteenth call on, where no call can take another path."""

from __future__ import annotations

import io
from collections.abc import Callable
from typing import Any

import pytest
import stator
import torch
from torch import Tensor

CALLS = 24
SHOWN = io.StringIO()


def prints_each_round(x: Tensor) -> Tensor:
    for step in range(4):
        x = x * 2
        print(step, file=SHOWN)
    return x


def computes_more(x: Tensor) -> Tensor:
    for step in range(4):
        x = x * 2 + 1
        print(step, file=SHOWN)
    return x


def branches(x: Tensor) -> Tensor:
    for step in range(4):
        x = x * 2
        print(step, file=SHOWN)
    if SHOWN.tell() < 0:
        x = x.softmax(0).cumsum(0)
    return x


def may_compute(x: Tensor) -> Tensor:
    return x.softmax(0).cumsum(0) if SHOWN.tell() < 0 else x


def calls_another(x: Tensor) -> Tensor:
    for step in range(4):
        x = x * 2
        print(step, file=SHOWN)
    return may_compute(x)


def breaks_once(x: Tensor) -> Tensor:
    x = x * 2
    print(x.shape, file=SHOWN)
    return x + 1


def sizes_from_data(lengths: Tensor, x: Tensor) -> Tensor:
    mask = torch.zeros(len(lengths), 6)
    for i in range(len(lengths)):
        mask[i, : lengths[i].item()] = 1
    return mask * x


def packed(*args: Tensor) -> Tensor:
    (x,) = args
    for step in range(4):
        x = x * 2
        print(step, file=SHOWN)
    return x


def runs_of(function: Callable[..., Any], *args: Any, **kwargs: Any) -> tuple[Any, list[int]]:
    """Return the compiled function and the graph runs of each call."""
    count = 0

    def backend(graph: torch.fx.GraphModule, inputs: list[Any]) -> Callable[..., Any]:
        def run(*values: Any) -> Any:
            nonlocal count
            count += 1
            return graph.forward(*values)

        return run

    compiled: Any = stator.compile(function, backend=backend)
    runs = []
    for _ in range(CALLS):
        before = count
        result = compiled(*args, **kwargs)
        runs.append(count - before)
        torch.testing.assert_close(result, function(*args, **kwargs))
    return compiled, runs


def native_calls(compiled: Any) -> list[str]:
    return [each.detail for each in compiled.report.breaks if each.reason == "native-call"]


def test_a_loop_of_single_operators_between_breaks_runs_natively() -> None:
    compiled, runs = runs_of(prints_each_round, torch.ones(3))

    assert runs[:15] == [4] * 15
    assert runs[16:] == [0] * 8
    assert native_calls(compiled) == [
        "prints_each_round, whose graphs have fewer than two operators between breaks"
    ]
    assert compiled.report.graph_count == 3


def test_functions_of_a_library_that_compute_nothing_change_nothing() -> None:
    tqdm = pytest.importorskip("tqdm").tqdm

    def shows_progress(x: Tensor) -> Tensor:
        for _ in tqdm(range(4), file=SHOWN):
            x = x * 2
        return x

    _, runs = runs_of(shows_progress, torch.ones(3))

    assert runs[0] > 0
    assert runs[-1] == 0


def test_functions_of_a_library_that_compute_something_stay() -> None:
    layers = torch.nn.Sequential(torch.nn.ReLU())

    def calls_layers(x: Tensor) -> Tensor:
        for step in range(4):
            x = layers(x)
            print(step, file=SHOWN)
        return x

    _, runs = runs_of(calls_layers, torch.ones(3))

    assert runs[-1] == runs[0] > 0


def test_views_are_no_operators() -> None:
    _, runs = runs_of(sizes_from_data, torch.tensor([2, 3]), torch.ones(6))

    assert runs[0] > 0
    assert runs[-1] == 0


def test_a_closure_is_called_with_its_own_cells() -> None:
    def scaled(by: int) -> Callable[[Tensor], Tensor]:
        def loop(x: Tensor) -> Tensor:
            for step in range(3):
                x = x * by
                print(step, file=SHOWN)
            return x

        return loop

    for by in (2, 3):
        _, runs = runs_of(scaled(by), torch.ones(3))
        assert runs[-1] == 0


@pytest.mark.parametrize("function", [computes_more, branches, calls_another, breaks_once, packed])
def test_graphs_that_may_gain_something_stay(function: Callable[[Tensor], Tensor]) -> None:
    compiled, runs = runs_of(function, torch.ones(3))

    assert runs[-1] == runs[0] > 0
    assert native_calls(compiled) == []


def test_calls_of_other_types_are_captured_as_before() -> None:
    def loop(x: Tensor, more: bool) -> Tensor:
        for step in range(4):
            x = x * 2
            print(step, more, file=SHOWN)
        return x

    compiled, runs = runs_of(loop, torch.ones(3), False)
    graphs = compiled.report.graph_count
    compiled(torch.ones(3, dtype=torch.float64), False)

    assert runs[-1] == 0
    assert compiled.report.graph_count > graphs


def test_new_code_of_the_function_is_captured() -> None:
    def loop(x: Tensor) -> Tensor:
        for step in range(4):
            x = x * 2
            print(step, file=SHOWN)
        return x

    def other(x: Tensor) -> Tensor:
        return x.softmax(0).cumsum(0)

    compiled, _ = runs_of(loop, torch.ones(3))
    graphs = compiled.report.graph_count
    loop.__code__ = other.__code__

    torch.testing.assert_close(compiled(torch.ones(3)), other(torch.ones(3)))
    assert compiled.report.graph_count == graphs + 1


def test_reset_captures_again() -> None:
    compiled, _ = runs_of(prints_each_round, torch.ones(3))
    stator.reset()
    compiled(torch.ones(3))

    assert compiled.report.graph_count > 0
    assert native_calls(compiled) == []


def test_gradients_effects_and_exceptions_are_those_of_the_function() -> None:
    seen: list[int] = []

    def loop(x: Tensor, stop: Tensor) -> Tensor:
        for step in range(4):
            x = x * 2
            seen.append(step)
            print(step, file=SHOWN)
        return x / stop.view(3)

    compiled: Any = stator.compile(loop, backend="eager")
    for call in range(1, CALLS):
        x = torch.ones(3, requires_grad=True)
        compiled(x, torch.ones(3)).sum().backward()
        assert x.grad is not None
        assert x.grad.tolist() == [16.0] * 3
        assert seen == [0, 1, 2, 3] * call

    with pytest.raises(RuntimeError, match="shape") as caught:
        compiled(x, torch.ones(2))
    assert [entry.name for entry in caught.traceback][-1] == "loop"


def test_modes_of_the_call_apply() -> None:
    def loop(n: int) -> Tensor:
        x = torch.ones(n)
        for step in range(4):
            x = x * 2
            print(step, file=SHOWN)
        return x

    compiled, runs = runs_of(loop, 3)
    with torch.device("meta"):
        made = [compiled(3) for _ in range(CALLS)]

    assert runs[-1] == 0
    assert {each.device.type for each in made} == {"meta"}
    assert compiled(3).device.type == "cpu"
