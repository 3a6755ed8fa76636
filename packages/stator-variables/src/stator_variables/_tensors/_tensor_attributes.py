"""Attributes of tensors: metadata from the fake tensor, views as nodes, the rest as ordinary
attributes."""

import inspect
import operator
from typing import Any

import torch
from stator_bytecode import Frame, Result
from stator_guards import AttrSource, Custom, Equals, GradientSource
from torch import Tensor
from torch.nested._internal.nested_tensor import NestedTensor

from stator_variables._objects import _dict_entries
from stator_variables._objects._program_error import complain
from stator_variables._objects._wrap import new_namespace, with_namespace
from stator_variables._space import Space
from stator_variables._tensors import _jagged_tensor, _torch_calls, _wrappers
from stator_variables._tensors._history import LEAF, NO_LEAF, is_behind, keeps_flag
from stator_variables._trace._overrides import Overrides
from stator_variables._tracker import MISSING, VariableTracker, is_a
from stator_variables._trackers import NONE, ConstantTracker, TensorTracker, is_none

_NAMES = (
    "shape dtype device layout ndim requires_grad is_leaf is_cuda is_cpu is_mps is_xpu is_meta "
    "is_sparse is_quantized is_nested is_mkldnn is_xla is_vulkan is_ipu is_maia is_mtia "
    "is_sparse_csr itemsize nbytes names output_nr"
)
# releases drop some
_METADATA = frozenset(name for name in _NAMES.split() if hasattr(Tensor, name))
# what it keeps when its data is replaced
_HISTORY = frozenset({"requires_grad", "is_leaf", "output_nr", "grad_fn"})
_VIEWS = frozenset("T mT H mH real imag data".split())
_ZEROING = {
    code: code.co_varnames.index("set_to_none")
    for owner in (torch.optim.Optimizer, torch.nn.Module)
    for code in [inspect.unwrap(owner.zero_grad).__code__]
}
"""The functions that set gradients to None, and where the argument is that makes them do so."""


def read(t: Space, vt: Any, name: str) -> Result:
    """A Result, or MISSING when `name` is an ordinary attribute (a method, or one the user has
    set)."""
    if name in ("is_leaf", "grad_fn") and is_behind(vt.example):
        raise t.unsupported(
            "tensor-attribute", f"the attribute {name} of a view whose base was written to"
        )
    if name in _METADATA:
        return _metadata(t, vt, name)
    if name in _VIEWS:
        owner = vt.shown if name == "data" else _torch_calls.argument(t, vt)
        return _torch_calls.from_traced(t, t.graph.attribute(owner, name), [vt])

    if name == "grad_fn" and vt.node is not None:
        return vt.node
    if name in ("grad", "grad_fn"):
        return _autograd(t, vt, name)
    if name in ("_backward_hooks", "_base", "_version"):
        raise t.unsupported("tensor-attribute", f"the attribute {name} of a tensor")
    return MISSING


def _autograd(t: Space, vt: Any, name: str) -> Any:
    """`grad` and `grad_fn` of an input are read as they are, unless operators that were traced gave
    it a history."""
    is_as_before = vt.source is not None and _of_example(t, vt, "grad_fn") is vt.history
    if (
        is_as_before
        and name == "grad"
        and not (_known_flag(t, vt, "is_leaf") or _known_flag(t, vt, "retains_grad"))
    ):
        raise t.unsupported(
            "tensor-attribute", "the attribute grad of a tensor that gets none: torch warns"
        )

    if name == "grad" and vt.grad is not MISSING:
        return vt.grad
    if is_as_before and name == "grad":
        return _present_gradient(t, vt)
    if is_as_before:
        return t.wrap(getattr(vt.real, name), AttrSource(vt.source, name))
    # a leaf, and nothing that is traced accumulates gradients
    if vt.source is None and _of_example(t, vt, "grad_fn") is None:
        return NONE
    raise t.unsupported(
        "tensor-attribute", f"the attribute {name} of a tensor whose history is made here"
    )


