"""The callee of graphs for `Function.apply`: an `autograd.Function` over the bodies of forward and
backward.

    applied(holder, forward_body, backward_body, 2, 0, x, y)

It saves, marks and checks as the original does. If backward is called in another way than it was
traced (gradients with other strides, missing ones, a graph to be made of it), the original backward
runs, on a context with the state of the original's.
"""

from __future__ import (
    annotations,
)  # this code may be traced again: annotations inside are not evaluated

import threading
from collections.abc import Callable, Sequence
from typing import Any

import torch
from attrs import define, frozen
from stator_variables import Spec
from torch.autograd.function import Function

Origin = tuple[str, int]
"""The origin of a tensor that outlives forward: ("input" | "output" | "extra", position)."""


@frozen
class SavedTensorSlot:
    """The place of a tensor or symbolic number in what was stored on the context."""

    origin: Origin


@frozen(eq=False)
class SavedAttribute:
    """An attribute of the context, as a structure.

    Its leaves are `SavedTensorSlot`s, constants, and objects from outside the call.
    """

    name: str
    spec: Spec
    leaves: tuple[Any, ...]


@frozen(eq=False)
class ApplyPlan:
    """The relation of a call of the original to one of its substitute. Positions of outputs count
    the tensors alone."""

    positions: tuple[int, ...]  # of the tensors among the arguments
    arguments: int
    outputs: tuple[int, ...]  # positions of tensors in the original's output
    output_count: int
    saved: tuple[Origin | None, ...]
    attributes: tuple[SavedAttribute, ...]
    dirty: tuple[int, ...]
    non_differentiable: tuple[int, ...]
    materialize: bool
    reads_saved: bool = True  # backward, for what was saved: then it has to be as it was
    # (dtype, shape, strides) that backward was traced for; an int of a shape or None
    gradients: tuple[Any, ...] = ()

    def fits(self, grads: Sequence[Any]) -> bool:
        """Return True if backward is called as it was traced."""
        if torch.is_grad_enabled() or len(grads) != len(self.gradients):
            return False
        return all(
            grad is not None and _matches(grad, fact)
            for grad, fact in zip(grads, self.gradients, strict=True)
        )


def _matches(grad: torch.Tensor, fact: Any) -> bool:
    dtype, shape, strides = fact
    sizes = zip((*shape, *strides), (*grad.shape, *grad.stride()), strict=False)
    return (
        grad.dtype == dtype
        and grad.dim() == len(shape)
        and all(a is None or a == b for a, b in sizes)
    )


@define(eq=False)
class ActiveCall:
    """One call under way: its bodies, what they use of the graph around, and what forward gave
    besides its outputs."""

    plan: ApplyPlan
    forward: Callable[..., Any]
    backward: Callable[..., Any] | None
    forward_lifted: tuple[Any, ...]
    backward_lifted: tuple[Any, ...]
    extra: tuple[Any, ...] = ()

    def value(self, origin: Origin, inputs: Sequence[Any], outputs: Sequence[Any]) -> Any:
        kind, position = origin
        if kind == "input":
            return inputs[self.plan.positions[position]]
        return (outputs if kind == "output" else self.extra)[position]


class _Calls(threading.local):
    call: ActiveCall


CALLS = _Calls()


class StandInModule(torch.nn.Module):
    """Part of the graph's module: the original, and the class that replaces it."""

    def __init__(self, original: type[Function], plan: ApplyPlan, has_setup: bool) -> None:
        super().__init__()
        self.original, self.plan = original, plan
        methods: dict[str, Any] = _IN_TWO_PARTS if has_setup else {"forward": staticmethod(_whole)}
        more = {
            "backward": staticmethod(_backward_of(original)),
            "generate_vmap_rule": original.generate_vmap_rule,
        }
        self.substitute = type(
            original.__name__, (Function,), {"__module__": original.__module__, **methods, **more}
        )


