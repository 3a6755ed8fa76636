"""Functions with torch's marks `nonstrict_trace` and `leaf_function`: one node that calls the
function itself.

Its arguments and results are pytrees; a module among them is itself, with the tensors that the
graph has for its own.
"""

import contextlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import torch
from stator_bytecode import OperationSteps, Result, operation, settle
from stator_bytecode.errors import Unsupported
from stator_guards import CapturedSource
from torch._subclasses.fake_tensor import FakeTensor, fake_tensor_tls
from torch.nn import Module
from torch.overrides import TorchFunctionMode
from torch.utils import _pytree as pytree

from stator_variables._applevel import _marked_function
from stator_variables._handler_keys import MARKED_BY_TORCH
from stator_variables._objects import _new_values
from stator_variables._objects._inlining import NONSTRICT, has_mark
from stator_variables._objects._method_table import app_level
from stator_variables._objects._substitutes import known_value
from stator_variables._objects._tuple import TupleTracker
from stator_variables._space import Space
from stator_variables._tensors._torch_calls import argument, from_traced
from stator_variables._tracker import Args, FunctionTable, Kwargs

handlers = FunctionTable("marked function")


@handlers.handles(MARKED_BY_TORCH)
@operation
def call_marked(t: Space, args: Args, kwargs: Kwargs) -> OperationSteps:
    function, *rest = args
    given = [function, TupleTracker(rest), _new_values.new_dict(kwargs)]
    return (yield from settle(app_level(t, _marked_function.call_marked, given)))


@handlers.handles(_marked_function.record)
def record(t: Space, args: Args, kwargs: Kwargs) -> Result:
    function, leaves, outline, states = args[0].real, args[1].items, args[2], args[3].items
    held = {index: known_value(t, leaf) for index, leaf in enumerate(leaves) if _is_held(leaf)}
    given = [None if index in held else argument(t, leaf) for index, leaf in enumerate(leaves)]
    tensors = [{key.constant(): item.traced for key, item in t.items(state)} for state in states]
    made: list[Any] = []
    target = _node(function, _spec(t, outline), held, made)
    with _Noticing(t, function) if has_mark(function, NONSTRICT) else contextlib.nullcontext():
        traced = t.graph.call(target, (given, tensors), {})
    operands = [*leaves, *(item for state in states for _, item in t.items(state))]
    results = from_traced(t, traced, operands)
    return TupleTracker([results, t.wrap(made[0], CapturedSource("structure", made[0]))])


def _is_held(leaf: Any) -> bool:
    return issubclass(leaf.cls, Module) or pytree.is_constant_class(leaf.cls)


def _spec(t: Space, outline: Any) -> Any:
    cls, context, children = outline.items
    if cls.constant() is None:
        return pytree.treespec_leaf()
    return pytree.TreeSpec(
        known_value(t, cls), known_value(t, context), [_spec(t, child) for child in children.items]
    )


ModuleTensors = Mapping[tuple[int, str], torch.Tensor]


# -- the node --------------------------------------------------------------------------------------
def _node(
    function: Callable[..., Any], spec: Any, held: Mapping[int, Any], made: list[Any]
) -> Callable[..., Any]:
    """`function` over the flat leaves of its arguments and the tensors of each module: its flat
    results."""
    opened = _allowing if has_mark(function, NONSTRICT) else contextlib.nullcontext

    def call(leaves: Sequence[Any], tensors: Sequence[ModuleTensors]) -> list[Any]:
        given = [held.get(index, leaf) for index, leaf in enumerate(leaves)]
        modules = [leaf for leaf in given if isinstance(leaf, Module)]
        args, kwargs = pytree.tree_unflatten(given, spec)
        with contextlib.ExitStack() as stack:
            for module, state in zip(modules, tensors, strict=True):
                stack.enter_context(_having(module, state))
            stack.enter_context(opened())
            results, structure = pytree.tree_flatten(function(*args, **kwargs))
        if structure != (made or [structure])[0]:
            raise RuntimeError(f"{call.__qualname__} gave {made[0]} before, and {structure} now")
        made[:] = [structure]
        return results

    call.__name__ = call.__qualname__ = function.__name__
    call._stator_in_graph = True  # type: ignore[attr-defined]
    return call


@contextlib.contextmanager
def _having(module: Module, state: ModuleTensors) -> Iterator[None]:
    """The module with these tensors, by the number of the module in it and the name. What is the
    same is left."""
    parts, before = list(module.modules()), []
    for (index, name), tensor in state.items():
        table: Any = (
            parts[index]._parameters if name in parts[index]._parameters else parts[index]._buffers
        )
        if table[name] is not tensor:
            before.append((table, name, table[name]))
            table[name] = tensor
    try:
        yield
    finally:
        for table, name, tensor in before:
            table[name] = tensor


@contextlib.contextmanager
def _allowing() -> Iterator[None]:
    """Tensors from outside are constants for a compiler that looks into the function."""
    before = fake_tensor_tls.allow_non_fake_inputs_override
    fake_tensor_tls.allow_non_fake_inputs_override = True
    try:
        yield
    finally:
        fake_tensor_tls.allow_non_fake_inputs_override = before


class _Noticing(TorchFunctionMode):
    """Constants have no gradients, and compilers do not keep them for backward: a function that
    uses a tensor from outside where gradients are at stake is left to Python."""

    def __init__(self, t: Space, function: Any) -> None:
        super().__init__()
        self.t, self.function = t, function

    def __torch_function__(
        self, func: Any, types: object, args: Any = (), kwargs: Any = None
    ) -> Any:
        tensors = [
            leaf for leaf in pytree.tree_leaves((args, kwargs)) if isinstance(leaf, torch.Tensor)
        ]
        wanted = torch.is_grad_enabled() and any(tensor.requires_grad for tensor in tensors)
        if wanted and not all(isinstance(tensor, FakeTensor) for tensor in tensors):
            detail = f"a tensor from outside of {self.function.__qualname__}, with gradients"
            raise Unsupported("real-tensor", detail, "pass it as an argument", self.t.where())
        return func(*args, **(kwargs or {}))
