"""Operations of instructions and other protocols on any container: `len`, item assignment, indices.

The methods that C defines on each builtin container are in `_objects`, with their type.
"""

import functools
import operator
import sys
import types
from typing import Any

import torch
from stator_bytecode import Result, after

from stator_variables._objects import _number
from stator_variables._objects._lookup import defines
from stator_variables._objects._plain_value import plain_value
from stator_variables._objects._program_error import complain, throw
from stator_variables._protocols import _folding
from stator_variables._runtime._contents import plain_lookup
from stator_variables._space import Space
from stator_variables._tensors import _torch_calls
from stator_variables._tracker import MISSING, Args, VariableTracker
from stator_variables._trackers import BuiltinTracker, ConstantTracker, TensorTracker


def length(t: Space, vt: VariableTracker) -> Result:
    """`len(vt)`: a Result."""
    if (found := vt.length(t)) is not MISSING:
        return found
    constant = vt.is_known and not _is_user_class(vt.cls)
    if constant and (folded := t.fold(len, [vt], {})) is not MISSING:
        return folded
    result = t.call_slot(vt, "__len__", [], "object of type '{}' has no len()")
    return after(result, functools.partial(checked_length, t)) if _is_user_class(vt.cls) else result


def length_of_tensor(t: Space, vt: TensorTracker) -> Any:
    if vt.example.dim() == 0:
        throw(TypeError, "len() of a 0-d tensor")
    size = vt.example.shape[0]
    return _torch_calls.metadata_value(t, size, "size", [vt, ConstantTracker(0)], {})


def _is_user_class(cls: type) -> bool:
    return not isinstance(plain_lookup(cls, "__len__"), types.WrapperDescriptorType)


def checked_length(t: Space, found: VariableTracker) -> Result:
    """Return the result of a `__len__` in Python, checked as by C: a Result."""
    return after(as_index(t, found), _checked_size)


def _checked_size(found: VariableTracker) -> VariableTracker:
    if (value := found.constant()) is MISSING:
        return found
    if value < 0:
        throw(ValueError, "__len__() should return >= 0")
    if value > sys.maxsize:
        throw(OverflowError, "cannot fit 'int' into an index-sized integer")
    return ConstantTracker(int(value))


def set_item(
    t: Space, container: VariableTracker, key: VariableTracker, new: VariableTracker
) -> Result:
    if (found := container.set_item(t, key, new)) is not MISSING:
        return found
    complaint = "'{}' object does not support item assignment"
    return _written(t, container, ("__setitem__", "__delitem__"), [key, new], complaint)


def delete_item(t: Space, container: VariableTracker, key: VariableTracker) -> Result:
    complaint = "'{}' object doesn't support item deletion"
    return _written(t, container, ("__delitem__", "__setitem__"), [key], complaint)


def _written(
    t: Space, container: VariableTracker, names: tuple[str, str], args: Args, complaint: str
) -> Result:
    """C has one slot for both: a class with one of the methods misses the other as an attribute."""
    if not defines(t, container.cls, names[0]) and defines(t, container.cls, names[1]):
        throw(AttributeError, names[0])
    return t.call_slot(container, names[0], args, complaint)


def as_index(t: Space, vt: VariableTracker) -> Result:
    """`operator.index`: an int of any kind as it is, else what `__index__` gives."""
    if vt.is_symbolic and vt.cls is int:
        return vt
    if (found := _folding.fold_numbers(t, operator.index, [vt], {})) is not MISSING:
        return found
    if issubclass(vt.cls, int):  # its own `__index__` is not called
        return t.call(BuiltinTracker(int.__index__), [vt])
    found = t.call_slot(vt, "__index__", [], "'{}' object cannot be interpreted as an integer")
    return after(found, functools.partial(_checked_index, t))


def _checked_index(t: Space, found: VariableTracker) -> VariableTracker:
    if not issubclass(found.cls, int):
        complain(t, TypeError, "__index__ returned non-int (type ", found.cls, ")")
    if found.cls is not int:
        raise t.unsupported(
            "bad-arguments", f"an __index__ that gives a {found.cls.__name__}, of which C warns"
        )
    return found


def index_of(t: Space, key: Any) -> int | None:
    """Return `operator.index` of a tracker: an int; None when it is no integer."""
    if key.is_symbolic:
        return int(_number.specialised(t, key)) if key.cls is not float else None
    if key.base is torch.Tensor and not (
        key.example.is_floating_point() or key.example.is_complex()
    ):
        return index_of(t, _torch_calls.record(t, "item", [key]))
    if (plain := plain_value(t, key)) is not key:
        return index_of(t, plain)
    value = key.constant()
    if value is not MISSING and hasattr(type(value), "__index__") and not isinstance(value, type):
        return operator.index(value)
    if defines(t, key.cls, "__index__"):
        raise t.unsupported("index-object", f"a {key.cls.__name__} as an index")
    return None