def applied(
    holder: StandInModule, forward: Any, backward: Any, counts: tuple[int, int], *inputs: Any
) -> tuple[Any, ...]:
    """The tensors among what the original's `apply` gives."""
    plan, (tensors, lifted) = holder.plan, counts
    arguments: list[Any] = [None] * plan.arguments
    for position, tensor in zip(plan.positions, inputs[:tensors], strict=True):
        arguments[position] = tensor
    before = getattr(CALLS, "call", None)
    call = ActiveCall(
        plan, forward, backward, inputs[tensors : tensors + lifted], inputs[tensors + lifted :]
    )
    CALLS.call = call
    try:
        # made here
        results: tuple[Any, ...] = holder.substitute.apply(*arguments)  # type: ignore[attr-defined]
    finally:
        call.extra = ()  # what was not kept need not live on
        CALLS.call = before  # type: ignore[assignment]  # none is under way
    return results


# -- forward ---------------------------------------------------------------------------------------
def _whole(ctx: object, *inputs: object) -> tuple[Any, ...]:
    call = CALLS.call
    outputs = _run(call, inputs)
    _set_up(call, ctx, inputs, outputs)
    return outputs


def _forward(*inputs: object) -> tuple[Any, ...]:
    return _run(CALLS.call, inputs)


def _setup_context(ctx: Any, inputs: Any, output: Any) -> None:
    _set_up(CALLS.call, ctx, inputs, output)


_IN_TWO_PARTS = {"forward": staticmethod(_forward), "setup_context": staticmethod(_setup_context)}


def _run(call: ActiveCall, inputs: Sequence[Any]) -> tuple[Any, ...]:
    tensors = [inputs[position] for position in call.plan.positions]
    results = call.forward(*tensors, *call.forward_lifted)
    count = len(call.plan.outputs)
    call.extra = tuple(results[count:])
    return tuple(results[:count])


def _set_up(call: ActiveCall, ctx: Any, inputs: Sequence[Any], outputs: Sequence[Any]) -> None:
    plan = call.plan
    if saved := [
        None if origin is None else call.value(origin, inputs, outputs) for origin in plan.saved
    ]:
        ctx.save_for_backward(*saved)
    kept: list[Any] = []

    def read(leaf: object) -> Any:
        if type(leaf) is not SavedTensorSlot:
            return leaf
        kept.append(call.value(leaf.origin, inputs, outputs))
        return kept[-1]

    for stored in plan.attributes:
        setattr(ctx, stored.name, stored.spec.filled(map(read, stored.leaves)))
    if plan.dirty:
        ctx.mark_dirty(*[outputs[index] for index in plan.dirty])
    if plan.non_differentiable:
        ctx.mark_non_differentiable(*[outputs[index] for index in plan.non_differentiable])
    if not plan.materialize:
        ctx.set_materialize_grads(False)
    ctx._stator_call, ctx._stator_kept = call, kept


# -- backward --------------------------------------------------------------------------------------
def _backward_of(original: type[Function]) -> Callable[..., Any]:
    own = original.backward if original.vjp is Function.vjp else original.vjp

    def backward(ctx: Any, *grads: Any) -> tuple[Any, ...]:
        call: ActiveCall = ctx._stator_call
        plan = call.plan

        if call.backward is not None and plan.fits(grads):
            saved = [
                tensor
                for tensor in (ctx.saved_tensors if plan.reads_saved else plan.saved)
                if tensor is not None
            ]
            found = call.backward(*grads, *saved, *ctx._stator_kept, *call.backward_lifted)
        else:
            found = own(ctx, *_spread(grads, plan.outputs, plan.output_count))
            found = found if isinstance(found, tuple) else (found,)
            found = tuple([found[position] for position in plan.positions])
        return _spread(found, plan.positions, plan.arguments)

    return backward


def _spread(values: Sequence[Any], positions: Sequence[int], count: int) -> tuple[Any, ...]:
    places: list[Any] = [None] * count
    for position, value in zip(positions, values, strict=True):
        places[position] = value
    return tuple(places)
