"""Results that are tensors around tensors, such as DTensors, with gradients.

    y = d @ w        forward: compiled        backward: compiled for a gradient placed as y is

A compiled backward is made before a gradient is seen: AOTAutograd guesses its class and what is
around its parts (the placements of a DTensor), converts what differs, and raises for what it cannot
convert. Autograd converts nothing, so gradients of inputs would be placed otherwise than plainly.
Where a gradient is not as guessed, or there is none, the graph runs again as it is, under autograd.
That takes a graph which does nothing but compute; and as the program is likely to do the same in
the next step, later calls run the graph as it is from the start.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import attrs
import torch
from torch import Tensor
from torch.fx import GraphModule, Node
from torch.utils._python_dispatch import is_traceable_wrapper_subclass

from stator_backends import _session
from stator_backends._alias import has_storage
from stator_backends._backend import Compiled
from stator_backends._graph_facts import example_of, memory_of, placeholders, results_of


def takes_guesses(gm: GraphModule) -> bool:
    """Return True for a graph whose results are tensors of their own, wrappers with gradients among
    them."""
    results = results_of(gm)
    nodes = [node for node in results if isinstance(node, Node)]
    inputs = [example_of(node) for node in placeholders(gm)]
    values = [example_of(node) for node in nodes]
    if not any(isinstance(each, Tensor) and _is_guessed(each) for each in values):
        return False
    if len({*nodes}) < len(results) or not all(isinstance(each, Tensor) for each in values):
        return False

    seen = {memory for each in inputs for memory in _memory_inside(each)}
    for value in values:
        memory = {*_memory_inside(value)}
        if not memory or not seen.isdisjoint(memory):
            return False
        seen |= memory
    return all(node.op in _OPS and not _MARKS.intersection(node.meta) for node in gm.graph.nodes)


_OPS = ("placeholder", "call_function", "call_method", "output")
_MARKS = frozenset({"writes", "native", "starts", "apart", "sets_state", "level", "differentiates"})
"""Metadata of nodes that do more than compute, or that divide the graph."""


def _is_guessed(value: Tensor) -> bool:
    is_wrapper = is_traceable_wrapper_subclass(value) and value.layout is torch.strided
    return is_wrapper and value.requires_grad


def _memory_inside(value: Any) -> Iterator[int]:
    """Yield the memory of a tensor, or of all that are inside of a wrapper."""
    if has_storage(value):
        yield memory_of(value)
    elif isinstance(value, Tensor) and is_traceable_wrapper_subclass(value):
        for name in value.__tensor_flatten__()[0]:
            yield from _memory_inside(getattr(value, name))


@attrs.define(eq=False)
class GuessedGradients:
    """A compiled graph, and the same graph as it is for gradients that were not guessed."""

    compiled: Compiled
    plain: Compiled
    is_wrong: bool = False
    """A gradient was not as guessed: the program runs the graph as it is from then on."""

    def __call__(self, *inputs: Any) -> Sequence[Any]:
        if self.is_wrong or not torch.is_grad_enabled():
            return self.plain(*inputs)
        results: Sequence[Any] = _Guarded.apply(self, *inputs)  # type: ignore[no-untyped-call]
        return results


class _Guarded(torch.autograd.Function):
    """The compiled graph as one operator: its backward is that of the compiled graph or, where the
    guess was wrong, that of the graph as it is."""

    @staticmethod
    def forward(ctx: Any, run: GuessedGradients, *inputs: Any) -> tuple[Any, ...]:
        ctx.set_materialize_grads(False)
        ctx.run, ctx.modes = run, attrs.evolve(_session.AmbientState.capture(), grad=True)
        ctx.others = [None if isinstance(each, Tensor) else each for each in inputs]
        ctx.save_for_backward(*(each if isinstance(each, Tensor) else None for each in inputs))
        ctx.leaves = [_leaf(each) for each in inputs]
        with torch.enable_grad():
            ctx.inner = list(run.compiled(*ctx.leaves))
        results = [each.detach() for each in ctx.inner]
        fixed = [
            own for own, each in zip(results, ctx.inner, strict=True) if not each.requires_grad
        ]
        ctx.mark_non_differentiable(*fixed)
        return tuple(results)

    @staticmethod
    def backward(ctx: Any, *gradients: Any) -> tuple[Any, ...]:
        trained = [i for i, each in enumerate(ctx.needs_input_grad[1:]) if each]
        is_right = not torch.is_grad_enabled() and all(
            not inner.requires_grad or _is_as_guessed(inner, gradient)
            for inner, gradient in zip(ctx.inner, gradients, strict=True)
        )
        found = _of_compiled(ctx, gradients, trained) if is_right else _of_plain(ctx, gradients)
        return None, *found


def _leaf(value: Any) -> Any:
    """Return a tensor that begins a history of its own."""
    if not isinstance(value, Tensor):
        return value
    return value.detach().requires_grad_(value.requires_grad)


def _is_as_guessed(result: Tensor, gradient: Tensor | None) -> bool:
    """Return True for a gradient that AOTAutograd takes as it is: placed as the result is, and
    whole where that is a sum to be made."""
    if gradient is None or type(gradient) is not type(result):
        return False
    if not is_traceable_wrapper_subclass(gradient):
        return True
    placements: Any = getattr(result, "placements", None)
    if placements is None:
        guess: Any = result.detach()
        return bool(guess.__tensor_flatten__()[1] == gradient.__tensor_flatten__()[1])
    other: Any = gradient
    pairs = zip(placements, other.placements, strict=True)
    is_placed = all(
        given.is_replicate() if own.is_partial() else own == given for own, given in pairs
    )
    return is_placed and bool(other.device_mesh == getattr(result, "device_mesh"))


def _of_compiled(ctx: Any, gradients: Sequence[Any], trained: Sequence[int]) -> list[Any]:
    """Return the gradients of the inputs by the compiled backward."""
    keeps: bool = torch._C._autograd._get_current_graph_task_keep_graph()
    pairs = [
        (inner, gradient)
        for inner, gradient in zip(ctx.inner, gradients, strict=True)
        if inner.requires_grad
    ]

    leaves = [ctx.leaves[i] for i in trained]
    found = torch.autograd.grad(
        [inner for inner, _ in pairs],
        leaves,
        [gradient for _, gradient in pairs],
        retain_graph=keeps,
        allow_unused=True,
    )

    gained: list[Any] = [None] * len(ctx.leaves)
    for position, each in zip(trained, found, strict=True):
        gained[position] = each
    return gained


def _of_plain(ctx: Any, gradients: Sequence[Any]) -> list[Any]:
    """Return the gradients of the inputs by autograd, which computes the graph again."""
    ctx.run.is_wrong = True
    creates = torch.is_grad_enabled()
    saved = zip(ctx.saved_tensors, ctx.others, strict=True)
    inputs = [other if tensor is None else tensor for tensor, other in saved]
    inputs = inputs if creates else [_leaf(each) for each in inputs]

    with ctx.modes.restored():
        results = ctx.run.plain(*inputs)
    pairs = [
        (result, gradient)
        for result, gradient in zip(results, gradients, strict=True)
        if gradient is not None and result.requires_grad
    ]

    gained: list[Any] = [None] * len(inputs)
    wanted = [i for i, each in enumerate(inputs) if ctx.needs_input_grad[1 + i]]
    found = torch.autograd.grad(
        [result for result, _ in pairs],
        [inputs[i] for i in wanted],
        [gradient for _, gradient in pairs],
        create_graph=creates,
        allow_unused=True,
    )

    for position, each in zip(wanted, found, strict=True):
        gained[position] = each
    return gained
