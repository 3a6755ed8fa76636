"""Functions that the graph of a backward calls: what the engine does besides computing."""

import functools
import inspect
import operator
import sys
from collections.abc import Callable, Iterable, Sequence
from typing import Any, TypeAlias

import attrs
import torch
from stator_bytecode.errors import Unsupported
from torch import Tensor
from torch.fx import Graph, Node

Gradient: TypeAlias = Tensor | None
Metadata: TypeAlias = tuple[Any, bool, int | None]
"""Metadata of a gradient: packed options, whether it is of a subclass, and the dtype demanded."""


@attrs.frozen
class Bound:
    """A function that C++ has bound to the name of a kind of node."""

    function: Callable[..., Any]
    is_custom: bool = False
    is_traceable: bool = True


_bound: dict[str, Bound] = {}
"""C++ binds once in a process, for whoever captures first."""


def bind(name: str, bound: Bound) -> str:
    """Keep a function; return its name, which is a new one for each custom node of C++."""
    name = f"{name}_{len(_bound)}" if bound.is_custom else name
    _bound[name] = bound
    return name


def bound(name: str) -> Bound:
    """Return the function of that name, which torch's own compiled autograd may have got."""
    if name not in _bound:
        theirs: Any = sys.modules["torch._dynamo.compiled_autograd"]
        _bound[name] = Bound(getattr(theirs.ops, name).fn)
    return _bound[name]


def share_bound() -> None:
    """Give torch's own compiled autograd the functions that were bound here."""
    if (theirs := sys.modules.get("torch._dynamo.compiled_autograd")) is None:
        return
    for name, each in _bound.items():
        if not each.is_custom and not hasattr(theirs.ops, name):
            theirs.ops.add(name, each.function, False, True)


_TRACING = "[Compiled Autograd Tracing:]"
"""Begins the messages of C++ where those of eager autograd name the function."""


class NodeFunction:
    """A kind of autograd node as a function: gradients and saved values in, gradients out.

    `expected`, a keyword of the call, has the sizes of the results, and `metadata` the rest of what
    the engine checks. A result that differs from those that it has accepted is given to it: it is
    reduced, converted or refused as in eager autograd.
    """

    def __init__(
        self,
        name: str,
        function: Callable[..., Sequence[Gradient]],
        metadata: tuple[Metadata | None, ...] = (),
        runs_user_code: bool = False,
    ) -> None:
        self.__name__ = self.__qualname__ = name
        self.__module__ = "autograd"
        self.function = function
        self.metadata = metadata
        self.runs_user_code = runs_user_code
        self._accepted: Sequence[Any] = [None] * len(metadata)

    def expecting(self, metadata: tuple[Metadata | None, ...]) -> "NodeFunction":
        return NodeFunction(self.__name__, self.function, metadata, self.runs_user_code)

    def __call__(self, *args: object, expected: Sequence[Any] = ()) -> Sequence[Gradient]:
        results = self.function(*args)
        for result, accepted, size in zip(results, self._accepted, expected, strict=False):
            if result is None or size is None:
                continue
            if result.shape != size or (result.dtype, result.device) != accepted:
                return self._validated(results, expected)
        return results

    def _validated(self, results: Sequence[Gradient], sizes: Sequence[Any]) -> Sequence[Gradient]:
        pairs = zip(self.metadata, sizes, strict=True)
        metadata = [one and (one[0], [*size], one[1], one[2]) for one, size in pairs]
        try:
            validated: Sequence[Gradient] = bound("validate_outputs").function([*results], metadata)
        except RuntimeError as error:
            begin = f"Function {self.__name__} returned an "
            raise RuntimeError(str(error).replace(_TRACING, begin)) from None
        self._accepted = [each if each is None else (each.dtype, each.device) for each in validated]
        return validated


def accumulate(first: Gradient, second: Gradient) -> Gradient:
    """Return the sum of two gradients of one value; None is one that is zero everywhere."""
    if first is None or second is None:
        return second if first is None else first
    if first.layout is not torch.strided and second.layout is torch.strided:
        return second + first
    return first + second


def accumulate_grad(variable: Tensor, gradient: Gradient, has_post_hooks: bool) -> None:
    """Add a gradient to `variable.grad` as the engine does.

    The first gradient becomes `variable.grad` itself where nobody else has it. The native
    function, which has to copy it, does everything else.
    """
    if gradient is None:
        return

    current = variable.grad
    if current is None and _may_be_taken(variable, gradient):
        variable.grad = gradient.detach()
        return
    (updated,) = bound("AccumulateGrad").function([gradient], variable, current, has_post_hooks)
    if updated is not current:
        variable.grad = updated


