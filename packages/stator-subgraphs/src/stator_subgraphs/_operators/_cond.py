"""`torch.cond`: two branches, traced from the same state, of which one runs."""

from collections.abc import Generator, Sequence
from typing import Any

import torch
from stator_bytecode import OperationSteps, operation
from stator_variables import (
    Args,
    BodyGraph,
    BodyTrace,
    ConstantTracker,
    FunctionTable,
    GraphValue,
    Kwargs,
    NumberTracker,
    Permits,
    Space,
    Spec,
    TensorTracker,
    VariableTracker,
    call,
    flatten,
    from_traced,
    is_a,
    unflatten,
)

from stator_subgraphs._mutation import storage_of

handlers = FunctionTable("higher-order operator")


@handlers.handles(torch.ops.higher_order.cond, torch.cond)
@operation
def cond(t: Space, args: Args, kwargs: Kwargs) -> Any:
    """A predicate that is a Python value chooses the branch now, as it does in plain Python.
    Operands may be numbers, as they may in torch when it compiles."""
    pred, true_fn, false_fn, operands = _bound(t, *args, **kwargs)
    if is_a(pred, ConstantTracker) and isinstance(pred.value, bool | int | float):
        return call(t, true_fn if pred.value else false_fn, operands, {})
    _check(t, pred, operands)
    return (yield from _chosen(t, pred, true_fn, false_fn, operands))


def _chosen(
    t: Space, pred: Any, true_fn: VariableTracker, false_fn: VariableTracker, operands: list[Any]
) -> OperationSteps:
    true, spec = yield from _branch(t, "cond_true", true_fn, operands)
    false, other = yield from _branch(t, "cond_false", false_fn, operands)
    if spec != other:
        raise t.unsupported("branches-differ", f"branches of cond that return {spec} and {other}")
    tensors = [result for result in true.outputs if isinstance(result, torch.Tensor)]
    if len(tensors) < spec.leaf_count and any(tensor.requires_grad for tensor in tensors):
        raise t.unsupported("result-of-body", "a number beside a result of cond that has gradients")

    inputs = t.graph.merge([true, false])
    refuse_overlap(t, [true, false], inputs)
    bodies = [
        t.graph.install("cond_true", true.module),
        t.graph.install("cond_false", false.module),
    ]
    given = t.graph.call(torch.ops.higher_order.cond, (pred.traced, *bodies, inputs), {})
    leaves = [from_traced(t, t.graph.project(given, index)) for index in range(spec.leaf_count)]
    return unflatten(t, leaves, spec)


def _bound(
    t: Space, pred: object, true_fn: object, false_fn: object, operands: Any = None
) -> tuple[Any, Any, Any, list[Any]]:
    items = [] if operands is None else getattr(operands, "items", None)
    if not isinstance(items, list):
        raise t.unsupported(
            "higher-order-operator", f"cond with operands that are a {operands.cls.__qualname__}"
        )
    return pred, true_fn, false_fn, items


def _check(t: Space, pred: object, operands: list[Any]) -> None:
    if is_a(pred, TensorTracker):
        fits = pred.example.numel() == 1 and pred.example.dtype is torch.bool
    else:
        fits = is_a(pred, NumberTracker) and pred.cls is bool
    if not fits:
        raise t.unsupported(
            "higher-order-operator",
            "cond with a predicate that is neither a bool nor a tensor of one",
        )
    for leaf in (leaf for operand in operands for leaf in flatten(t, operand)[0]):
        if not is_a(leaf, TensorTracker | NumberTracker | ConstantTracker):
            raise t.unsupported(
                "higher-order-operator", f"cond with a {leaf.cls.__qualname__} among its operands"
            )


def refuse_overlap(t: Space, bodies: Sequence[BodyGraph], operands: Sequence[GraphValue]) -> None:
    """Reject a body that writes, if operands share memory: compilers treat operands as separate
    tensors."""
    storages = [
        storage_of(traced.example)
        for traced in operands
        if isinstance(traced.example, torch.Tensor)
    ]
    if any(body.written for body in bodies) and len({*storages}) < len(storages):
        raise t.unsupported("write-in-body", "an in-place write, while operands share memory")


def _branch(
    t: Space, name: str, function: VariableTracker, operands: list[Any]
) -> Generator[Any, Any, tuple[BodyGraph, Spec]]:
    with BodyTrace(t, name, Permits(writes=not (torch.is_grad_enabled() or t.touched))) as body:
        result = yield from body.run(function, operands, {})
        if any(
            is_a(leaf, ConstantTracker) and type(leaf.value) is not int
            for leaf in flatten(t, result)[0]
        ):
            raise t.unsupported(
                "result-of-body", "a constant that is no int as the result of a branch of cond"
            )
        return body.flat(result)
