"""Inputs that a compiled graph writes to before an operator raises, which the program catches: they
are what they are in plain Python, and nothing is copied ahead of a graph for that."""

from __future__ import annotations

import pathlib
from collections.abc import Callable
from typing import Any

import pytest
import stator
import torch
from torch import Tensor, nn
from torch.fx import GraphModule

from integration_tests.corpora.models import Call
from integration_tests.support.oracle import Tolerance, assert_same

CLOSE = Tolerance(1e-6, 1e-6)


class Module(nn.Module):
    """A module with what a forward pass may write to."""

    def __init__(self, forward: Callable[..., Any]) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.linear = nn.Linear(3, 3)
        self.norm = nn.BatchNorm1d(3)
        self.norm_behind = nn.BatchNorm1d(3)
        self.register_buffer("count", torch.zeros(3))
        self.register_buffer("part", torch.zeros(6)[1:4])
        self.register_buffer("matrix", torch.zeros(2, 3))
        self.program = forward

    def forward(self, *args: Any) -> Any:
        return self.program(self, *args)


PROGRAMS: dict[str, Callable[..., Any]] = {}


def program(fn: Callable[..., Any]) -> Callable[..., Any]:
    PROGRAMS[fn.__name__.replace("_", " ")] = fn
    return fn


@program
def statistics_before_the_operator(m: Any, x: Tensor, index: Tensor) -> Any:
    y = m.norm(m.linear(x))
    try:
        return y[index] * 2
    except IndexError:
        return y.sum()


@program
def statistics_before_and_behind(m: Any, x: Tensor, index: Tensor) -> Any:
    try:
        y = m.norm(x).index_select(0, index)
    except (IndexError, RuntimeError):
        y = x * 2
    return m.norm_behind(y)


@program
def another_error_is_raised_by_the_handler(m: Any, x: Tensor, index: Tensor) -> Any:
    y = m.norm(x)
    try:
        return y[index]
    except IndexError as error:
        raise ValueError(f"an index of {len(index)}") from error


@program
def the_handler_reads_what_was_written(m: Any, x: Tensor, index: Tensor) -> Any:
    m.count.add_(x.detach()[0]).mul_(2)
    try:
        return x[index] + m.count.sum()
    except IndexError:
        return m.count.clone()
    finally:
        m.count.sub_(1)


@program
def the_handler_writes_again(m: Any, x: Tensor, index: Tensor) -> Any:
    m.count += 1
    try:
        y = x[index]
    except IndexError:
        m.count += 10
        y = x
    m.count *= 2
    return y.sum()


@program
def the_written_buffer_is_returned(m: Any, x: Tensor, index: Tensor) -> Any:
    m.count.add_(1)
    try:
        return m.count, x[index]
    except IndexError:
        return m.count


@program
def a_view_is_written(m: Any, x: Tensor, index: Tensor) -> Any:
    m.part.add_(1)
    m.matrix[0].add_(x.detach()[0])
    try:
        return x[index]
    except IndexError:
        return x - m.matrix.sum() - m.part.sum()


@program
def an_item_is_written(m: Any, x: Tensor, index: Tensor) -> Any:
    m.matrix[1] = x.detach()[0]
    try:
        return x[index]
    except IndexError:
        return m.matrix * 2


@program
def gradients_depend_on_what_is_written(m: Any, x: Tensor, index: Tensor) -> Any:
    m.count.lerp_(x.detach()[0], 0.5)
    y = (x * m.count.clone()).sum()
    try:
        return y + x[index].sum()
    except IndexError:
        return y * 2


@program
def another_layout_is_given(m: Any, x: Tensor, index: Tensor) -> Any:
    m.matrix.add_(1)
    m.matrix.t_()
    try:
        return x[index]
    except IndexError:
        return m.matrix.sum(0)
    finally:
        m.matrix.t_()


@program
def numbers_are_drawn_as_well(m: Any, x: Tensor, index: Tensor) -> Any:
    m.count.add_(torch.rand(3))
    try:
        return x[index] + torch.rand(1)
    except IndexError:
        return torch.rand(3)


def given_function(gm: GraphModule, inputs: Any) -> Any:
    """A backend of somebody else that compiles nothing."""
    return gm.forward


BACKENDS: dict[str, Any] = {"eager": "eager", "aot_eager": "aot_eager", "of others": given_function}


def arguments(x_has_gradient: bool, indices: list[list[int]]) -> Callable[[], Call]:
    calls = iter(indices)

    def make() -> Call:
        torch.manual_seed(1)
        x = torch.randn(4, 3, requires_grad=x_has_gradient)
        return Call((x, torch.tensor(next(calls))), {})

    return make


INDICES = {"raises first": [[9], [1], [9]], "raises later": [[1], [2], [9], [0]]}


@pytest.mark.parametrize("order", INDICES)
@pytest.mark.parametrize("has_gradient", [True, False])
@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("title", PROGRAMS)
def test_inputs_are_as_in_plain_python_after_a_caught_error(
    title: str, backend: str, has_gradient: bool, order: str
) -> None:
    plain = Module(PROGRAMS[title])
    theirs = Module(PROGRAMS[title])
    compiled = stator.compile(theirs, backend=BACKENDS[backend])
    make = arguments(has_gradient, INDICES[order])
    calls = len(INDICES[order])
    assert_same(plain, compiled, make, calls, tolerance=CLOSE, owners=(plain, theirs))


