"""`copy.deepcopy` of tensors: `torch.Tensor.__deepcopy__` copies the storage, once for all tensors
of one memo.

A tensor that covers its storage, and shares it with nothing that was copied under the same memo, is
copied by a `clone` in the graph. All else runs natively: gradients, attributes of its own, a part
of a storage. The memo is kept as torch keeps it, so that a native copy which follows still finds
the storages that were copied before.

    memo = {id(x): y, "torch": {x.untyped_storage()._cdata: y.untyped_storage()}}
"""

from typing import Any

import torch
from stator_bytecode import Result
from stator_guards import Custom
from torch import Tensor

from stator_variables._applevel import _copying as app
from stator_variables._objects._dict import DictTracker
from stator_variables._objects._identity_number import AddressTracker
from stator_variables._objects._method_table import app_level
from stator_variables._objects._wrap import new_namespace, with_namespace
from stator_variables._space import Space
from stator_variables._tensors import _storages, _torch_calls
from stator_variables._trace._memory import InputMemory
from stator_variables._trace._overrides import Overrides
from stator_variables._tracker import MISSING, Args, FunctionTable, Kwargs, VariableTracker, is_a
from stator_variables._trackers import TensorTracker

handlers = FunctionTable("deep copy")
_NATIVE: Any = Tensor.__deepcopy__


@handlers.handles(_NATIVE)
def deep_copy(t: Space, args: Args, kwargs: Kwargs) -> Result:
    """Return MISSING where the function itself is to run."""
    if len(args) != 2 or not _can_be_cloned(t, *args):
        return MISSING
    return app_level(t, app.deep_copied, args)


def _can_be_cloned(t: Space, tensor: VariableTracker, memo: VariableTracker) -> bool:
    if not is_a(tensor, TensorTracker) or not is_a(memo, DictTracker):
        return False
    if tensor.cls is not Tensor or memo.cls is not dict or t.state(Overrides).modes:
        return False

    example = tensor.example
    if example.requires_grad or example.layout is not torch.strided or example.is_inference():
        return False
    if not (tensor.data is tensor.grad is MISSING):
        return False
    if tensor.namespace is not None and tensor.namespace.entries:
        return False
    if not _covers_storage(t, tensor):
        return False

    copied = t.lookup(memo, "torch")
    return copied is MISSING or not _may_be_in(copied, tensor)


def _covers_storage(t: Space, tensor: TensorTracker) -> bool:
    if tensor.source is not None:
        if not is_whole(tensor.real):
            return False
        t.guard(tensor.source, _WHOLE)
        return True
    storage = _storage(tensor)
    inputs = (vt for vt in t.heap.trackers.values() if type(vt) is TensorTracker)
    return all(_storage(vt) != storage for vt in inputs) and is_whole(tensor.example)


def is_whole(tensor: Tensor) -> bool:
    """Return True if a tensor consists of all of its storage, and of nothing else."""
    if tensor.__dict__ and type(tensor) is Tensor:
        return False
    if tensor.storage_offset() or tensor.is_conj() or tensor.is_neg() or tensor.grad is not None:
        return False
    if tensor.untyped_storage().nbytes() != tensor.numel() * tensor.element_size():
        return False
    return tensor.is_contiguous() or _is_dense(tensor)


def _is_dense(tensor: Tensor) -> bool:
    """Return True if a permutation of its dimensions is contiguous."""
    order = sorted(range(tensor.dim()), key=tensor.stride, reverse=True)
    return tensor.permute(order).is_contiguous()


_WHOLE = Custom("{fn}({value})", is_whole, "all of its storage, without attributes or gradient")


def _storage(tensor: TensorTracker) -> int:
    return int(tensor.example.untyped_storage()._cdata)


def _may_be_in(copied: VariableTracker, tensor: TensorTracker) -> bool:
    """Return whether the storage of a tensor may be one of those that were copied."""
    if not is_a(copied, DictTracker) or copied.source is not None:
        return True
    for key, _ in copied.entries.values():
        if type(key) is not AddressTracker or _storage(key.thing.tensor) == _storage(tensor):
            return True
    return False


@handlers.handles(app.cloned)
def cloned(t: Space, args: Args, kwargs: Kwargs) -> Result:
    tensor, memo = args
    if tensor.source is not None:
        t.state(InputMemory).copied.setdefault(id(memo), []).append(tensor.source)
    return _torch_calls.record(t, "clone", [tensor])


@handlers.handles(app.storage_of)
def storage_of(t: Space, args: Args, kwargs: Kwargs) -> Result:
    return _storages.untyped_storage(t, args, kwargs)


@handlers.handles(app.address_of)
def address_of(t: Space, args: Args, kwargs: Kwargs) -> AddressTracker:
    return AddressTracker(args[0])


@handlers.handles(app.attributes_of)
def attributes_of(t: Space, args: Args, kwargs: Kwargs) -> Result:
    (tensor,) = args
    if tensor.namespace is None and tensor.source is not None:
        with_namespace(t, tensor, tensor.real, tensor.source)
    elif tensor.namespace is None:
        new_namespace(tensor)
    return tensor.namespace
