"""The functions of torch of which a call is one node of the graph."""

import types
from typing import Any

import torch
import torch.nn.functional as F

NOT_RECORDED = frozenset(
    "numpy data_ptr storage untyped_storage __reduce_ex__ __repr__ __deepcopy__ backward "
    "register_hook tolist __array__ __format__ __str__ __hash__ __bool__ __contains__ __iter__ "
    "retain_grad share_memory_ __dlpack__ resize_ set_ requires_grad_ apply_ map_ map2_ "
    "register_post_accumulate_grad_hook __torch_function__ as_subclass _make_subclass is_set_to "
    "__setstate__ __dir__ __reversed__ __rdiv__ type __len__".split()
)

_C: Any = torch._C  # its stubs lack three of these
_C_NAMESPACES = (
    _C._VariableFunctions,
    _C._nn,
    _C._special,
    _C._linalg,
    _C._fft,
    _C._nested,
    _C._sparse,
)
_PYTHON_MODULES = ("torch.nn.functional", "torch.functional")
_OVERRIDE_CHECKS = ("has_torch_function", "has_torch_function_unary", "has_torch_function_variadic")
_INLINED_FUNCTIONAL = frozenset(
    getattr(F, name) for name in (*_OVERRIDE_CHECKS, "handle_torch_function")
)


def _recorded_functions() -> frozenset[Any]:
    found: set[Any] = set()
    for namespace in _C_NAMESPACES:
        named = [getattr(namespace, name) for name in dir(namespace) if not name.startswith("__")]
        found |= {value for value in named if callable(value)}
    for module in (F, torch.functional):
        for value in [*vars(module).values()]:
            if isinstance(value, types.FunctionType) and value.__module__ in _PYTHON_MODULES:
                found.add(value)

    found |= {
        torch.tensor,
        torch.sym_max,
        torch.sym_min,
        torch.sym_not,
        torch.sym_ite,
        torch.sym_int,
        torch.sym_float,
    }

    found -= {
        torch.is_grad_enabled,
        torch.get_default_dtype,
        torch.result_type,
        torch.can_cast,
        torch.promote_types,
    }
    return frozenset(found - _INLINED_FUNCTIONAL)


RECORDED = _recorded_functions()
TENSOR_PYTHON_METHODS = frozenset(
    value
    for name, value in vars(torch.Tensor).items()
    if isinstance(value, types.FunctionType)
    and name not in {*NOT_RECORDED, "unflatten"}  # in C that is recorded
)


def is_recorded(target: Any) -> bool:
    """Return True if a call of `target` is one node of the graph."""
    kind = type(target)
    if kind in (types.MethodDescriptorType, types.WrapperDescriptorType):
        return target.__objclass__ is torch._C.TensorBase and target.__name__ not in NOT_RECORDED
    if kind in (torch._ops.OpOverload, torch._ops.OpOverloadPacket):
        return True
    try:
        return target in RECORDED or target in TENSOR_PYTHON_METHODS
    except TypeError:
        return False
