"""Conversions between tensors and NumPy arrays that the program calls."""

import sys
from types import CodeType
from typing import Any

import torch
from stator_bytecode import Result

from stator_variables._objects._tuple import SequenceTracker
from stator_variables._pure import NUMPY, is_number_of_numpy
from stator_variables._space import Space
from stator_variables._tensors import _tensor_attributes, _torch_calls
from stator_variables._tensors._array_tensors import array_of
from stator_variables._tracker import Args, FunctionTable, Kwargs, VariableTracker, is_a
from stator_variables._trackers import (
    NONE,
    ArrayTracker,
    ConstantTracker,
    NumberTracker,
    ScalarTracker,
    TensorTracker,
    is_none,
)

handlers = FunctionTable("array of NumPy")


@handlers.handles(torch.Tensor.numpy)
def _to_array(t: Space, args: Args, kwargs: Kwargs) -> ArrayTracker:
    if len(args) != 1 or kwargs or not is_a(args[0], TensorTracker):
        raise t.unsupported("numpy", "numpy() with arguments")
    if _is_in_wrapper(t) and not _has_memory_of_arrays(args[0].example):
        return ArrayTracker(args[0], NUMPY.ndarray)
    return array_of(t, args[0])


def _has_memory_of_arrays(example: torch.Tensor) -> bool:
    return example.device.type == "cpu" and not example.requires_grad


def _is_in_wrapper(t: Space) -> bool:
    """Return True for code of `torch.compiler.wrap_numpy`, which sees any tensor as an array: one
    on another device, and one with gradients, which its result has as well."""
    wrap = getattr(sys.modules.get("torch._dynamo.external_utils"), "wrap_numpy", None)
    return t.frame is not None and wrap is not None and _has(wrap.__code__, t.frame.code.raw)


def _has(code: CodeType, inside: CodeType) -> bool:
    parts = [part for part in code.co_consts if type(part) is CodeType]
    return any(part is inside or _has(part, inside) for part in parts)


@handlers.handles_each(
    (torch.from_numpy, torch.as_tensor, torch.tensor, torch.asarray) if NUMPY is not None else ()
)
def from_array(t: Space, args: Args, kwargs: Kwargs, of: Any) -> Result:
    """A tensor made of an array: what is no array is for torch alone."""
    if not (args and is_a(args[0], ArrayTracker)):
        return _torch_calls.call_recorded(t, of, args, _with_dtype(t, of, args, kwargs))

    array, *more = args
    kwargs = {name: vt for name, vt in kwargs.items() if not is_none(vt)}
    if (
        more
        or not kwargs.keys() <= {"dtype", "device"}
        or array.cls is not NUMPY.ndarray
        or array.flipped
    ):
        raise t.unsupported(
            "numpy", f"{of.__name__}() of an array, with arguments, or of one that goes backwards"
        )

    copies = of is torch.tensor
    is_memory = _has_memory_of_arrays(array.tensor.example)
    # its tensor is to start where the array does
    if is_memory and not copies and array.tensor.example.storage_offset() != 0:
        raise t.unsupported("numpy", f"{of.__name__}() of a part of an array")
    if is_memory:
        made = _tensor_attributes.read(t, array.tensor, "data")
    else:
        made = _torch_calls.record(t, "view_as", [array.tensor, array.tensor])
    if copies:
        made = _torch_calls.record(t, "clone", [made])
    return _torch_calls.record(t, "to", [made], kwargs) if kwargs else made


@handlers.handles(torch.Tensor.new_tensor)
def _like_a_tensor(t: Space, args: Args, kwargs: Kwargs) -> Result:
    """`x.new_tensor(array)`, of the dtype of `x` and where `x` is."""
    if len(args) != 2 or not is_a(args[1], ArrayTracker):
        return _torch_calls.call_recorded(t, torch.Tensor.new_tensor, args, kwargs)
    like = {name: ConstantTracker(getattr(args[0].example, name)) for name in ("dtype", "device")}
    given = {name: vt for name, vt in kwargs.items() if not is_none(vt)}
    return from_array(t, args[1:], {**like, **given}, torch.tensor)


def _with_dtype(t: Space, of: Any, args: Args, kwargs: Kwargs) -> dict[str, Any]:
    """Numbers of NumPy among what a tensor is made of decide its dtype: a graph holds them as
    Python's."""
    data = args[0] if args else kwargs.get("data", NONE)
    if (len(args) > 1 and not is_none(args[1])) or not is_none(kwargs.get("dtype", NONE)):
        return kwargs
    if not _holds_number_of_numpy(data):
        return kwargs
    try:
        dtype = of(_substitute(data)).dtype
    except Exception as error:
        raise _torch_calls.operator_error(t, error) from error
    return {**kwargs, "dtype": ConstantTracker(dtype)}


def _holds_number_of_numpy(vt: VariableTracker) -> bool:
    if is_a(vt, SequenceTracker):
        return any(map(_holds_number_of_numpy, vt.items))
    return is_a(vt, ConstantTracker) and is_number_of_numpy(vt.cls)


def _substitute(vt: VariableTracker) -> object:
    """Return a value of the same dtypes and sizes, with arbitrary numbers for unknown ones."""
    if is_a(vt, SequenceTracker):
        return list(map(_substitute, vt.items))
    if is_a(vt, TensorTracker):
        return torch.empty((), dtype=vt.example.dtype)
    if is_a(vt, ScalarTracker):
        return vt.real
    return vt.cls() if is_a(vt, NumberTracker) else vt.constant()
