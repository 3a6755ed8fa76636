"""Python functions that are not traced into: marked ones, and the machinery of torch."""

import sys
from collections.abc import Set
from types import CodeType, FunctionType
from typing import Any
from warnings import catch_warnings, filterwarnings, resetwarnings, simplefilter

import torch
from torch.nested._internal.nested_tensor import jagged_from_tensor_and_lengths
from torch.nn import Module
from torch.nn.modules.lazy import LazyModuleMixin
from torch.nn.parallel import DistributedDataParallel

from stator_variables._defining_module import module_of
from stator_variables._space import Space
from stator_variables._trackers import FunctionTracker


def _of_torch(names: str) -> tuple[str, ...]:
    return tuple(f"torch.{name}" for name in names.split())


NATIVE_MODULES = _of_torch(
    "_compile _dynamo _functorch _inductor _logging _subclasses autograd distributed fx jit "
    "multiprocessing onnx optim.lr_scheduler profiler serialization "
    "utils.checkpoint utils.data"
)
NATIVE_MODULES += ("linecache", "tokenize", "traceback")
"""Modules without model code: a call of a function defined there runs natively."""

INLINED_MODULES = _of_torch(
    "autograd.forward_ad autograd.function autograd.grad_mode _functorch.apis "
    "_functorch.eager_transforms _functorch.functional_call _functorch.predispatch "
    "_functorch.utils fx.graph_module _functorch.vmap fx.traceback fx._pytree _dynamo.comptime "
    "distributed._functional_collectives distributed.tensor.experimental._func_map "
    "distributed.tensor._api distributed.tensor.parallel distributed.tensor.placement_types"
)
"""Exceptions from these."""

INLINED_FUNCTIONS = (
    # the step of an optimizer that has a scheduler of learning rates, which counts it
    "patch_track_step_called.<locals>.wrap_step.<locals>.wrapper",
    # a function decorated with a context manager
    "wrap_dunder_call_ctx_manager.<locals>.inner",
    # a function that TorchScript compiles only while it traces, and a check for TorchScript
    "_script_if_tracing.<locals>.wrapper",
    "_unwrap_optional",
    # a function of arrays that takes tensors
    "wrap_numpy",
    "wrap_numpy.<locals>.wrap",
    "wrap_numpy.<locals>.wrap.<locals>.<lambda>",
)
"""The ends of names of functions that are exceptions, too."""

NATIVE_TRANSFORMS = (
    "functionalize",
    "linearize",
    "restore_vmap",
    "_flat_vmap",
    "_chunked_vmap",
    "_vjp_with_argnums",
)
"""Functions of torch.func that enter levels of the interpreter stack, which nothing here
represents."""

COMPOSED_TRANSFORMS = frozenset({"jacrev.<locals>.wrapper_fn", "jacfwd.<locals>.wrapper_fn"})
"""Transforms that torch composes of others in Python: a break anywhere in one is a break at it, so
it costs one."""


def is_composed(function: FunctionTracker) -> bool:
    """Return True for a transform of torch.func that is composed of others."""
    is_named_so = function.code.co_qualname in COMPOSED_TRANSFORMS
    return (
        is_named_so and function.globals.real.get("__name__") == "torch._functorch.eager_transforms"
    )


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
    | {Module.requires_grad_}
    | {jagged_from_tensor_and_lengths}
) | {catch_warnings.__enter__, catch_warnings.__exit__, filterwarnings, simplefilter, resetwarnings}
"""Functions that read storages, autograd nodes, flags of parameters or many values, or filter
warnings: one break each, not one for each such step."""


_MARKS = ("_torchdynamo_disable", "_stator_disable", "_dynamo_forbidden")


