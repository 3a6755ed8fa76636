"""Operations of instructions and other protocols on containers: `len`, item assignment, updates of
dicts.

The methods that C defines on each builtin container are in `_objects/_list.py` and its like, and in
`_dicts`, `_views` and `_sets` of `_builtin`.
"""

import functools
import operator
import sys
import types
from collections import OrderedDict
from typing import Any

import torch
from stator_bytecode import NULL, OperationSteps, Raised, Result, after, operation, settle

from stator_variables._objects import _dictionary, _symbolic_numbers
from stator_variables._objects._dict import DictTracker
from stator_variables._objects._lookup import defines, overrides
from stator_variables._objects._plain_value import plain_value
from stator_variables._objects._program_error import attempt, complain, function_text, throw
from stator_variables._protocols import _consumption, _folding
from stator_variables._runtime._contents import plain_lookup
from stator_variables._space import Space
from stator_variables._tensors import _torch_calls
from stator_variables._tracker import MISSING, Args, VariableTracker
from stator_variables._trackers import NONE, BuiltinTracker, ConstantTracker, TensorTracker

# -- dicts -----------------------------------------------------------------------------------------


@operation
def dict_update(t: Space, vt: VariableTracker, mapping: VariableTracker) -> OperationSteps:
    """`dict.update` with one positional argument (`dict_update_arg` in Objects/dictobject.c)."""
    if _is_plain_dict(t, vt, mapping):
        yield from _add_entries(t, vt, mapping)
    elif (
        yield from attempt(t, AttributeError, None, t.get_attribute, mapping, "keys")
    ) is not None:
        yield from _update_from_keys(t, vt, mapping)
    else:
        yield from _update_from_pairs(t, vt, mapping)
    return NONE


@operation
def add_mapping(
    t: Space,
    vt: VariableTracker,
    mapping: VariableTracker,
    refusal: str = "'{}' object is not a mapping",
) -> OperationSteps:
    """`{**mapping}`: what lacks an attribute on the way is no mapping."""
    if _is_plain_dict(t, vt, mapping):
        yield from _add_entries(t, vt, mapping)
        return NONE
    try:
        yield from _update_from_keys(t, vt, mapping)
    except Raised as raised:
        if not issubclass(raised.value.cls, AttributeError):
            raise
        start, end = refusal.split("{}")
        complain(t, TypeError, start, mapping.cls, end)
    return NONE


def _is_plain_dict(t: Space, vt: VariableTracker, mapping: VariableTracker) -> bool:
    """Return True if C reads it, instead of calling its `keys` and `__getitem__`.

    With an ordered dict on either side C always calls them; for the builtin classes that makes no
    difference.
    """
    if mapping.base is not dict or overrides(t, mapping.cls, "__iter__"):
        return False
    ordered = any(issubclass(side, OrderedDict) for side in (vt.cls, mapping.cls))
    return not (
        ordered and (overrides(t, mapping.cls, "keys") or overrides(t, mapping.cls, "__getitem__"))
    )


def _add_entries(t: Space, vt: VariableTracker, mapping: VariableTracker) -> OperationSteps:
    for key, value in t.items(mapping):
        yield from settle(putter(t, vt)(t, vt, key, value))


def _update_from_pairs(t: Space, vt: VariableTracker, pairs: VariableTracker) -> OperationSteps:
    iterator = yield from settle(t.get_iterator(pairs))
    index = 0
    while (pair := (yield from settle(t.next_value(iterator)))) is not NULL:
        key, value = yield from _pair(t, vt, pair, index)
        yield from settle(putter(t, vt)(t, vt, key, value))
        index += 1


def putter(t: Space, vt: VariableTracker) -> Any:
    """Return the function by which C puts an item into a dict: without overrides, but for classes
    of ordered ones."""
    is_overridden = issubclass(vt.cls, OrderedDict) and overrides(t, vt.cls, "__setitem__")
    return set_item if is_overridden else _dictionary.put


def _update_from_keys(t: Space, vt: VariableTracker, mapping: VariableTracker) -> OperationSteps:
    """Update from keys. An ordered dict reads each value with its key; others list the keys first
    (`PyMapping_Keys`)."""
    keys_method = yield from settle(t.get_attribute(mapping, "keys"))
    keys = yield from settle(t.call(keys_method, []))
    if issubclass(vt.cls, OrderedDict):
        iterator = yield from settle(t.get_iterator(keys))
        while (key := (yield from settle(t.next_value(iterator)))) is not NULL:
            yield from _put_value(t, vt, mapping, key)
        return
    complaint = (mapping.cls, ".keys() returned a non-iterable (type ", keys.cls, ")")
    iterator = yield from _consumption.iterator_or_error(t, keys, *complaint)
    for key in (yield from settle(t.drain(iterator))):
        yield from _put_value(t, vt, mapping, key)


def _put_value(
    t: Space, vt: VariableTracker, mapping: VariableTracker, key: VariableTracker
) -> OperationSteps:
    value = yield from settle(t.get_item(mapping, key))
    yield from settle(putter(t, vt)(t, vt, key, value))


def _pair(t: Space, vt: VariableTracker, pair: VariableTracker, index: int) -> OperationSteps:
    if issubclass(vt.cls, OrderedDict):
        return (yield from _ordered_pair(t, pair))
    if (parts := (yield from attempt(t, TypeError, None, t.drain, pair))) is None:
        throw(
            TypeError, f"cannot convert dictionary update sequence element #{index} to a sequence"
        )
    if len(parts) != 2:
        throw(
            ValueError,
            f"dictionary update sequence element #{index} has length {len(parts)}; 2 is required",
        )
    return parts


def _ordered_pair(t: Space, pair: VariableTracker) -> OperationSteps:
    """Unpack a pair like `mutablemapping_add_pairs` in Objects/odictobject.c."""
    parts = yield from settle(t.drain(pair))
    if len(parts) > 2:
        throw(ValueError, "too many values to unpack (expected 2)")
    if len(parts) < 2:
        throw(
            ValueError,
            f"need more than {len(parts)} value{'' if len(parts) == 1 else 's'} to unpack",
        )
    return parts


@operation
def dict_merge(
    t: Space, vt: DictTracker, mapping: VariableTracker, function: VariableTracker
) -> OperationSteps:
    """`**mapping` in a call: a repeated keyword is an error."""
    name = function_text(function)
    other = DictTracker(dict, complete=True)
    yield from settle(
        add_mapping(t, other, mapping, f"{name} argument after ** must be a mapping, not {{}}")
    )
    for hashed, (key, value) in other.entries.items():
        if t.lookup(vt, hashed) is not MISSING:
            raise t.unsupported(
                "repeated-keyword", f"{name} gets keyword argument {hashed!r} twice"
            )
        _dictionary.store(t, vt, key, value)
    return NONE


# -- any container ---------------------------------------------------------------------------------
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
        return int(_symbolic_numbers.specialised(t, key)) if key.cls is not float else None
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
