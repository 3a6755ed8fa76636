"""Builders of tensors and arrays that exist."""

from typing import Any

import torch
from stator_guards import CallSource, Is, Source, TensorMatch, TypeIs
from torch import Tensor
from torch.nested._internal.nested_tensor import NestedTensor
from torch.nn.parameter import is_lazy

from stator_variables import _trackers as k
from stator_variables._objects._builder_table import BuilderTable
from stator_variables._objects._wrap import build_object, with_namespace
from stator_variables._pure import NUMPY
from stator_variables._runtime._support import plain_tensor, tensor_of
from stator_variables._space import Space
from stator_variables._tensors import _jagged_tensor, _wrappers
from stator_variables._tensors._history import history_of, is_behind
from stator_variables._tensors._tangent import guard_tangent, is_under_level
from stator_variables._trace._memory import InputMemory
from stator_variables._trace._overrides import Overrides
from stator_variables._tracker import VariableTracker

builders = BuilderTable()


@builders.by_base.handles(Tensor)
def build_tensor(t: Space, real: Tensor, source: Source) -> VariableTracker:
    if type(real) not in (Tensor, torch.nn.Parameter, torch.nn.Buffer):
        return build_subclass(t, real, source)
    if real.is_nested or real.is_mkldnn:  # the one has no sizes, the fake of the other is strided
        raise t.unsupported(
            "no-fake-tensor",
            f"{source} is a strided nested tensor, or one for MKL-DNN",
            "make nested tensors with layout=torch.jagged",
        )
    if is_behind(real):
        raise t.unsupported(
            "no-fake-tensor", f"{source} is a view whose base was written to with gradients"
        )

    t.keep_apart(source, real)
    guard_tangent(t, real, source)
    dims = t.policy.dims(source, real)
    traced = t.graph.tensor_input(source, real, dims, source.name)
    # The request may not be met: the base of a view that was read first has the sizes it had then.
    sizes = frozenset(i for i, size in enumerate(traced.example.shape) if _is_symbolic(size))
    strides = frozenset(
        i for i, dim in enumerate(dims) if dim.stride and _is_symbolic(traced.example.stride(i))
    )
    with t.caller_modes():
        t.guard(source, TensorMatch(real, sizes, strides))
    # `mark_static_address(tensor, guard=True)`
    if getattr(real, "_dynamo_static_input_type", None) == "guarded":
        t.guard(source, Is(real))
    vt = k.TensorTracker(traced, type(real))
    if real.requires_grad:
        vt.history = history_of(traced.example)
    return vt


def build_subclass(t: Space, real: Any, source: Source) -> VariableTracker:
    """Build the tracker of a tensor whose class differs from a plain one over its memory only in
    Python."""
    if is_under_level():
        raise t.unsupported("forward-derivatives", f"{source} is a {type(real).__qualname__}")
    if type(real) is NestedTensor:
        jagged: VariableTracker = _jagged_tensor.build(t, real, source)
        return jagged
    if _wrappers.is_wrapper(type(real)):
        wrapper: VariableTracker = _wrappers.build(t, real, source)
        return wrapper

    dispatches = type(real).__torch_dispatch__ is not Tensor.__torch_dispatch__
    if dispatches or is_lazy(real) or torch.is_inference_mode_enabled():
        raise t.unsupported("tensor-subclass", f"an input of class {type(real).__qualname__}")
    t.guard(source, TypeIs(type(real)))
    t.state(Overrides).subclasses = True
    plain, memory = plain_tensor(real), CallSource(plain_tensor, source)
    vt: Any = build_tensor(t, plain, memory)
    vt.real, vt.source = plain, memory
    return with_namespace(t, k.SubclassTracker(vt, type(real)), real, source)


_ARRAYS: tuple[type, ...] = () if NUMPY is None else (NUMPY.ndarray,)


@builders.by_base.handles(*_ARRAYS)
def build_array(t: Space, real: object, source: Source) -> VariableTracker:
    """An array as a tensor over its memory; what no tensor can be over is an object of which
    nothing is known."""
    if (tensor := tensor_of(real)) is None:
        return build_object(t, real, source)
    memory = CallSource(tensor_of, source)
    t.guard(source, TypeIs(type(real)))
    t.state(InputMemory).has_arrays = True
    vt: Any = build_tensor(t, tensor, memory)
    vt.real, vt.source = tensor, memory
    return k.ArrayTracker(vt, type(real))


def _is_symbolic(size: object) -> bool:
    return isinstance(size, torch.SymInt)