def _may_be_taken(variable: Tensor, gradient: Tensor) -> bool:
    if torch.is_grad_enabled() or references(gradient) > _UNSHARED or use_count(gradient) > 1:
        return False
    if gradient.is_sparse:
        return True
    return gradient.layout is torch.strided and gradient.stride() == variable.stride()


use_count: Callable[[Tensor], int] = getattr(Tensor, "_use_count")  # no stub has it


def references(value: object, calls: int = 0) -> int:
    """Count the references to a value, below so many more calls."""
    return references(value, calls - 1) if calls else sys.getrefcount(value)


def _count_unshared() -> int:
    """Count the references to a value that only the graph's function has, and hands on."""
    value = object()
    return references(value, 2)


_UNSHARED = _count_unshared()


# Hooks. None leaves what a hook was given; else the engine checks what it returned.


def tensor_pre_hook(hook: Callable[..., Any], gradient: Gradient) -> Gradient:
    result = hook(gradient)
    return gradient if result is None else _checked(gradient, result, hook)


def pre_hook(hook: Callable[..., Any], gradients: Sequence[Gradient]) -> Sequence[Gradient]:
    return _all_checked(gradients, hook(tuple(gradients)), hook)


def post_hook(
    hook: Callable[..., Any], results: Sequence[Gradient], gradients: Sequence[Gradient]
) -> Sequence[Gradient]:
    return _all_checked(results, hook(tuple(results), tuple(gradients)), hook)


def post_accumulate_grad_hook(hook: Callable[..., Any], variable: Tensor, after: None) -> None:
    if (result := hook(variable)) is not None:
        _checked(variable, result, hook)


def _all_checked(
    values: Sequence[Gradient], results: object, hook: Callable[..., Any]
) -> Sequence[Gradient]:
    if results is None:
        return values
    if not isinstance(results, tuple):
        raise TypeError(f"expected tuple, but hook returned '{type(results).__name__}'")
    if len(results) != len(values):
        counts = f"(got {len(results)}, but expected {len(values)})"
        raise RuntimeError(
            f"hook '{_name(hook)}' has returned an incorrect number of values {counts}"
        )
    pairs = zip(values, results, strict=True)
    return [_checked(value, result, hook) for value, result in pairs]


def _checked(value: Gradient, result: object, hook: Callable[..., Any]) -> Gradient:
    if result is None:
        return None
    if value is None:
        raise RuntimeError("can't replace a None gradient with a non-None value")
    if not isinstance(result, Tensor):
        raise TypeError(f"expected Variable, but hook returned '{type(result).__name__}'")
    if result.dtype is not value.dtype or result.device != value.device:
        types = f"(was {value.type()} got {result.type()})"
        raise RuntimeError(f"hook '{_name(hook)}' has changed the type of value {types}")
    if result.shape != value.shape:
        raise RuntimeError(f"hook '{_name(hook)}' has changed the size of value")
    return result


def _name(hook: Callable[..., Any]) -> str:
    return getattr(hook, "__name__", "<unknown>")


def without_history() -> Unsupported:
    """Return the refusal of a backward that may need the history of what a hook unpacks.

    C++ does not pass that on.
    """
    detail = "the history of a saved tensor that a hook unpacks"
    return Unsupported("backward-capture", detail, "the backward runs uncaptured")


def unpack(hook: Callable[[Any], Tensor], packed: object) -> Tensor:
    """Return a saved tensor from what a hook has made of it."""
    value = hook(packed)
    if not isinstance(value, Tensor):
        raise TypeError(
            "Output of saved tensor unpack_hook expected to be a Tensor "
            f"but got result of type {type(value).__name__}"
        )
    return value


# Functions written in Python.


class FunctionContext:
    """The context of a `torch.autograd.Function`, with the saved tensors that the graph was
    given."""

    def __init__(self, context: object, saved: Sequence[Gradient]) -> None:
        object.__setattr__(self, "_context", context)
        object.__setattr__(self, "saved_tensors", tuple(saved))

    def __getattr__(self, name: str) -> Any:
        return getattr(self._context, name)

    def __setattr__(self, name: str, value: object) -> None:
        setattr(self._context, name, value)

    def maybe_clear_saved_tensors(self) -> None:
        """Release the saved tensors; a backward that AOTAutograd has compiled calls this."""
        object.__setattr__(self, "saved_tensors", ())


