"""What instructions and other parts of the data model do with containers: storage, `len`, item assignment, updates.

The methods that C defines on each builtin container are in `_sequences`, `_deques`, `_dicts`, `_views` and `_sets`.
"""

import collections
import functools
import operator
import sys
import types
from typing import Any

from stator_bytecode import NULL, Raised, after, operation, settle
from stator_guards import CallSource, CapturedSource, Truth

from stator_variables import _kinds as k
from stator_variables._objects import _dictionary, _symbolic_numbers
from stator_variables._objects._dict import DictTracker
from stator_variables._objects._hashing import (
    element_of,
    has_identity,
    hashing,
    real_key,
    rely_on_objects,
    tell_apart,
)
from stator_variables._objects._keys import Identity, asks
from stator_variables._objects._lookup import defines, overrides
from stator_variables._objects._raising import attempt, complain, function_text, throw
from stator_variables._objects._set import SetTracker, as_operand, dict_of
from stator_variables._objects._undecided import is_undecided, put_undecided
from stator_variables._protocols import _folding, _iteration
from stator_variables._runtime._contents import members_of, plain_lookup, set_base
from stator_variables._space import Space, source_of
from stator_variables._tensors import _arrays, _torch_calls
from stator_variables._tracker import MISSING


# -- sets -------------------------------------------------------------------------------------------------------------
def new_set(t: Space, items: list[Any]) -> SetTracker:
    made = SetTracker(set)
    for item in items:
        hashed = t.key_of(item)
        tell_apart(t, item, hashed)
        if hashed not in made.entries:
            made.entries[hashed] = item
            made.steps.append(("add", item))  # type: ignore[union-attr]  # it is new
    return made


def replace_set(t: Space, vt: Any, entries: dict[Any, Any], *steps: tuple[str, Any]) -> None:
    """`steps` are what the program did; without any the order of the real set gets unknown."""
    if vt.unread is not None:
        vt.unread(vt)
    _change_set(t, vt, entries, *steps)


def _change_set(t: Space, vt: Any, entries: dict[Any, Any], *steps: tuple[str, Any]) -> None:
    t.write(
        vt, known=entries, steps=[*vt.steps, *steps] if steps and vt.steps is not None else None
    )


def step_with(method: str, other: Any) -> list[tuple[str, Any]]:
    """The step that takes `other`, as it is now; none where its order is unknown."""
    return [] if (operand := as_operand(other)) is None else [(method, operand)]


def set_add(t: Space, vt: Any, item: Any) -> None:
    if vt.unread is not None and is_undecided(t, item):
        put_undecided(t, vt, (item,), _add_known)
    else:
        _add_known(t, vt, item)


def _add_known(t: Space, vt: Any, item: Any) -> None:
    hashed = element_of(t, item, vt)
    if has_member(t, vt, hashed):
        return
    if vt.source is None and vt.steps is not None:
        vt.known[hashed] = item
        vt.steps.append(("add", item))
        t.journal.record(lambda: vt.known.pop(hashed) and vt.steps.pop())
        t.change(vt)
    else:
        _change_set(t, vt, {**vt.known, hashed: item}, ("add", item))


def has_member(t: Space, vt: Any, hashed: Any) -> bool:
    """Of a set from outside that nobody has read the answer alone is guarded. No new object is a member of it."""
    if vt.undecided:
        vt.decide()  # without reading the rest
    if vt.unread is not None and has_identity(hashed):  # it was not there before: `element_of`
        return hashed in vt.known
    if vt.unread is None or hashed in vt.known or asks(hashed):
        return hashed in vt.entries
    if (thing := real_key(hashed)) is MISSING:
        return False
    if type(hashed) is not Identity and _dictionary.may_ask(members_of(vt.real)):
        return hashed in vt.entries  # the program compares, which the Machine interprets
    if type(hashed) is not Identity:  # the entry reads an object itself, and looks it up
        rely_on_objects(t, hashed, in_existing=True)
    return _is_in_existing(t, vt, hashed, thing)


def _is_in_existing(t: Space, vt: Any, hashed: Any, thing: Any) -> bool:
    known = t.heap.get(id(thing)) if type(hashed) is Identity else None
    origin = CapturedSource("constant", thing) if known is None else source_of(known)
    has = set_base(vt.real).__contains__
    found = has(vt.real, thing)
    t.guard(CallSource(has, vt.source, origin), Truth(found))
    return bool(found)


