"""Which Python functions are not traced into: those marked so, and the machinery of torch."""

import sys
import types
from typing import Any
from warnings import catch_warnings, filterwarnings, resetwarnings, simplefilter

import torch
from torch.nested._internal.nested_tensor import jagged_from_tensor_and_lengths
from torch.nn.modules.lazy import LazyModuleMixin

from stator_variables._space import Space


def _of_torch(names: str) -> tuple[str, ...]:
    return tuple(f"torch.{name}" for name in names.split())


NATIVE_MODULES = _of_torch(
    "_compile _dynamo _functorch _inductor _logging _subclasses autograd distributed fx jit multiprocessing onnx "
    "optim.lr_scheduler optim.swa_utils profiler serialization utils.checkpoint utils.data"
)
NATIVE_MODULES += ("linecache", "tokenize", "traceback")
"""Not model code: a call of a function defined there runs natively."""

INLINED_MODULES = _of_torch(
    "autograd.function autograd.grad_mode _functorch.apis _functorch.eager_transforms _functorch.functional_call "
    "_functorch.utils fx.graph_module _functorch.vmap distributed._functional_collectives "
    "distributed.tensor.experimental._func_map fx.traceback"
)
"""Exceptions from these."""

COUNTED_STEP = "patch_track_step_called.<locals>.wrap_step.<locals>.wrapper"
"""The step of an optimizer that has a scheduler of learning rates, which counts it."""

NATIVE_TRANSFORMS = (
    "functionalize",
    "linearize",
    "restore_vmap",
    "_flat_vmap",
    "_chunked_vmap",
    "_vjp_with_argnums",
)
"""Of torch.func: they enter levels of the interpreter stack that nothing here stands for."""

_METHODS = (
    "__array__ __deepcopy__ __dlpack__ __reduce_ex__ __repr__ __setstate__ register_hook "
    "register_post_accumulate_grad_hook share_memory_ storage"
)
NATIVE_FUNCTIONS = frozenset(
    {
        *map(vars(torch.Tensor).get, _METHODS.split()),
        torch._utils._rebuild_tensor_v2,
        torch._utils._rebuild_parameter,
    }
    | {torch.nn.Module.requires_grad_}
    | {jagged_from_tensor_and_lengths}
) | {catch_warnings.__enter__, catch_warnings.__exit__, filterwarnings, simplefilter, resetwarnings}
"""They look into storages and autograd nodes, filter warnings, take the flags of parameters, or look at many
values: one break each, not one for each such step."""


def refuse_native(t: Space, function: Any) -> None:
    """Raise Unsupported for an existing function that is to run natively."""
    real = function.real
    if is_graph_break(real):
        raise t.unsupported(
            "graph-break", "a call of graph_break()", "remove the call to keep one graph"
        )
    if real is LazyModuleMixin._infer_parameters:
        raise t.unsupported(
            "uninitialized-parameter", "the first call of a lazy module, which makes its parameters"
        )
    if getattr(real, "_torchdynamo_disable", False) or getattr(real, "_stator_disable", False):
        raise t.unsupported(
            "disabled", f"{function.qualname} is marked to run without being compiled"
        )
    module = str(real.__globals__.get("__name__"))
    inlined = _is_in(module, INLINED_MODULES) and not function.code.co_qualname.startswith(
        NATIVE_TRANSFORMS
    )
    inlined = inlined or real is torch.jit.annotate or _is_forward(real, module)
    inlined = inlined or function.code.co_qualname.endswith(COUNTED_STEP)
    if real in NATIVE_FUNCTIONS or (_is_in(module, NATIVE_MODULES) and not inlined):
        raise t.unsupported(
            "not-inlined", f"{module}.{function.qualname} is of a module that is not traced into"
        )


def _is_forward(function: Any, module: str) -> bool:
    """Whether it is the `forward` of an `nn.Module`: part of a model, wherever it is defined (`AveragedModel` is in
    `optim.swa_utils`). Those of `distributed` find their parameters elsewhere."""
    owner, _, name = function.__qualname__.rpartition(".")
    cls = function.__globals__.get(owner) if name == "forward" else None
    return (
        isinstance(cls, type)
        and issubclass(cls, torch.nn.Module)
        and not _is_in(module, _of_torch("distributed"))
    )


def _is_in(module: str, packages: tuple[str, ...]) -> bool:
    return module in packages or module.startswith(tuple(f"{package}." for package in packages))


def is_graph_break(function: Any) -> bool:
    """Whether `function` is a request to break here: ours, or the one torch users already call."""
    if getattr(function, "_stator_graph_break", False):
        return True
    module = sys.modules.get("torch._dynamo")
    return isinstance(module, types.ModuleType) and function is getattr(module, "graph_break", None)


def is_allowed_in_graph(function: Any) -> bool:
    """Whether torch's `allow_in_graph` was applied: the call is one node, never looked into."""
    registry = getattr(sys.modules.get("torch._dynamo.trace_rules"), "_allowed_callable_ids", None)
    return getattr(function, "_stator_in_graph", False) or (
        registry is not None and id(function) in registry
    )


def is_assumed_constant(function: Any) -> bool:
    """Whether torch's `assume_constant_result` was applied: the result of one call holds for all."""
    return bool(getattr(function, "_dynamo_marked_constant", False))


_DISABLED = torch._compile._disable_dynamo(torch.random.manual_seed).__code__
_TRACED = (torch.random.manual_seed, getattr(torch.optim.Optimizer.zero_grad, "__wrapped__"))


def behind_bookkeeping(function: Any) -> Any:
    """The function that torch.compile wrapped for its own bookkeeping (it patches `Module.__init__`), or replaced by
    one that it does not trace (`torch.manual_seed`; `Adam._init_group`, with its first use), else None."""
    if function.__code__ is _DISABLED and function.__wrapped__ in _TRACED:
        return function.__wrapped__
    if getattr(function, "_torchdynamo_disable", False):
        original = getattr(function, "_torchdynamo_orig_callable", None)
        is_of_optimizer = _is_in(str(getattr(original, "__module__", "")), _of_torch("optim"))
        return original if is_of_optimizer else None
    if getattr(function, "__module__", None) != "torch._dynamo.mutation_guard":
        return None
    cells = dict(zip(function.__code__.co_freevars, function.__closure__ or (), strict=False))
    return cells["init"].cell_contents if "init" in cells else None
