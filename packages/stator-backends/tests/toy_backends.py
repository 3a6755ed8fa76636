"""Backends with one fault each, most in the pattern `sin(cos(x))`; loaded by path, as scripts
do."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import torch
from torch import fx


def _matches(gm: fx.GraphModule) -> Iterator[fx.Node]:
    for node in gm.graph.nodes:
        inner = node.args[0] if node.target in (torch.sin, torch.ops.aten.sin.default) else None
        if getattr(inner, "target", None) in (torch.cos, torch.ops.aten.cos.default):
            yield node


def wrong_fusion(gm: fx.GraphModule, example_inputs: Sequence[Any]) -> Callable[..., Any]:
    for node in _matches(gm):
        node.args = (node.args[0].args[0],)
    gm.recompile()
    return gm.forward


def crash(gm: fx.GraphModule, example_inputs: Sequence[Any]) -> Callable[..., Any]:
    if [*_matches(gm)]:
        raise NotImplementedError("no kernel for sin(cos(x))")
    return gm.forward


def slow_pass(gm: fx.GraphModule, example_inputs: Sequence[Any]) -> Callable[..., Any]:
    if [*_matches(gm)]:
        time.sleep(0.3)
    return gm.forward


def halved_result(gm: fx.GraphModule, example_inputs: Sequence[Any]) -> Callable[..., Any]:
    """Give the wrong result for one value only."""

    def call(*args: Any) -> list[Any]:
        return [value / 2 if bool((value == 42).any()) else value for value in gm.forward(*args)]

    return call


def _has_symbol(value: object) -> bool:
    sizes = value.shape if isinstance(value, torch.Tensor) else (value,)
    return any(isinstance(size, torch.SymInt) for size in sizes)


def crash_with_symbols(gm: fx.GraphModule, example_inputs: Sequence[Any]) -> Callable[..., Any]:
    if any(map(_has_symbol, example_inputs)):
        return crash(gm, example_inputs)
    return gm.forward


def wrong_with_symbols(gm: fx.GraphModule, example_inputs: Sequence[Any]) -> Callable[..., Any]:
    if any(map(_has_symbol, example_inputs)):
        return wrong_fusion(gm, example_inputs)
    return gm.forward