def set_update(t: Space, vt: Any, iterable: Any) -> Any:
    if iterable is vt:
        return k.NONE
    if isinstance(iterable, SetTracker):
        _merge(t, vt, iterable.entries, iterable)
        return k.NONE
    if isinstance(iterable, DictTracker) and iterable.cls is dict:
        keys = {t.key_of(key): key for key, _ in t.items(iterable)}
        _merge(t, vt, keys, dict_of(keys))
        return k.NONE
    return t.for_each(iterable, lambda item: hashing(t, functools.partial(set_add, t, vt, item)))


def _merge(t: Space, vt: Any, entries: dict[Any, Any], operand: Any) -> None:
    more = {hashed: item for hashed, item in entries.items() if hashed not in vt.entries}
    for hashed, item in more.items():
        tell_apart(t, item, hashed)
    if more or (vt.source is None and entries):  # C makes room even when there is nothing new
        replace_set(t, vt, {**vt.entries, **more}, *step_with("update", operand))


# -- dicts ------------------------------------------------------------------------------------------------------------


@operation
def dict_update(t: Space, vt: Any, mapping: Any) -> Any:
    """`dict.update` with one positional argument (`dict_update_arg` in Objects/dictobject.c)."""
    if _is_plain_dict(t, vt, mapping):
        yield from _add_entries(t, vt, mapping)
    elif (
        yield from attempt(t, AttributeError, None, t.get_attribute, mapping, "keys")
    ) is not None:
        yield from _update_from_keys(t, vt, mapping)
    else:
        yield from _update_from_pairs(t, vt, mapping)
    return k.NONE


@operation
def add_mapping(
    t: Space, vt: Any, mapping: Any, refusal: str = "'{}' object is not a mapping"
) -> Any:
    """`{**mapping}`: what lacks an attribute on the way is no mapping."""
    if _is_plain_dict(t, vt, mapping):
        yield from _add_entries(t, vt, mapping)
        return k.NONE
    try:
        yield from _update_from_keys(t, vt, mapping)
    except Raised as raised:
        if not issubclass(raised.value.cls, AttributeError):
            raise
        start, end = refusal.split("{}")
        complain(t, TypeError, start, mapping.cls, end)
    return k.NONE


def _is_plain_dict(t: Space, vt: Any, mapping: Any) -> bool:
    """Whether C reads it, instead of asking for its keys and items. With an ordered dict on either side it always asks;
    of what the builtin classes answer that makes no difference."""
    if not isinstance(mapping, DictTracker) or overrides(t, mapping.cls, "__iter__"):
        return False
    ordered = any(issubclass(side, collections.OrderedDict) for side in (vt.cls, mapping.cls))
    return not (
        ordered and (overrides(t, mapping.cls, "keys") or overrides(t, mapping.cls, "__getitem__"))
    )


def _add_entries(t: Space, vt: Any, mapping: Any) -> Any:
    for key, value in t.items(mapping):
        yield from settle(putter(t, vt)(t, vt, key, value))


def _update_from_pairs(t: Space, vt: Any, pairs: Any) -> Any:
    iterator = yield from settle(t.get_iterator(pairs))
    index = 0
    while (pair := (yield from settle(t.next_value(iterator)))) is not NULL:
        key, value = yield from _pair(t, vt, pair, index)
        yield from settle(putter(t, vt)(t, vt, key, value))
        index += 1


def putter(t: Space, vt: Any) -> Any:
    """How C puts an item into a dict: past its class, but for classes of ordered ones."""
    is_asked = issubclass(vt.cls, collections.OrderedDict) and overrides(t, vt.cls, "__setitem__")
    return set_item if is_asked else _dictionary.put


def _update_from_keys(t: Space, vt: Any, mapping: Any) -> Any:
    """An ordered dict asks for each value when it has the key; others list the keys first (`PyMapping_Keys`)."""
    ask = yield from settle(t.get_attribute(mapping, "keys"))
    keys = yield from settle(t.call(ask, [], {}))
    if issubclass(vt.cls, collections.OrderedDict):
        iterator = yield from settle(t.get_iterator(keys))
        while (key := (yield from settle(t.next_value(iterator)))) is not NULL:
            yield from _put_value(t, vt, mapping, key)
        return
    complaint = (mapping.cls, ".keys() returned a non-iterable (type ", keys.cls, ")")
    iterator = yield from _iteration.iterator_saying(t, keys, *complaint)
    for key in (yield from settle(t.drain(iterator))):
        yield from _put_value(t, vt, mapping, key)


def _put_value(t: Space, vt: Any, mapping: Any, key: Any) -> Any:
    value = yield from settle(t.get_item(mapping, key))
    yield from settle(putter(t, vt)(t, vt, key, value))


