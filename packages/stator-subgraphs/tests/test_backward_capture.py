"""Backward passes written down node by node."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from stator_subgraphs import BackwardCapture, CapturedBackward, partitioned
from torch.fx import Graph, GraphModule

_native: Any = torch._C._dynamo.compiled_autograd


def _captured(start: Callable[[], Any], divide: bool = False) -> list[CapturedBackward]:
    """Run a backward pass under capture; return the graphs of new structures."""
    found: list[CapturedBackward] = []

    def finish(captured: CapturedBackward) -> Callable[..., Any]:
        program = partitioned(captured, _segment) if divide else captured
        found.append(program)
        return lambda function, saved, *rest: program.function(captured.arguments(saved, *rest))

    _native.clear_cache()
    before = _native.set_autograd_compiler(lambda: BackwardCapture(finish), True)
    try:
        with torch.autograd.set_multithreading_enabled(False):
            start()
    finally:
        _native.set_autograd_compiler(*before)
        _native.clear_cache()
    return found


def _segment(graph: Graph, name: str) -> Callable[[list[Any]], Sequence[Any]]:
    module = GraphModule(torch.nn.Module(), graph, name)

    def segment(arguments: list[Any]) -> Any:
        return module.forward(*arguments)

    return segment


def test_nodes_are_in_the_order_of_the_engine() -> None:
    x = torch.ones(3, requires_grad=True)
    w = torch.ones(3, requires_grad=True)

    (captured,) = _captured((x * w).sin().sum().backward)

    called = [node.name for node in captured.graph.nodes if node.op == "call_function"]
    kinds = [name for name in called if "backward0" in name and name[-2] != "_"]
    assert kinds == ["sum_backward0", "sin_backward0", "mul_backward0"]
    assert captured.code.count("accumulate_grad(") == 2
    assert not captured.user_code
    assert x.grad is not None
    assert torch.equal(x.grad, torch.ones(3).cos())


def test_sizes_are_inputs() -> None:
    x = torch.ones(5, requires_grad=True)

    def start() -> None:
        for size in (2, 3, 4):
            x[:size].sum().backward()  # type: ignore[no-untyped-call]

    assert len(_captured(start)) == 2  # without a gradient, and with one
    assert x.grad is not None
    assert x.grad.tolist() == [3, 3, 2, 1, 0]


def test_segments_end_at_hooks_that_are_written_in_cpp() -> None:
    x, w = torch.ones(3, requires_grad=True), torch.ones(3, requires_grad=True)
    y = x.sin()
    y.retain_grad()

    (program,) = _captured((y.exp() * w).sum().backward, divide=True)

    names = [getattr(node.target, "__name__", "") for node in program.graph.nodes]
    assert names.count("segment") == 2
    assert program.user_code == ("hooked",)


def test_hooks_behind_an_accumulation_are_part_of_a_segment() -> None:
    x, w, seen = torch.ones(3, requires_grad=True), torch.ones(3, requires_grad=True), []
    w.register_post_accumulate_grad_hook(  # type: ignore[no-untyped-call]
        lambda leaf: seen.append(leaf.tolist())
    )
    y = x.sin()

    (program,) = _captured((y.exp() * w).sum().backward, divide=True)

    names = [getattr(node.target, "__name__", "") for node in program.graph.nodes]
    assert names.count("segment") == 1
    assert program.user_code == ()
    assert len(seen) == 1