def call_backward(
    context: Any, saved: list[Gradient], gradients: list[Gradient], variables: Sequence[bool]
) -> Sequence[Gradient]:
    """Return the gradients of those inputs of a function that are `variables`.

    Both lists are emptied: a compiled backward releases each tensor after its last use.
    """
    backward = context._get_user_fn()
    given = FunctionContext(context, saved)
    saved.clear()
    if None in gradients and _materializes(context._forward_cls):
        gradients[:] = _materialized(gradients, context)
    if getattr(context._forward_cls, "boxed_grads_call", False):
        results = backward(given, gradients)
    else:
        results = backward(given, *gradients)

    results = results if isinstance(results, tuple) else (results,)
    count = len(variables)
    if all(each is None for each in results[count:]):
        results = results[:count]
    name = type(context).__name__
    if len(results) != count:
        raise RuntimeError(
            f"function {name} returned an incorrect number of gradients"
            f" (expected {count}, got {len(results)})"
        )
    _check_gradients(name, results, variables)
    return [result for result, variable in zip(results, variables, strict=True) if variable]


@functools.cache
def _materializes(function: Any) -> bool:
    """Return False for a function that may have refused zeros in place of undefined gradients.

    A context does not show it.
    """
    parts = function.forward, function.setup_context
    names = [getattr(inspect.unwrap(part), "__code__", None) for part in parts]
    return not any("set_materialize_grads" in code.co_names for code in names if code)


def _materialized(gradients: Sequence[Gradient], context: Any) -> list[Gradient]:
    """Return the gradients with zeros in place of those that are undefined."""
    return [
        torch.zeros(expected.shape, dtype=expected.dtype, device=expected.device)
        if gradient is None
        else gradient
        for gradient, expected in zip(gradients, context._input_metadata, strict=True)
    ]


def _check_gradients(name: str, results: Iterable[Any], variables: Iterable[bool]) -> None:
    for position, (result, variable) in enumerate(zip(results, variables, strict=True), 1):
        if result is None:
            continue
        if not variable:
            raise RuntimeError(
                f"function {name} returned a gradient different than None at position {position},"
                " but the corresponding forward input was not a Variable"
            )
        if not isinstance(result, Tensor):
            raise RuntimeError(f"expected Variable or None (got {type(result).__name__})")


def given_list(*values: object) -> list[Any]:
    """Return a list that alone refers to what the graph's function does not use any more."""
    return [*values]


def part_of(graph: Graph, node: Node, i: int) -> Node:
    """Add a node for one result of a node that has several."""
    return graph.create_node("call_function", operator.getitem, (node, i), name=f"{node.name}_{i}")


def run_native_hooks(index: int, gradient: Gradient) -> Gradient:
    """Call a hook that is written in C++: `retain_grad` is one."""
    hooks: Any = torch._C._dynamo.compiled_autograd
    changed: Gradient = hooks.call_cpp_tensor_pre_hooks(index, gradient)
    return changed


# Writes to a part of a tensor: the gradient of the part is cut out of that of the whole.


def cut_out(
    gradient: Tensor,
    base: tuple[Sequence[int], Sequence[int], int],
    view: tuple[Sequence[int], Sequence[int], int],
) -> tuple[Tensor, Tensor, Tensor]:
    """Return a copy of the gradient laid out as the base, its part, and a copy of the part."""
    sizes, strides, start = base
    whole = gradient.new_empty_strided(sizes, strides)
    whole.copy_(gradient)
    part = whole.as_strided(view[0], view[1], view[2] - start)
    return whole, part, part.clone(memory_format=torch.contiguous_format)


def put_back(
    needed: Sequence[bool], whole: Tensor, part: Tensor, results: Sequence[Gradient]
) -> list[Gradient]:
    """Write the gradient of the part into that of the whole, which becomes the first result."""
    gradients: list[Gradient] = [None] * len(needed)
    for i, (is_needed, result) in enumerate(zip(needed, results, strict=False)):
        if not is_needed or result is None:
            continue
        if i == 0:
            part.copy_(result)
        gradients[i] = whole if i == 0 else result
    return gradients


_USER_CODE = {
    tensor_pre_hook,
    pre_hook,
    post_hook,
    post_accumulate_grad_hook,
    unpack,
    run_native_hooks,
}


def runs_user_code(node: Node) -> bool:
    """Return True for a call of what the program wrote: no compiler may see, move or repeat it."""
    target = node.target
    return target in _USER_CODE or (isinstance(target, NodeFunction) and target.runs_user_code)