def _present_gradient(t: Space, vt: Any) -> Any:
    """Return the `.grad` that an existing tensor has, unless it is read to be replaced by None:
    then that is done whatever it is, and no guard is about it."""
    if vt.had_grad is None and vt.cls in _PLAIN and _drops_gradients(t.frame):
        # operations before it may raise, and then the gradient stays
        t.write(vt, grad=NONE, drops_grad=t.graph.is_empty)
        return NONE
    t.journal.assign(vt, had_grad=vt.real.grad is not None)
    return t.wrap(vt.real.grad, GradientSource(vt.source))


def _drops_gradients(frame: Frame | None) -> bool:
    """Return True in a `zero_grad` that leaves no gradient of any tensor that it comes to."""
    if frame is None or (index := _ZEROING.get(frame.code.raw)) is None:
        return False
    return frame.slots[index].constant() is True


def _known_flag(t: Space, vt: Any, name: str) -> Any:
    """Return a flag that no other guard of a tensor covers, and guard it."""
    flag = getattr(vt.real, name)
    if name == "is_leaf":  # reading it may raise for the tensor of another call
        t.guard(vt.source, LEAF if flag else NO_LEAF)
    else:
        t.guard(AttrSource(vt.source, name), Equals(flag))
    return flag


def _metadata(t: Space, vt: TensorTracker, name: str) -> Any:
    if name in ("is_leaf", "output_nr") and vt.source is not None:
        known = _known_flag(t, vt, name)
        if vt.cls is NestedTensor:  # the graph puts another one together
            return ConstantTracker(known)
    if name == "nbytes":
        return _nbytes(t, vt)
    value = _of_example(t, vt, name)
    if name == "shape":
        return _torch_calls.metadata_value(t, value, "size", [vt], {})
    if name == "device" and value.type == "meta":
        value = getattr(vt.example, "fake_device", value)  # `torch.tensor` on meta makes no fake
    return ConstantTracker(value)


def _of_example(t: Space, vt: TensorTracker, name: str) -> Any:
    """Return an attribute of the example. Autograd raises for the history of some views; the
    program gets that natively."""
    try:
        return getattr(vt.before.example if name in _HISTORY else vt.example, name)
    except RuntimeError as error:
        raise _torch_calls.operator_error(t, error) from error


def _nbytes(t: Space, vt: Any) -> Result:
    """Compute the attribute from its definition: the fake does not have it if sizes are
    symbolic."""
    count = _torch_calls.read_metadata(t, Tensor.numel, [vt], {})
    if is_a(count, ConstantTracker):
        return ConstantTracker(count.value * vt.example.itemsize)
    return _torch_calls.record(t, operator.mul, [count, ConstantTracker(vt.example.itemsize)])


def own(t: Space, vt: VariableTracker, name: str) -> Result:
    """An attribute that the user has set on the tensor object."""
    if vt.cls is NestedTensor:
        return _jagged_tensor.own(t, vt, name)
    if _wrappers.is_wrapper(vt.cls):
        _wrappers.refuse_attribute(t, vt, name)
    if vt.namespace is None and vt.real is not MISSING and vt.source is not None:
        with_namespace(t, vt, vt.real, vt.source)
    if vt.namespace is None:
        return MISSING
    if not hasattr(Tensor, name):
        return t.lookup(vt.namespace, name)
    # what a wrapper holds is compared part by part
    if vt.source is None or _wrappers.is_wrapper(vt.cls):
        return MISSING
    if hides_nothing(vt.real):
        t.guard(vt.source, HIDES_NOTHING)
        return MISSING
    return t.lookup(vt.namespace, name)


_METHODS = frozenset(dir(Tensor))


def hides_nothing(tensor: Tensor) -> bool:
    """Return True if no attribute set on the tensor hides a method of the class; seldom anything is
    set at all."""
    return _METHODS.isdisjoint(tensor.__dict__)