def _pair(t: Space, vt: Any, pair: Any, index: int) -> Any:
    if issubclass(vt.cls, collections.OrderedDict):
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


def _ordered_pair(t: Space, pair: Any) -> Any:
    """As `mutablemapping_add_pairs` in Objects/odictobject.c unpacks it."""
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
def dict_merge(t: Space, vt: Any, mapping: Any, function: Any) -> Any:
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
    return k.NONE


# -- any container ----------------------------------------------------------------------------------------------------
def length(t: Space, vt: Any) -> Any:
    """`len(vt)`: a Result."""
    if isinstance(vt, k.TensorTracker) and not t.overrides.modes:
        if vt.example.dim() == 0:
            throw(TypeError, "len() of a 0-d tensor")
        return _torch_calls.metadata_value(
            t, vt.example.shape[0], "size", [vt, k.ConstantTracker(0)], {}
        )
    constant = isinstance(vt, k.ConstantTracker) and not _is_user_class(vt.cls)
    if constant and (folded := t.fold(len, [vt], {})) is not MISSING:
        return folded
    result = t.call_slot(vt, "__len__", [], "object of type '{}' has no len()")
    return after(result, functools.partial(checked_length, t)) if _is_user_class(vt.cls) else result


def _is_user_class(cls: type) -> bool:
    return not isinstance(plain_lookup(cls, "__len__"), types.WrapperDescriptorType)


def checked_length(t: Space, found: Any) -> Any:
    """What a `__len__` in Python gave, as C checks it: a Result."""
    return after(as_index(t, found), _checked_size)


def _checked_size(found: Any) -> Any:
    if (value := found.constant()) is MISSING:
        return found
    if value < 0:
        throw(ValueError, "__len__() should return >= 0")
    if value > sys.maxsize:
        throw(OverflowError, "cannot fit 'int' into an index-sized integer")
    return k.ConstantTracker(int(value))


def set_item(t: Space, container: Any, key: Any, new: Any) -> Any:
    if isinstance(container, k.TensorTracker) and not t.overrides.modes:
        return _torch_calls.record(t, operator.setitem, [container, key, new], {})
    if isinstance(container, k.ArrayTracker):
        return _arrays.operate(t, operator.setitem, container, key, new)
    complaint = "'{}' object does not support item assignment"
    return _written(t, container, ("__setitem__", "__delitem__"), [key, new], complaint)


def delete_item(t: Space, container: Any, key: Any) -> Any:
    complaint = "'{}' object doesn't support item deletion"
    return _written(t, container, ("__delitem__", "__setitem__"), [key], complaint)


def _written(
    t: Space, container: Any, names: tuple[str, str], args: list[Any], complaint: str
) -> Any:
    """C has one slot for both: a class with one of the methods misses the other as an attribute."""
    if not defines(t, container.cls, names[0]) and defines(t, container.cls, names[1]):
        throw(AttributeError, names[0])
    return t.call_slot(container, names[0], args, complaint)


def as_index(t: Space, vt: Any) -> Any:
    """`operator.index`: an int of any kind as it is, else what `__index__` gives."""
    if isinstance(vt, k.NumberTracker) and vt.cls is int:
        return vt
    if (found := _folding.fold_numbers(t, operator.index, [vt], {})) is not MISSING:
        return found
    if issubclass(vt.cls, int):  # its own `__index__` is not asked
        return t.call(k.BuiltinTracker(int.__index__), [vt], {})
    found = t.call_slot(vt, "__index__", [], "'{}' object cannot be interpreted as an integer")
    return after(found, functools.partial(_checked_index, t))


def _checked_index(t: Space, found: Any) -> Any:
    if not issubclass(found.cls, int):
        complain(t, TypeError, "__index__ returned non-int (type ", found.cls, ")")
    if found.cls is not int:
        raise t.unsupported(
            "bad-arguments", f"an __index__ that gives a {found.cls.__name__}, of which C warns"
        )
    return found


def index_of(t: Space, key: Any) -> int | None:
    """What `operator.index` gives for a tracker: an int; None when it is no integer."""
    if isinstance(key, k.NumberTracker):
        return int(_symbolic_numbers.specialised(t, key)) if key.cls is not float else None
    if isinstance(key, k.TensorTracker) and not (
        key.example.is_floating_point() or key.example.is_complex()
    ):
        return index_of(t, _torch_calls.record(t, "item", [key], {}))
    value = key.constant()
    if value is not MISSING and hasattr(type(value), "__index__") and not isinstance(value, type):
        return operator.index(value)
    if defines(t, key.cls, "__index__"):
        raise t.unsupported("index-object", f"a {key.cls.__name__} as an index")
    return None