def refuse_native(t: Space, function: FunctionTracker) -> None:
    """Raise Unsupported for an existing function that is to run natively."""
    real = function.real
    if real is LazyModuleMixin._infer_parameters:
        raise t.unsupported(
            "uninitialized-parameter", "the first call of a lazy module, which makes its parameters"
        )
    if any(getattr(real, mark, False) for mark in _MARKS):
        reason = getattr(real, "_torchdynamo_disable_msg", None)
        because = f": {reason}" if reason else ""
        detail = f"{function.qualname} is marked to run without being compiled{because}"
        raise t.unsupported("disabled", detail)

    module = str(real.__globals__.get("__name__"))
    inlined = _is_in(module, INLINED_MODULES) and not function.code.co_qualname.startswith(
        NATIVE_TRANSFORMS
    )
    inlined = inlined or real is torch.jit.annotate or _is_forward(real, module)
    inlined = inlined or function.code.co_qualname.endswith(INLINED_FUNCTIONS)
    if real in NATIVE_FUNCTIONS or (_is_in(module, NATIVE_MODULES) and not inlined):
        raise t.unsupported(
            "not-inlined", f"{module}.{function.qualname} is of a module that is not traced into"
        )


def _is_forward(function: Any, module: str) -> bool:
    """Return True for the `forward` of an `nn.Module`: part of a model, wherever it is defined.

    `AveragedModel` is in `optim.swa_utils`. Those of `distributed` read their parameters from
    elsewhere.
    """
    owner, _, name = function.__qualname__.rpartition(".")
    cls = function.__globals__.get(owner) if name == "forward" else None
    return (
        isinstance(cls, type)
        and issubclass(cls, Module)
        and not _is_in(module, _of_torch("distributed"))
    )


def _is_in(module: str, packages: tuple[str, ...]) -> bool:
    return module in packages or module.startswith(tuple(f"{package}." for package in packages))


_BREAKS = ("graph_break", "step_unsupported")


def is_graph_break(function: object) -> bool:
    """Return True if calling `function` requests a break: that of stator, or one of torch."""
    if getattr(function, "_stator_graph_break", False):
        return True

    module = sys.modules.get("torch._dynamo")
    # A loop, as this is tested for each call that is traced.
    for name in _BREAKS:
        if function is getattr(module, name, _BREAKS):
            return True
    return skips_frame(function)


def skips_frame(function: object) -> bool:
    """Return True if a calling frame is to run natively: for `skip_frame` of stator and of
    torch."""
    torchs = getattr(sys.modules.get("torch._dynamo"), "skip_frame", _BREAKS)
    return function is torchs or getattr(function, "_stator_skip_frame", False)


NATIVE_FRAMES = frozenset(
    {DistributedDataParallel.forward, DistributedDataParallel._run_ddp_forward}
)
"""Functions of torch that do nothing but bookkeeping around calls of the program's modules: objects
of C++ are prepared, and buffers synchronized."""


def is_native_frame(function: Any, skipped: Set[CodeType] = frozenset()) -> bool:
    """Return True for a function that runs natively, while what it calls is compiled."""
    is_marked = getattr(function, "_torchdynamo_disable_recursive", True) is False
    return is_marked or function in NATIVE_FRAMES or function.__code__ in skipped


def has_native_hooks(module: Any) -> bool:
    """Return True for a module with a hook of torch that runs natively, as `fully_shard` gives it:
    its call is crossed as a whole, with one break, and its `forward` is compiled."""
    hooks = *module._forward_pre_hooks.values(), *module._forward_hooks.values()
    functions = [getattr(hook, "__func__", hook) for hook in hooks]
    return any(_is_in(str(module_of(each)), _of_torch("distributed.fsdp")) for each in functions)


ALLOWED, DISALLOWED = "_allowed_callable_ids", "_disallowed_callable_ids"
NONSTRICT, LEAF = "_nonstrict_trace_callable_ids", "_leaf_function_ids"
MARKED: dict[str, dict[int, Any]] = {ALLOWED: {}, DISALLOWED: {}, NONSTRICT: {}}
"""Functions that the program has marked through stator, by the registry of torch for the same
mark."""
SUBSTITUTES: dict[int, tuple[Any, Any]] = {}
"""The function that is traced in the place of another, with that, by the identity of the latter."""