def entry_of(fn: Callable[..., Any], *args: Any) -> str:
    module = Module(fn)
    compiled: Any = stator.compile(module, backend="aot_eager")
    compiled(*args)
    source: str = compiled.report.entries[0].source
    return source


FREE: dict[str, Callable[[Any, Tensor], Any]] = {
    "arithmetic": lambda m, x: m.norm(x) * 2 + torch.rand(3),
    "matrix products": lambda m, x: m.norm(m.linear(x)) @ m.matrix.t(),
    "an index that is a number": lambda m, x: m.norm(x)[1] * 2,
    "a mask": lambda m, x: m.norm(x)[x > 0],
}
COSTS: dict[str, Callable[[Any, Tensor], Any]] = {
    "an index": lambda m, x: (m.part.add_(1), x[torch.tensor([1])]),
    "a division of integers": lambda m, x: (m.part.add_(1), x.int() // x.int().abs().add(1)),
    "an embedding": lambda m, x: (m.part.add_(1), nn.functional.embedding(x.int().abs(), x)),
    "a target": lambda m, x: (
        m.part.add_(1),
        nn.functional.cross_entropy(x, torch.tensor([0, 1, 2, 1])),
    ),
    "a decomposition": lambda m, x: (m.part.add_(1), torch.linalg.inv(x[1:] + torch.eye(3))),
}


@pytest.mark.parametrize("title", FREE)
def test_try_around_operators_that_take_all_values_costs_no_copy(title: str) -> None:
    def fn(m: Any, x: Tensor) -> Any:
        try:
            return FREE[title](m, x)
        except RuntimeError:
            return x

    assert ".before(" not in entry_of(fn, torch.randn(4, 3))


@pytest.mark.parametrize("title", COSTS)
def test_try_around_operators_that_refuse_values_keeps_a_written_view(title: str) -> None:
    def fn(m: Any, x: Tensor) -> Any:
        try:
            return COSTS[title](m, x)
        except RuntimeError:
            return x

    assert ".before(" in entry_of(fn, torch.randn(4, 3))


def test_running_statistics_before_a_caught_index_cost_no_copy() -> None:
    fn = PROGRAMS["statistics before the operator"]
    source = entry_of(fn, torch.randn(4, 3), torch.tensor([1]))
    assert ".before(" not in source


def test_version_counters_of_statistics_are_those_of_plain_python() -> None:
    """Batch normalization updates its statistics without new versions, unlike its counter."""
    found = []
    for backend in ("eager", "aot_eager"):
        module = Module(PROGRAMS["statistics before the operator"])
        compiled = stator.compile(module, backend=backend)
        for _ in range(5):
            compiled(torch.randn(4, 3), torch.tensor([1]))
        found.append([buffer._version for buffer in module.buffers()])
    assert found[0] == found[1]


@pytest.mark.parametrize("index", [1, 9])
def test_what_a_hook_raises_leaves_the_writes_before_it(index: int) -> None:
    """The graph of a backend that compiles nothing goes on where it raised."""

    def fn(m: Any, x: Tensor, index: Tensor, log: list[str]) -> Any:
        m.norm(x.detach())
        m.count.add_(1)
        log.append("before")
        try:
            y = x[index]
        except IndexError:
            return m.count.sum()
        z = y * y
        m.count.add_(10)
        log.append("behind")
        return z

    def refuse(value: Tensor) -> Tensor:
        if value.shape == (1, 3):
            raise KeyError("refused")
        return value

    found = []
    for is_compiled in (False, True):
        module, log = Module(fn), list[str]()
        run: Any = stator.compile(module, backend=given_function) if is_compiled else module
        run(torch.ones(4, 3, requires_grad=True), torch.tensor([2]), log)
        with torch.autograd.graph.saved_tensors_hooks(refuse, lambda value: value):
            try:
                result = run(torch.ones(4, 3, requires_grad=True), torch.tensor([index]), log)
            except KeyError as error:
                result = error.args
        buffers = [each.tolist() for each in module.buffers()]
        found.append((str(result), log, buffers, module.count._version))
    assert found[0] == found[1]


def counts_and_selects(count: Tensor, x: Tensor, index: Tensor) -> Tensor:
    count.add_(1).mul_(2)
    try:
        return x[index] + count.sum()
    except IndexError:
        return count * 10


def test_graph_of_a_dump_writes_where_the_program_does(tmp_path: pathlib.Path) -> None:
    """It runs in program order, and what it raises passes through."""
    compiled = stator.compile(counts_and_selects, backend="aot_eager")
    compiled(torch.zeros(1), torch.ones(2), torch.tensor([1]))
    loaded: Any = stator.load(stator.dump(compiled, tmp_path))
    count = torch.zeros(1)
    assert loaded(count, torch.ones(2), torch.tensor([1])).tolist() == [3.0]
    with pytest.raises(IndexError):
        loaded(count, torch.ones(2), torch.tensor([9]))
    assert count.tolist() == [6.0]
