"""Attributes of tensors: metadata from the fake tensor, views as nodes, the rest as ordinary attributes."""

from __future__ import annotations

from typing import Any

import torch
from stator_guards import AttrSource, GradSource

from stator_variables import _dictionary, _torch_calls
from stator_variables import _kinds as k
from stator_variables._build import wrap
from stator_variables._tracing import Tracing
from stator_variables._tracker import MISSING

_METADATA = frozenset(
    "shape dtype device layout ndim requires_grad is_leaf is_cuda is_cpu is_mps is_xpu is_meta is_sparse is_quantized "
    "is_nested is_mkldnn is_xla is_vulkan is_ipu is_maia is_mtia is_sparse_csr itemsize nbytes names output_nr".split()
)
_VIEWS = frozenset("T mT H mH real imag".split())


def read(t: Tracing, vt: Any, name: str) -> Any:
    """A Result, or MISSING when `name` is an ordinary attribute (a method, or one the user has set)."""
    if name in _METADATA:
        return _metadata(t, vt, name)
    if name in _VIEWS:
        try:
            return _torch_calls.from_traced(t, t.graph.attribute(vt.traced, name), [vt])
        except RuntimeError as error:
            raise _torch_calls.operator_error(t, error) from error
    if name in ("grad", "grad_fn"):
        return _autograd(t, vt, name)
    if name in ("data", "_backward_hooks", "_base", "_version"):
        raise t.unsupported("tensor-attribute", f"the attribute {name} of a tensor")
    return own(t, vt, name)


def _autograd(t: Tracing, vt: Any, name: str) -> Any:
    """`grad` and `grad_fn` of an input are read as they are: nothing that is traced changes them."""
    if vt.source is not None:
        source = GradSource(vt.source) if name == "grad" else AttrSource(vt.source, name)
        return wrap(t, getattr(vt.real, name), source)
    if name == "grad_fn" and vt.example.grad_fn is None:
        return k.NONE
    raise t.unsupported("tensor-attribute", f"the attribute {name} of a tensor that is computed here")


def _metadata(t: Tracing, vt: Any, name: str) -> Any:
    _torch_calls.rely_on_placement(t, vt, name)
    value = getattr(vt.example, name)
    if name == "shape":
        return _torch_calls.metadata_value(t, value, "size", [vt], {})
    if name == "device" and value.type == "meta":
        value = vt.example.fake_device
    return k.ConstantTracker(value)


def own(t: Tracing, vt: Any, name: str) -> Any:
    """An attribute that the user has set on the tensor object."""
    if vt.namespace is None and vt.real is not MISSING and vt.source is not None:
        from stator_variables._build import with_namespace

        with_namespace(t, vt, vt.real, vt.source)
    if vt.namespace is None or hasattr(torch.Tensor, name):
        return MISSING
    return _dictionary.get_name(t, vt.namespace, name)


def write(t: Tracing, vt: Any, name: str, value: Any) -> Any:
    if hasattr(torch.Tensor, name):
        raise t.unsupported("tensor-attribute-write", f"setting {name} of a tensor")
    if vt.namespace is None:
        own(t, vt, name)
    if vt.namespace is None:
        from stator_variables._build import new_namespace

        new_namespace(vt)
    if value is MISSING:
        _dictionary.remove(t, vt.namespace, name)
    else:
        _dictionary.set_name(t, vt.namespace, name, value)
    return None
