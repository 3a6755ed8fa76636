"""Updates of dicts: `dict.update`, `{**mapping}` and `f(**mapping)` (Objects/dictobject.c,
Objects/odictobject.c)."""

import sys
from collections import OrderedDict

from stator_bytecode import NULL, OperationSteps, Raised, Result, operation, settle

from stator_variables._objects import _dict_entries
from stator_variables._objects._dict import DictTracker
from stator_variables._objects._lookup import overrides
from stator_variables._objects._program_error import (
    attempt,
    complain,
    function_text,
    spread_text,
    throw,
)
from stator_variables._space import Space
from stator_variables._tracker import MISSING, Args, Kwargs, VariableTracker
from stator_variables._trackers import NONE, ConstantTracker


@operation
def update_all(t: Space, vt: DictTracker, args: Args, kwargs: Kwargs) -> OperationSteps:
    for mapping in args:
        yield from settle(dict_update(t, vt, mapping))
    for keyword, value in kwargs.items():
        yield from settle(put_by_class(t, vt, ConstantTracker(keyword), value))
    return NONE


@operation
def dict_update(t: Space, vt: DictTracker, mapping: VariableTracker) -> OperationSteps:
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
    vt: DictTracker,
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


def _is_plain_dict(t: Space, vt: DictTracker, mapping: VariableTracker) -> bool:
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


def _add_entries(t: Space, vt: DictTracker, mapping: VariableTracker) -> OperationSteps:
    for key, value in t.items(mapping):
        yield from settle(put_by_class(t, vt, key, value))


def _update_from_pairs(t: Space, vt: DictTracker, pairs: VariableTracker) -> OperationSteps:
    iterator = yield from settle(t.get_iterator(pairs))
    index = 0
    while (pair := (yield from settle(t.next_value(iterator)))) is not NULL:
        key, value = yield from _pair(t, vt, pair, index)
        yield from settle(put_by_class(t, vt, key, value))
        index += 1


def put_by_class(t: Space, vt: DictTracker, key: VariableTracker, value: VariableTracker) -> Result:
    """Put an item into a dict as C does: without overrides, but for classes of ordered ones."""
    is_overridden = issubclass(vt.cls, OrderedDict) and overrides(t, vt.cls, "__setitem__")
    return t.set_item(vt, key, value) if is_overridden else _dict_entries.put(t, vt, key, value)


def _update_from_keys(t: Space, vt: DictTracker, mapping: VariableTracker) -> OperationSteps:
    """Update from keys. An ordered dict reads each value with its key; others list the keys first
    (`PyMapping_Keys`)."""
    keys_method = yield from settle(t.get_attribute(mapping, "keys"))
    keys = yield from settle(t.call(keys_method, []))
    if issubclass(vt.cls, OrderedDict):
        iterator = yield from settle(t.get_iterator(keys))
        while (key := (yield from settle(t.next_value(iterator)))) is not NULL:
            yield from _put_value(t, vt, mapping, key)
        return
    if (iterator := (yield from attempt(t, TypeError, None, t.get_iterator, keys))) is None:
        start, end = ".keys() returned a non-iterable (type ", ")"
        complain(t, TypeError, mapping.cls, start, keys.cls, end)
    for key in (yield from settle(t.drain(iterator))):
        yield from _put_value(t, vt, mapping, key)


def _put_value(
    t: Space, vt: DictTracker, mapping: VariableTracker, key: VariableTracker
) -> OperationSteps:
    value = yield from settle(t.get_item(mapping, key))
    yield from settle(put_by_class(t, vt, key, value))


_NO_PAIR = (
    "object is not iterable"
    if sys.version_info >= (3, 14)
    else "cannot convert dictionary update sequence element #{} to a sequence"
)


def _pair(t: Space, vt: DictTracker, pair: VariableTracker, index: int) -> OperationSteps:
    if issubclass(vt.cls, OrderedDict):
        return (yield from _ordered_pair(t, pair))
    if (parts := (yield from attempt(t, TypeError, None, t.drain, pair))) is None:
        throw(TypeError, _NO_PAIR.format(index))
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
    other = DictTracker(dict, complete=True)
    text = f"{spread_text(function, '**')} must be a mapping, not {{}}"
    yield from settle(add_mapping(t, other, mapping, text))
    for hashed, (key, value) in other.entries.items():
        if t.lookup(vt, hashed) is not MISSING:
            raise t.unsupported(
                "repeated-keyword",
                f"{function_text(function)} gets keyword argument {hashed!r} twice",
            )
        _dict_entries.store(t, vt, key, value)
    return NONE
