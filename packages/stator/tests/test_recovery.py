"""What entries prepare for a graph that raises, and how the operator that raised is found."""

from __future__ import annotations

from typing import Any

import pytest
import stator
import torch
from stator._entries._liveness import keep_for_handlers
from stator._entries._resumption import NodeFailure
from torch import Tensor, fx, nn


def entry_source(fn: Any, *args: Any, backend: Any = "eager") -> str:
    compiled = stator.compile(fn, backend=backend)
    compiled(*args)
    (entry,) = compiled.report.entries
    return str(entry.source)


class Trained(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(3, 3), nn.BatchNorm1d(3), nn.Dropout(0.5))

    def forward(self, x: Tensor, target: Tensor) -> Tensor:
        return nn.functional.cross_entropy(self.layers(x), target)


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
def test_training_step_copies_nothing_before_its_graph(backend: str) -> None:
    source = entry_source(Trained(), torch.ones(4, 3), torch.tensor([0, 1, 2, 0]), backend=backend)
    assert ".before(" not in source
    assert ".after(error" in source


def _caught_after_write(x: Tensor, index: Tensor) -> Tensor:
    x.add_(1)
    try:
        return x[index]
    except IndexError:
        return x


@pytest.mark.parametrize("is_view", [True, False])
@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
def test_only_views_are_copied_where_the_program_catches_what_a_compiler_reorders(
    backend: str, is_view: bool
) -> None:
    """Other inputs are written to when the graph has returned."""
    x = torch.zeros(4)[:3] if is_view else torch.zeros(3)
    source = entry_source(_caught_after_write, x, torch.tensor([1]), backend=backend)
    assert (".before(" in source) is is_view

    compiled = stator.compile(_caught_after_write, backend=backend)
    for last, expected in ((1, [1.0]), (7, [1.0, 1.0, 1.0]), (1, [1.0])):
        assert compiled(torch.zeros(3), torch.tensor([last])).tolist() == expected


@torch.library.custom_op("stator_test_recovery::checked", mutates_args=())
def checked(x: Tensor) -> Tensor:
    if x.sum() > 5:
        raise ValueError("too much")
    return x.clone()


@checked.register_fake
def _(x: Tensor) -> Tensor:
    return torch.empty_like(x)


def test_graph_with_a_foreign_operator_that_the_program_catches_is_compiled() -> None:
    def fn(x: Tensor) -> Tensor:
        x.add_(1)
        try:
            return checked(x) * 2
        except ValueError:
            return x - 1

    compiled = stator.compile(fn, backend="aot_eager")
    for start, expected in ((0.0, 2.0), (5.0, 5.0), (0.0, 2.0)):
        assert compiled(torch.full((1,), start)).tolist() == [expected]
    assert not compiled.report.uncompiled


def test_node_that_raised_is_found_by_its_line() -> None:
    def fn(x: Tensor, index: Tensor) -> Tensor:
        return (x.sin() + 1)[index] * 2

    graph = fx.symbolic_trace(fn)
    with pytest.raises(IndexError) as raised:
        graph.forward(torch.ones(2), torch.tensor(5))
    failure = NodeFailure.of(raised.value, graph, graph)
    assert failure is not None
    assert failure.node.name == "getitem"
    assert [node.name for node in failure.before()] == ["x", "index", "sin", "add"]
    assert torch.equal(failure.frame.f_locals["add"], torch.ones(2).sin() + 1)


def test_exception_from_elsewhere_has_no_node() -> None:
    graph = fx.symbolic_trace(_drawing)
    with pytest.raises(ZeroDivisionError) as raised:
        _ = 1 / 0
    assert NodeFailure.of(raised.value, graph, graph) is None


def _drawing(x: Tensor) -> Tensor:
    drawn = torch.rand_like(x)
    y = x.sin() + drawn
    return y.cos()


@pytest.mark.parametrize("is_handled", [True, False])
def test_random_numbers_are_kept_while_a_handler_may_read_them(is_handled: bool) -> None:
    graph = fx.symbolic_trace(_drawing)
    names = {node.name: node for node in graph.graph.nodes}
    if is_handled:
        names["cos"].meta["handled"] = True
    assert "sin = rand_like = None" in graph.code
    keep_for_handlers(graph)

    dropped = "sin = None" if is_handled else "sin = rand_like = None"
    assert f";  {dropped}\n" in graph.code
    assert graph.forward(torch.ones(2)).shape == (2,)


class OwnError(RuntimeError):
    """An error that no operator of torch raises."""


@pytest.mark.parametrize(
    "clause", ["OwnError", "(OwnError, KeyboardInterrupt)", "RuntimeError", ""]
)
def test_handlers_for_other_exceptions_need_no_copies(clause: str) -> None:
    text = f"""
def fn(x):
    x.add_(1)
    try:
        return x[index]
    except {clause}:
        return x
"""
    namespace: dict[str, Any] = {"OwnError": OwnError, "index": torch.tensor([1])}
    exec(text, namespace)
    source = entry_source(namespace["fn"], torch.zeros(3)[:], backend="aot_eager")
    assert (".before(" in source) is (clause != "OwnError")


def test_evaluation_has_no_effects() -> None:
    """Neither batch norm nor dropout do anything that could be observed: an error may run
    everything again."""

    def fn(x: Tensor, index: Tensor) -> Tensor:
        try:
            return model(x)[index]
        except IndexError:
            return x

    model = nn.Sequential(nn.BatchNorm1d(3), nn.Dropout(0.5)).eval()
    source = entry_source(fn, torch.ones(4, 3), torch.tensor([1]), backend="aot_eager")
    assert ".before(" not in source
    model.train()
    source = entry_source(fn, torch.ones(4, 3), torch.tensor([1]), backend="aot_eager")
    assert ".before(" in source
