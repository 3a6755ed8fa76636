"""Storages of tensors, and addresses: `x.untyped_storage().nbytes()`,
`x.data_ptr() == y.data_ptr()`.

The size of a storage is that of the fake tensor, or is read of the input over that storage. An
address is another one in most calls, so it is a symbolic number of the entry: what the program
tests of it is guarded (that it equals another one, that 16 divides it), and where it would have to
be a constant, as a key of a dict, the graph breaks.
"""

import operator
from typing import Any

import torch
from stator_bytecode import Result
from stator_guards import CallSource, DistinctStorages, Truth
from torch import Tensor

from stator_variables._space import Space
from stator_variables._tensors import _torch_calls
from stator_variables._tracker import MISSING, Args, FunctionTable, Kwargs, VariableTracker, is_a
from stator_variables._trackers import ConstantTracker, NumberTracker, StorageTracker, TensorTracker

handlers = FunctionTable("storage")
_TENSOR: Any = torch._C.TensorBase
_STORAGE: Any = torch._C.StorageBase


def share_storage(one: Tensor, other: Tensor) -> bool:
    return bool(one.untyped_storage()._cdata == other.untyped_storage()._cdata)


def size_of_storage(tensor: Tensor) -> int:
    return tensor.untyped_storage().nbytes()


def address_of_storage(tensor: Tensor) -> int:
    return tensor.untyped_storage().data_ptr()


def identity_of_storage(tensor: Tensor) -> int:
    return int(tensor.untyped_storage()._cdata)


PASSED_IN = "a storage that was passed in"


@handlers.handles(_TENSOR.untyped_storage)
def untyped_storage(t: Space, args: Args, kwargs: Kwargs) -> Result:
    """One tracker for all views of a storage: torch gives the same object."""
    tensor = _plain_tensor(t, args[0])
    key = (StorageTracker, _storage(tensor))
    known = _input_over(t, tensor)
    if key not in t.shared:
        if known is not None:
            if id(known.real.untyped_storage()) in t.heap.trackers:
                raise t.unsupported("tensor-attribute", PASSED_IN)
            _tell_apart(t, known)
        t.journal.put(t.shared, key, StorageTracker(tensor, known))
    found = t.shared[key]
    if known is not None and found.known is not known:
        t.guard(CallSource(share_storage, found.known.source, known.source), Truth(True))
    return found


def _tell_apart(t: Space, known: Any) -> None:
    """Guard that an input has another storage than those whose storages were read."""
    others = [vt.known for vt in t.shared.values() if is_a(vt, StorageTracker)]
    sources: list[Any] = [vt.source for vt in others if vt is not None]
    if sources:
        t.guard(known.source, DistinctStorages(tuple(sources), known.source))


def _plain_tensor(t: Space, vt: VariableTracker) -> Any:
    if not is_a(vt, TensorTracker) or vt.data is not MISSING:
        raise t.unsupported("tensor-attribute", "the storage of a tensor whose data was replaced")
    if vt.example.layout is not torch.strided:
        raise t.unsupported("tensor-attribute", "the storage of a tensor that is not strided")
    return vt


def _input_over(t: Space, vt: Any) -> Any:
    """An input over the storage of a tensor, as it was when the entry started; None where it is
    made here.

    Of several that share the storage any will do, if they share it in other calls as well.
    """
    if vt.source is not None:
        return vt
    storage = vt.example.untyped_storage()._cdata
    first, *others = [each for each in _inputs(t) if _storage(each) == storage] or [None]
    for other in others:
        t.guard(CallSource(share_storage, first.source, other.source), Truth(True))
    return first


def _inputs(t: Space) -> list[Any]:
    found = [vt for vt in t.heap.trackers.values() if type(vt) is TensorTracker]
    return [
        vt
        for vt in found
        if vt.source is not None and vt.data is MISSING and vt.example.layout is torch.strided
    ]


def _tensor_of(t: Space, storage: VariableTracker) -> Any:
    """Return the tensor whose storage was read here."""
    if not is_a(storage, StorageTracker):
        raise t.unsupported("tensor-attribute", PASSED_IN)
    return storage.tensor


def _storage(vt: Any) -> int:
    return int(vt.example.untyped_storage()._cdata)


@handlers.handles(_STORAGE.nbytes, _STORAGE.__len__)
def nbytes(t: Space, args: Args, kwargs: Kwargs) -> VariableTracker:
    tensor = _tensor_of(t, args[0])
    if (known := _input_over(t, tensor)) is not None:
        return t.wrap(size_of_storage(known.real), CallSource(size_of_storage, known.source))
    size = tensor.example.untyped_storage().nbytes()
    if type(size) is not int:
        raise t.unsupported(
            "tensor-attribute", "the size of a storage whose tensor has symbolic sizes"
        )
    return ConstantTracker(size)


@handlers.handles(_STORAGE.data_ptr)
def address(t: Space, args: Args, kwargs: Kwargs) -> Result:
    return _number(t, _tensor_of(t, args[0]), address_of_storage)


@handlers.handles(_STORAGE._cdata)
def identity(t: Space, args: Args, kwargs: Kwargs) -> Result:
    return _number(t, _tensor_of(t, args[0]), identity_of_storage)


@handlers.handles(_STORAGE.device)
def device(t: Space, args: Args, kwargs: Kwargs) -> Result:
    return ConstantTracker(_tensor_of(t, args[0]).example.device)


def _number(t: Space, tensor: TensorTracker, read: Any) -> VariableTracker:
    if (known := _input_over(t, tensor)) is None:
        raise t.unsupported("tensor-attribute", "the address of a tensor that the graph computes")
    value, source = read(known.real), CallSource(read, known.source)
    if value == 0:
        return t.wrap(value, source)
    number = NumberTracker(t.graph.number_input(source, value, "address"), int)
    number.is_address = True
    return number


@handlers.handles(_TENSOR.data_ptr)
def data_ptr(t: Space, args: Args, kwargs: Kwargs) -> Result:
    tensor = _plain_tensor(t, args[0])
    start = _number(t, tensor, address_of_storage)
    offset = _torch_calls.read_metadata(t, Tensor.storage_offset, [tensor], {})
    if is_a(offset, ConstantTracker):
        if offset.value == 0 or not is_a(start, NumberTracker):
            return start
        offset = ConstantTracker(offset.value * tensor.example.itemsize)
    else:
        size = ConstantTracker(tensor.example.itemsize)
        offset = _torch_calls.record(t, operator.mul, [offset, size])
    found = _torch_calls.record(t, operator.add, [start, offset])
    found.is_address = True
    return found