def substitute_of(target: object) -> Any:
    """Return the function that the program has put in place of another, here or through torch.

    None without one. Those that torch has itself are for functions that have handlers here.
    """
    if (found := SUBSTITUTES.get(id(target))) is not None:
        return found[1]
    rules = sys.modules.get("torch._dynamo.trace_rules")
    if id(target) not in getattr(rules, "_polyfilled_function_ids", ()):
        return None
    functions: Any = sys.modules["torch._dynamo.variables.functions"]
    registered = functions.PolyfilledFunctionVariable._get_polyfill_handlers().get(target)
    traceable = getattr(registered, "__torch_dynamo_polyfill__", None)
    is_own = str(getattr(traceable, "__module__", "")).startswith("torch.")
    return None if is_own else traceable


def has_mark(function: object, *marks: str) -> bool:
    """Return True if the program has put one of the marks on `function`, here or through torch."""
    rules = sys.modules.get("torch._dynamo.trace_rules")
    key = id(function)
    for mark in marks:  # noqa: SIM110
        if key in MARKED.get(mark, ()) or key in getattr(rules, mark, ()):
            return True
    return False


def is_allowed_in_graph(function: object) -> bool:
    """Return True if a call of `function` is one node, which is never looked into."""
    return getattr(function, "_stator_in_graph", False) or has_mark(function, ALLOWED)


def refuse_disallowed(t: Space, target: object) -> None:
    """Raise Unsupported for a function that `disallow_in_graph` was applied to."""
    if has_mark(target, DISALLOWED):
        name = getattr(target, "__name__", repr(target))
        raise t.unsupported("disabled", f"{name} is marked to stay out of graphs")


def is_assumed_constant(function: object) -> bool:
    """Return True if torch's `assume_constant_result` was applied: the result of one call holds for
    all."""
    return bool(getattr(function, "_dynamo_marked_constant", False))


_DISABLED = torch._compile._disable_dynamo(torch.random.manual_seed).__code__
_WRAPPED = {"torch._dynamo.mutation_guard": "init", "torch._dynamo.external_utils": "func"}
"""The free variable that holds the wrapped function, by the module of the wrapper."""
_ENTERED = ("ErrorOnGraphBreakDecoratorContextManager", "CudagraphOverrideContextManager")
"""Managers of decorated functions that are no bookkeeping."""
_TRACED = (torch.random.manual_seed, getattr(torch.optim.Optimizer.zero_grad, "__wrapped__"))


def behind_bookkeeping(function: Any) -> Any:
    """The function that torch.compile wrapped for its own bookkeeping (it patches
    `Module.__init__`, and runs the guards of an exported module under settings of its own), or
    replaced by one that it does not trace (`torch.manual_seed`;
    `Adam._init_group`, with its first use), else None."""
    if function.__code__ is _DISABLED and function.__wrapped__ in _TRACED:
        return function.__wrapped__
    if getattr(function, "_torchdynamo_disable", False):
        original = getattr(function, "_torchdynamo_orig_callable", None)
        is_of_optimizer = isinstance(original, FunctionType) and _is_in(
            module_of(original), _of_torch("optim")
        )
        return original if is_of_optimizer else None

    name = _WRAPPED.get(str(getattr(function, "__module__", None)))
    if name is None or module_of(function) not in _WRAPPED:
        return None
    cells = dict(zip(function.__code__.co_freevars, function.__closure__ or (), strict=False))
    manager = cells["self"].cell_contents if "self" in cells else None
    is_followed = "dont_skip_tracing" not in getattr(manager, "changes", {"dont_skip_tracing"})
    if is_followed or type(manager).__name__ in _ENTERED:
        return None
    return cells[name].cell_contents if name in cells else None
