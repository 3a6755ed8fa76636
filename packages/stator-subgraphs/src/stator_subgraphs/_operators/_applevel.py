"""Python of ours that is interpreted in place of torch's: the context of an `autograd.Function`,
part of torch.func.

Annotations are texts, as in torch: a program can read those of what `vjp` and `linearize` return.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import torch
import torch.utils._pytree as pytree
from torch._functorch import eager_transforms
from torch._higher_order_ops.flat_apply import is_valid_output
from torch.autograd.function import FunctionCtx

__app_level__ = True


class Context(FunctionCtx):
    """A context that stores the same state as the real one, under the same names.

    Attributes that it does not have are passed to `unknown`, and rejected.
    """

    @property
    def saved_tensors(self) -> Any:
        self._stator_read_saved = True
        return self.saved

    def __getattr__(self, name: str) -> Any:
        return unknown(self, name)


def mapped(
    body: Callable[..., object],
    in_dims: tuple[int, ...],
    out_dims: Any,
    randomness: str,
    *inputs: object,
) -> object:
    """`_transform_targets.vmapped`, by the public function."""
    count = len(in_dims)

    def closed(*batched: object) -> object:
        return body(*batched, *inputs[count:])

    return torch.vmap(closed, in_dims, out_dims, randomness)(*inputs[:count])


def value_and_grads(
    body: Callable[..., Any], argnums: tuple[int, ...], count: int, *inputs: object
) -> Any:
    """`_transform_targets.value_and_grads`, by the public function."""

    def function(*primals: object) -> Any:
        value, *aux = body(*primals, *inputs[count:])
        return value, tuple(aux)

    transform = torch.func.grad_and_value(function, argnums, has_aux=True)
    grads, (value, aux) = transform(*inputs[:count])
    return grads, value, aux


def pulled_back(
    body: Callable[..., Any], argnums: tuple[int, ...], count: int, results: int, *inputs: object
) -> Any:
    """`_transform_targets.pulled_back`, by the function that `torch.func.vjp` calls."""

    def function(*primals: object) -> Any:
        found = body(*primals, *inputs[count:])
        return found[:results], found[results:]

    found: Any = eager_transforms._vjp_with_argnums(
        function, *inputs[:count], argnums=argnums, has_aux=True
    )
    out, pull, aux = found
    return out, aux, pull


def unknown(context: object, name: str) -> Any:
    """Raise AttributeError for an attribute that was not stored; the interpreter's handler rejects
    those that the real context has."""
    raise AttributeError(f"'{type(context).__name__}' object has no attribute '{name}'")


def untie_named_tensors(module: Any, given: Any) -> Any:
    """`_untie_named_tensors_map(module, given)`: what is given for one of several names of a tensor
    holds for all. torch's own iterates over sets, where the order makes no difference."""
    tied: Any = {}
    members = [
        *module.named_parameters(remove_duplicate=False),
        *module.named_buffers(remove_duplicate=False),
    ]
    for name, tensor in members:
        tied.setdefault(tensor, {})[name] = None

    found = given.copy()
    for names in tied.values():
        named = [name for name in names if name in given]
        if len(names) > 1 and named:
            if len(named) > 1:
                raise NotImplementedError
            for name in names:
                found[name] = given[named[0]]
    return found


def linearized(body: Any, count: int, *inputs: Any) -> Any:
    """`torch.func.linearize` over a body: some of its inputs are not what it is linearized at."""
    return torch.func.linearize(lambda *primals: body(*primals, *inputs[count:]), *inputs[:count])


def pulling(pull: Any) -> Any:
    """The function that `torch.func.vjp` gives."""

    def wrapper(
        cotangents: Any, retain_graph: bool = True, create_graph: bool | None = None
    ) -> Any:
        return pull(cotangents, retain_graph, create_graph)

    return _of_torch(wrapper, "_vjp_with_argnums")


def pushing(push: Any) -> Any:
    """The function that `torch.func.linearize` gives."""

    def jvp_fn(*tangents: Any) -> Any:
        return push(tangents)

    return _of_torch(jvp_fn, "linearize")


def _of_torch(function: Any, maker: str) -> Any:
    function.__qualname__ = f"{maker}.<locals>.{function.__name__}"
    function.__module__ = "torch._functorch.eager_transforms"
    return function


# -- operators that are a few lines of Python ------------------------------------------------------
def call_with_grad_mode(
    enable_grad: bool, wrapped_func: Callable[..., object], *args: object, **kwargs: object
) -> object:
    """`wrap_with_set_grad_enabled`; an exception leaves the mode as it is set then."""
    before = torch.is_grad_enabled()
    torch.set_grad_enabled(enable_grad)
    result = wrapped_func(*args, **kwargs)
    torch.set_grad_enabled(before)
    return result


def call_with_autocast(
    device_type: str,
    dtype: torch.dtype | None,
    enabled: bool,
    cache_enabled: bool | None,
    wrapped_func: Callable[..., object],
    *args: object,
    **kwargs: object,
) -> object:
    """`wrap_with_autocast`."""
    with torch.autocast(device_type, dtype, enabled, cache_enabled):
        return wrapped_func(*args, **kwargs)


def call_wrapped(wrapper_fn_or_key: Any, inner_fn: Any, *args: object, **kwargs: object) -> object:
    """`dynamo_bypassing_wrapper`; a graph has its wrapper under a key."""
    if isinstance(wrapper_fn_or_key, str):
        wrapper_fn_or_key = inner_fn.meta[wrapper_fn_or_key]
    return wrapper_fn_or_key(inner_fn)(*args, **kwargs)


def apply_function(autograd_function: Any, *args: object, **kwargs: object) -> object:
    """`custom_function_call`, outside of transforms."""
    return autograd_function.apply(*args, **kwargs)


def apply_flat(func: Any, in_spec: Any, *flat_args: object, checked_output: bool = True) -> object:
    """`flat_apply`, of an operator or the specification that holds a function."""
    if isinstance(func, pytree.TreeSpec):
        func = func._context.value.func
    args, kwargs = pytree.tree_unflatten(flat_args, in_spec)
    result = func(*args, **kwargs)
    if checked_output and not is_valid_output(result):
        raise AssertionError(
            f"output must be graphable or nested list/tuple of graphables, got {type(result)}"
        )
    return result


def hook_with_inputs(tensor: Any, hook_body: Callable[..., Any], *freevars: object) -> Any:
    """`register_hook`: a hook that is given these inputs besides the gradient."""

    def hook(grad: torch.Tensor) -> Any:
        return hook_body(grad, *freevars)

    tensor.register_hook(hook)
    return tensor


def each_of_lists(function: Callable[..., object], *operands: Any) -> object:
    """`foreach_map`: call a function with the items of lists; other operands are repeated."""
    if not any(isinstance(operand, list | tuple) for operand in operands):
        return function(*operands)
    repeated = [
        operand if isinstance(operand, list | tuple) else itertools.repeat(operand)
        for operand in operands
    ]
    return [function(*items) for items in zip(*repeated, strict=False)]
