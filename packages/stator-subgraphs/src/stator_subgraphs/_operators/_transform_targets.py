"""The callees of graphs for transforms of torch.func: the transform itself, over the module of its
function.

Such a node has all effects of the real one, levels of the interpreter stack included, in each
backend alike. `inputs` are the arguments of the transform, then the values of the outer graph that
the body uses besides.
"""

from __future__ import (
    annotations,
)  # this code may be traced again: annotations inside are not evaluated

from collections.abc import Callable
from typing import Any

import torch
from torch._C import _functorch as functorch
from torch._functorch import eager_transforms, predispatch
from torch._functorch.vmap import doesnt_support_saved_tensors_hooks
from torch._guards import TracingContext

Flat = tuple[Any, ...]
FlatFunction = Callable[..., Flat]


def vmapped(
    body: FlatFunction, in_dims: Flat, out_dims: Flat, randomness: str, *inputs: Any
) -> Flat:
    """`torch.vmap` over flat values: each result of the body gets its batch dimension.

    The steps are those of `torch._functorch.vmap._flat_vmap`. Its checks of structures and
    dimensions were made when the body was traced and need not be repeated.
    """
    predispatch.lazy_load_decompositions()
    count = len(in_dims)
    placed = list(zip(inputs[:count], in_dims, strict=True))
    batch_size = next(value.size(dim) for value, dim in placed if dim is not None)

    level = predispatch._vmap_increment_nesting(batch_size, randomness)
    try:
        batched = [_batched(value, dim, level) for value, dim in placed]
        results = body(*batched, *inputs[count:])
        return tuple(
            value if dim is None else predispatch._remove_batch_dim(value, level, batch_size, dim)
            for value, dim in zip(results, out_dims, strict=True)
        )
    finally:
        predispatch._vmap_decrement_nesting()


def _batched(value: Any, dim: int | None, level: int) -> Any:
    if dim is None:
        return value
    return predispatch._add_batch_dim(value, dim % value.dim(), level)


@doesnt_support_saved_tensors_hooks
def value_and_grads(
    body: FlatFunction, argnums: tuple[int, ...], count: int, *inputs: object
) -> tuple[Flat, Any, Flat]:
    """`torch.func.grad_and_value` with the first result of the body for the value: gradients,
    value, other results."""
    level = functorch._grad_increment_nesting()
    try:
        with torch.enable_grad():
            found, leaves = _differentiable(body, argnums, inputs[:count], inputs[count:], level)
            grads = eager_transforms._autograd_grad(found[:1], leaves, create_graph=True)
            value, *aux = _unwrapped(found, level)
            return _unwrapped(grads, level), value, tuple(aux)
    finally:
        functorch._grad_decrement_nesting()


@doesnt_support_saved_tensors_hooks
def pulled_back(
    body: FlatFunction, argnums: tuple[int, ...], count: int, results: int, *inputs: object
) -> tuple[Flat, Flat, Any]:
    """`torch.func.vjp`: results, other results, and the function from cotangents to gradients."""
    level = functorch._grad_increment_nesting()
    try:
        with torch.enable_grad():
            found, leaves = _differentiable(body, argnums, inputs[:count], inputs[count:], level)
            given = _unwrapped(found, level)
    finally:
        functorch._grad_decrement_nesting()

    def pull(cotangents: Flat, retain_graph: bool, create_graph: bool | None) -> Flat:
        create = torch.is_grad_enabled() if create_graph is None else create_graph
        with eager_transforms._disable_inference_mode():
            grads: Flat = eager_transforms._autograd_grad(
                found[:results], leaves, cotangents, retain_graph, create
            )
        return grads

    return given[:results], given[results:], pull


def _differentiable(
    body: FlatFunction, argnums: tuple[int, ...], primals: Flat, captured: Flat, level: int
) -> tuple[Flat, list[torch.Tensor]]:
    """Run a body on wrapped primals. Returns its results, and the primals that have gradients.

    The steps are those of `_vjp_with_argnums`; its checks of results were made when the body was
    traced.
    """
    wrapped = [
        functorch._wrap_for_grad(value, level) if isinstance(value, torch.Tensor) else value
        for value in primals
    ]
    leaves = [wrapped[place] for place in argnums]
    with eager_transforms.enable_inplace_requires_grad(True):
        for leaf in leaves:
            leaf.requires_grad_()
    return body(*wrapped, *captured), leaves


def _unwrapped(values: Flat, level: int) -> Flat:
    return tuple(functorch._unwrap_for_grad(value, level) for value in values)


def cotangents_pulled(
    pull: Callable[..., Flat], retain_graph: bool, create_graph: bool | None, *cotangents: object
) -> Flat:
    """The function that `torch.func.vjp` gave."""
    return pull(cotangents, retain_graph, create_graph)


def pushed_forward(
    body: FlatFunction,
    argnums: tuple[int, ...],
    count: int,
    results: int,
    strict: bool,
    *inputs: object,
) -> tuple[Flat, Flat, Flat]:
    """`torch.func.jvp` along tangents, which follow the primals: results, their tangents, other
    results."""
    tangents = inputs[count : count + len(argnums)]
    function = _first_apart(_closed(body, inputs[count + len(argnums) :]), results)
    found: Any = eager_transforms._jvp_with_argnums(
        function, inputs[:count], tangents, argnums=argnums, strict=strict, has_aux=True
    )
    out, pushed, aux = found
    return out, pushed, aux


def linearized(body: FlatFunction, count: int, *inputs: object) -> tuple[Flat, Callable[..., Flat]]:
    """`torch.func.linearize`: results, and the function from tangents to theirs. It traces and
    folds on its own, which nobody else can trace: a compiler that looks finds what the function
    does."""
    closed, primals = _closed(body, inputs[count:]), inputs[:count]
    if TracingContext.try_get() is None:
        found: tuple[Flat, Callable[..., Flat]] = torch.func.linearize(closed, *primals)
        return found
    return closed(*primals), lambda *tangents: torch.func.jvp(closed, primals, tangents)[1]


def tangents_pushed(push: Callable[..., Flat], *tangents: object) -> Flat:
    """The function that `torch.func.linearize` gave."""
    return push(*tangents)


def _closed(body: FlatFunction, captured: Flat) -> FlatFunction:
    """The body as a function of what it is transformed over: what it captures is not wrapped by the
    transform."""
    return lambda *inputs: body(*inputs, *captured)


def _first_apart(body: FlatFunction, count: int) -> Callable[..., tuple[Flat, Flat]]:
    def function(*inputs: object) -> tuple[Flat, Flat]:
        results = body(*inputs)
        return results[:count], results[count:]

    return function


TRANSFORMS = frozenset({vmapped, value_and_grads, pulled_back, pushed_forward, linearized})
TRANSFORM_RESULTS = frozenset({cotangents_pulled, tangents_pushed})
"""Targets that call a function which a transform gave, their first argument."""