KEEPS_FLAG = Custom("{fn}({value})", keeps_flag, "with a flag that stays as it is when it is set")
_PLAIN = (Tensor, torch.nn.Parameter)
_WITH_FLAG = (*_PLAIN, NestedTensor)
HIDES_NOTHING = Custom(
    "not {value}.__dict__ or {fn}({value})",
    hides_nothing,
    "without attributes that hide methods",
    lambda tensor, cells: type(tensor) in _PLAIN and cells.own_attributes(tensor),
)


def write(t: Space, vt: TensorTracker, name: str, value: Any) -> Result:
    if _wrappers.is_wrapper(vt.cls):
        raise t.unsupported("tensor-attribute-write", f"setting {name} of a {vt.cls.__qualname__}")
    if name == "grad" and _may_be_gradient(vt, value):
        return t.write(vt, grad=value)
    if name == "data" and _may_be_data(t, vt, value):
        return t.write(vt, data=t.graph.attribute(value.shown, name))
    if name == "requires_grad" and has_flag(t, vt, value) and vt.example.is_leaf:
        return None
    if name in ("real", "imag") and value is not MISSING:  # as torch does it: they are views
        return _torch_calls.record(t, "copy_", [read(t, vt, name), value])
    if hasattr(Tensor, name):
        raise t.unsupported("tensor-attribute-write", f"setting {name} of a tensor")

    if vt.namespace is None:
        own(t, vt, name)
    if vt.namespace is None:
        new_namespace(vt)
    if value is not MISSING:
        _dict_entries.set_name(t, vt.namespace, name, value)
    elif _dict_entries.remove(t, vt.namespace, name) is MISSING:
        complain(t, AttributeError, "'", vt.cls, f"' object has no attribute '{name}'")
    return None


def has_flag(t: Space, vt: Any, value: VariableTracker) -> bool:
    """Return True if setting `requires_grad` of a tensor changes nothing. Not for one that is used
    already, nor in the body of an operator: transforms of torch.func refuse it."""
    if vt.cls not in _WITH_FLAG or vt.example.is_inference():
        return False
    is_so = value is not MISSING and value.constant() is _of_example(t, vt, "requires_grad")
    if not is_so or t.state(Overrides).modes or t.graph.may_be_kept(vt.before):
        return False
    if vt.source is None:
        return True
    if not keeps_flag(vt.real):
        return False
    t.guard(vt.source, KEEPS_FLAG)
    return True


def _may_be_gradient(vt: TensorTracker, value: VariableTracker) -> bool:
    """Return True if `vt.grad = value` of an existing tensor is valid (THPVariable_set_grad); the
    error is raised natively."""
    if vt.source is None or value is MISSING or is_none(value):
        return vt.source is not None and value is not MISSING
    if not is_a(value, TensorTracker) or value is vt:
        return False
    ours, theirs = vt.example, value.example
    same = (ours.dtype, ours.device, ours.layout) == (theirs.dtype, theirs.device, theirs.layout)
    return same and tuple(ours.shape) == tuple(theirs.shape)


def _may_be_data(t: Space, vt: TensorTracker, value: VariableTracker) -> bool:
    """Return True if `vt.data = value` can be done at the end of the graph, which continues with
    the new data.

    It cannot if autograd may have saved the tensor itself, which then has them at once.
    """
    if not is_a(value, TensorTracker) or (vt.source is None and vt.before.example.requires_grad):
        return False
    ours, theirs = vt.before.example, value.example
    same = (ours.device, ours.layout, ours.is_inference()) == (
        theirs.device,
        theirs.layout,
        theirs.is_inference(),
    )
    fits = theirs.is_floating_point() or theirs.is_complex() or not ours.requires_grad
    kept = (
        ours._is_view()
        or t.graph.may_be_kept(vt.before)
        or not (vt.grad is MISSING or is_none(vt.grad))
    )
    return same and fits and not kept and theirs.layout == torch.strided
