"""The methods of dict, OrderedDict and defaultdict (Objects/dictobject.c, Objects/odictobject.c)."""

from __future__ import annotations

import collections
import functools
from collections import OrderedDict, defaultdict
from typing import Any, NoReturn

from stator_bytecode import NULL, Raised, operation, settle

from stator_variables import _kinds as k
from stator_variables._build import new_namespace
from stator_variables._builtin._arity import ANY_COUNT, Args, Kwargs
from stator_variables._builtin._method_table import MethodTable
from stator_variables._model import _attributes, _calls, _containers, _dictionary, _iteration, _operators
from stator_variables._model._hashing import hashing, key_of, tell_apart
from stator_variables._model._lookup import plain_lookup
from stator_variables._model._raising import new_exception, throw
from stator_variables._tracing import Tracing
from stator_variables._tracker import MISSING

methods = MethodTable("dict method")
NOT_IMPLEMENTED = k.ConstantTracker(NotImplemented)
_VIEW_CLASSES = {
    part: (type(getattr({}, part)()), type(getattr(OrderedDict(), part)())) for part in ("keys", "values", "items")
}


def raise_key_error(key: Any) -> NoReturn:
    raise Raised(new_exception(KeyError, [key]))


def is_ordered(vt: Any) -> bool:
    return issubclass(vt.cls, OrderedDict)


# -- items ------------------------------------------------------------------------------------------------------------
@methods.handles(dict.__getitem__, takes=1)
def getitem(t: Tracing, args: Args, kwargs: Kwargs) -> Any:
    vt, key = args
    found = _dictionary.lookup(t, vt, key_of(t, key))
    if found is not MISSING:
        return found
    missing = _attributes.special(t, vt, "__missing__") if vt.cls is not dict else MISSING
    if missing is not MISSING:
        return _calls.call(t, missing, [key], {})
    raise_key_error(key)


@methods.handles(defaultdict.__missing__, takes=1)
def missing(t: Tracing, args: Args, kwargs: Kwargs) -> Any:
    return _make_default(t, args[0], args[1])


@operation
def _make_default(t: Tracing, vt: Any, key: Any) -> Any:
    if vt.default_factory is MISSING or k.is_none(vt.default_factory):
        raise_key_error(key)
    value = yield from settle(_calls.call(t, vt.default_factory, [], {}))
    _dictionary.store(t, vt, key, value)
    return value


@methods.handles(vars(defaultdict)["default_factory"], takes=0)
def default_factory(t: Tracing, args: Args, kwargs: Kwargs) -> Any:
    return k.NONE if args[0].default_factory is MISSING else args[0].default_factory


@methods.handles(dict.__setitem__, OrderedDict.__setitem__)
def setitem(t: Tracing, args: Args, kwargs: Kwargs) -> Any:
    _dictionary.store(t, *args)
    return k.NONE


@methods.handles(dict.__delitem__, OrderedDict.__delitem__)
def delitem(t: Tracing, args: Args, kwargs: Kwargs) -> Any:
    if _dictionary.remove(t, args[0], key_of(t, args[1])) is MISSING:
        raise_key_error(args[1])
    return k.NONE


@methods.handles(dict.__len__)
def length(t: Tracing, args: Args, kwargs: Kwargs) -> Any:
    return k.ConstantTracker(len(_dictionary.items(t, args[0])))


@methods.handles(dict.__contains__)
def contains(t: Tracing, args: Args, kwargs: Kwargs) -> Any:
    return k.ConstantTracker(_dictionary.lookup(t, args[0], key_of(t, args[1])) is not MISSING)


@methods.handles(dict.get)
def get(t: Tracing, args: Args, kwargs: Kwargs) -> Any:
    found = _dictionary.lookup(t, args[0], key_of(t, args[1]))
    if found is not MISSING:
        return found
    return args[2] if len(args) > 2 else k.NONE


@methods.handles(dict.setdefault, OrderedDict.setdefault, takes=(1, 2), named=("default",))
def setdefault(t: Tracing, args: Args, kwargs: Kwargs) -> Any:
    found = _dictionary.lookup(t, args[0], key_of(t, args[1]))
    if found is not MISSING:
        return found
    value = args[2] if len(args) > 2 else kwargs.get("default", k.NONE)
    _dictionary.store(t, args[0], args[1], value)
    return value


@methods.handles(dict.pop, takes=(1, 2))
@methods.handles(OrderedDict.pop, takes=(1, 2), named=("default",))
def pop(t: Tracing, args: Args, kwargs: Kwargs) -> Any:
    found = _dictionary.remove(t, args[0], key_of(t, args[1]))
    if found is not MISSING:
        return found
    default = args[2] if len(args) > 2 else kwargs.get("default")
    if default is None:
        raise_key_error(args[1])
    return default


@methods.handles(dict.popitem)
def popitem(t: Tracing, args: Args, kwargs: Kwargs) -> Any:
    return _pop_at(t, args[0], -1, "popitem(): dictionary is empty")


@methods.handles(OrderedDict.popitem)
def ordered_popitem(t: Tracing, args: Args, kwargs: Kwargs) -> Any:
    return _ordered_popitem(t, args[0], args[1] if len(args) > 1 else kwargs.get("last"))


@operation
def _ordered_popitem(t: Tracing, vt: Any, last: Any) -> Any:
    at_end = last is None or (yield from settle(_operators.truth(t, last)))
    return _pop_at(t, vt, -1 if at_end else 0, "dictionary is empty")


def _pop_at(t: Tracing, vt: Any, index: int, complaint: str) -> Any:
    pairs = _dictionary.items(t, vt)
    if not pairs:
        throw(KeyError, complaint)
    key, value = pairs[index]
    _dictionary.remove(t, vt, key_of(t, key))
    return k.TupleTracker([key, value], tuple)


@methods.handles(OrderedDict.move_to_end)
def move_to_end(t: Tracing, args: Args, kwargs: Kwargs) -> Any:
    return _move(t, args[0], args[1], args[2] if len(args) > 2 else kwargs.get("last"))


@operation
def _move(t: Tracing, vt: Any, key: Any, last: Any) -> Any:
    """Taken out and put in again; to put it in front, so are all that were before it."""
    at_end = last is None or (yield from settle(_operators.truth(t, last)))
    hashed = key_of(t, key)
    _dictionary.complete(t, vt)
    if hashed not in vt.entries:
        raise_key_error(key)
    others = [] if at_end else [entry for entry in vt.entries if entry != hashed]
    for moved in (hashed, *others):
        own_key, value = vt.entries[moved]
        _dictionary.remove(t, vt, moved)
        _dictionary.store_hashed(t, vt, moved, own_key, value)
    return k.NONE


@methods.handles(dict.clear, OrderedDict.clear, takes=0)
def clear(t: Tracing, args: Args, kwargs: Kwargs) -> Any:
    _dictionary.clear(t, args[0])
    return k.NONE


# -- iteration and views ----------------------------------------------------------------------------------------------
@methods.handles(dict.__iter__, OrderedDict.__iter__)
def iterate(t: Tracing, args: Args, kwargs: Kwargs) -> Any:
    return _iteration.dict_iterator(t, args[0], "keys")


@methods.handles(dict.__reversed__, OrderedDict.__reversed__, takes=0)
def reversed_(t: Tracing, args: Args, kwargs: Kwargs) -> Any:
    return _iteration.dict_iterator(t, args[0], "keys", backwards=True)


def view(vt: Any, part: str) -> k.ViewTracker:
    return k.ViewTracker(_VIEW_CLASSES[part][is_ordered(vt)], part, vt)


@methods.handles(dict.keys, OrderedDict.keys, takes=0)
def keys(t: Tracing, args: Args, kwargs: Kwargs) -> Any:
    return view(args[0], "keys")


@methods.handles(dict.values, OrderedDict.values, takes=0)
def values(t: Tracing, args: Args, kwargs: Kwargs) -> Any:
    return view(args[0], "values")


@methods.handles(dict.items, OrderedDict.items, takes=0)
def items(t: Tracing, args: Args, kwargs: Kwargs) -> Any:
    return view(args[0], "items")


# -- whole dicts ------------------------------------------------------------------------------------------------------
@methods.handles(dict.__init__, OrderedDict.__init__, takes=(0, 1), named=None)
def init(t: Tracing, args: Args, kwargs: Kwargs) -> Any:
    return update_all(t, args, kwargs, "__init__")


@methods.handles(defaultdict.__init__)
def defaultdict_init(t: Tracing, args: Args, kwargs: Kwargs) -> Any:
    factory = args[1] if len(args) > 1 else k.NONE
    if not k.is_none(factory) and not is_callable(factory):
        throw(TypeError, "first argument must be callable or None")
    if args[0].source is not None:
        raise t.unsupported("bad-arguments", "__init__ of a defaultdict that exists already")
    args[0].default_factory = factory
    return update_all(t, [args[0], *args[2:]], kwargs, "__init__")


def is_callable(vt: Any) -> bool:
    return plain_lookup(vt.cls, "__call__") is not MISSING


@methods.handles(dict.update, OrderedDict.update, takes=(0, ANY_COUNT), named=None)
def update(t: Tracing, args: Args, kwargs: Kwargs) -> Any:
    return update_all(t, args, kwargs, "update")


@operation
def update_all(t: Tracing, args: Args, kwargs: Kwargs, name: str) -> Any:
    if len(args) > 2:
        raise t.unsupported("bad-arguments", f"{name} of a dict with {len(args) - 1} positional arguments")
    for mapping in args[1:]:
        yield from settle(_containers.dict_update(t, args[0], mapping))
    for keyword, value in kwargs.items():
        _dictionary.set_name(t, args[0], keyword, value)
    return k.NONE


def same_entries(t: Tracing, vt: Any, made: Any) -> Any:
    _dictionary.complete(t, vt)
    made.entries = dict(vt.entries)
    return made


@methods.handles(dict.copy, takes=0)
def copy(t: Tracing, args: Args, kwargs: Kwargs) -> Any:
    return same_entries(t, args[0], k.DictTracker(dict, complete=True))


@methods.handles(OrderedDict.copy, defaultdict.copy, defaultdict.__copy__, takes=0)
def subclass_copy(t: Tracing, args: Args, kwargs: Kwargs) -> Any:
    vt = args[0]
    if vt.cls not in (OrderedDict, defaultdict):
        raise t.unsupported("container-subclass", f"a copy of {vt.cls.__name__}, a subclass of a builtin container")
    made = k.DictTracker(vt.cls, complete=True)
    made.default_factory = vt.default_factory
    if vt.cls is OrderedDict:
        new_namespace(made)
    return same_entries(t, vt, made)


@methods.handles(dict.__or__, OrderedDict.__or__, defaultdict.__or__)
def or_(t: Tracing, args: Args, kwargs: Kwargs) -> Any:
    return _merged(t, args[0], args[0], args[1])


@methods.handles(dict.__ror__, OrderedDict.__ror__, defaultdict.__ror__)
def ror(t: Tracing, args: Args, kwargs: Kwargs) -> Any:
    return _merged(t, args[0], args[1], args[0])


def _merged(t: Tracing, owner: Any, left: Any, right: Any) -> Any:
    if not isinstance(left, k.DictTracker) or not isinstance(right, k.DictTracker):
        return NOT_IMPLEMENTED
    if owner.cls not in (dict, OrderedDict, defaultdict):
        raise t.unsupported("container-subclass", f"| of {owner.cls.__name__}, a subclass of a builtin container")
    made = k.DictTracker(owner.cls, complete=True)
    made.default_factory = owner.default_factory
    if owner.cls is OrderedDict:
        new_namespace(made)
    same_entries(t, left, made)
    for key, value in _dictionary.items(t, right):
        _dictionary.store(t, made, key, value)
    return made


@methods.handles(dict.__ior__, OrderedDict.__ior__)
def ior(t: Tracing, args: Args, kwargs: Kwargs) -> Any:
    return _updated(t, args[0], args[1])


@operation
def _updated(t: Tracing, vt: Any, other: Any) -> Any:
    yield from settle(_containers.dict_update(t, vt, other))
    return vt


@methods.handles(dict.__eq__, OrderedDict.__eq__)
def eq(t: Tracing, args: Args, kwargs: Kwargs) -> Any:
    return _equality(t, args, False)


@methods.handles(dict.__ne__, OrderedDict.__ne__)
def ne(t: Tracing, args: Args, kwargs: Kwargs) -> Any:
    return _equality(t, args, True)


def _equality(t: Tracing, args: Args, invert: bool) -> Any:
    left, right = args
    if not isinstance(right, k.DictTracker):
        return NOT_IMPLEMENTED
    return _dicts_equal(t, left, right, is_ordered(left) and is_ordered(right), invert)


@operation
def _dicts_equal(t: Tracing, left: Any, right: Any, ordered: bool, invert: bool) -> Any:
    _dictionary.complete(t, left)
    _dictionary.complete(t, right)
    if left.entries.keys() != right.entries.keys():
        return k.ConstantTracker(invert)
    for hashed, (_, value) in list(left.entries.items()):
        other = right.entries.get(hashed)
        if other is None:
            raise t.unsupported("dict-changed-during-comparison", "a dict that changes while it is compared")
        if not (yield from settle(_operators.equal(t, value, other[1]))):
            return k.ConstantTracker(invert)
    if ordered and list(left.entries) != list(right.entries):
        return k.ConstantTracker(invert)
    return k.ConstantTracker(not invert)


@methods.handles(
    dict.fromkeys, dict.__dict__["fromkeys"], OrderedDict.__dict__["fromkeys"], takes=(1, 2), named=("value",)
)
def fromkeys(t: Tracing, args: Args, kwargs: Kwargs) -> Any:
    """The class, if it was bound, comes first."""
    if not isinstance(args[0], k.ClassTracker):
        args = [k.ClassTracker(dict), *args]
    args = [*args, *kwargs.values()]
    if args[0].value is not dict:
        return _fromkeys_of(t, args)
    return _fromkeys(t, args)


@operation
def _fromkeys(t: Tracing, args: Args) -> Any:
    made = k.DictTracker(dict, complete=True)
    iterator = yield from settle(_iteration.get_iterator(t, args[1]))
    while (key := (yield from settle(_iteration.next_value(t, iterator)))) is not NULL:
        yield from settle(_dictionary.put(t, made, key, args[2] if len(args) > 2 else k.NONE))
    return made


@operation
def _fromkeys_of(t: Tracing, args: Args) -> Any:
    made = yield from settle(_calls.call(t, args[0], [], {}))
    iterator = yield from settle(_iteration.get_iterator(t, args[1]))
    while (key := (yield from settle(_iteration.next_value(t, iterator)))) is not NULL:
        yield from settle(_containers.set_item(t, made, key, args[2] if len(args) > 2 else k.NONE))
    return made


def _counted(t: Tracing, mapping: Any, item: Any) -> Any:
    hashed = key_of(t, item)
    tell_apart(t, item, hashed)
    return _dictionary.lookup(t, mapping, hashed)


@methods.handles(collections._count_elements)  # type: ignore[attr-defined]
def count_elements(t: Tracing, args: Args, kwargs: Kwargs) -> Any:
    return _count_elements(t, args[0], args[1])


@operation
def _count_elements(t: Tracing, mapping: Any, iterable: Any) -> Any:
    """Counting as `_count_elements` does for a Counter that overrides neither `get` nor `__setitem__`."""
    if not isinstance(mapping, k.DictTracker) or mapping.cls is not collections.Counter:
        raise t.unsupported("container-subclass", f"counting into a {mapping.cls.__name__}")
    iterator = yield from settle(_iteration.get_iterator(t, iterable))
    while (item := (yield from settle(_iteration.next_value(t, iterator)))) is not NULL:
        before = yield from settle(hashing(t, functools.partial(_counted, t, mapping, item)))
        before = k.ConstantTracker(0) if before is MISSING else before
        after = yield from settle(_operators.binary(t, "+", before, k.ConstantTracker(1)))
        yield from settle(_dictionary.put(t, mapping, item, after))
    return k.NONE


_UNORDERED = [f"__{name}__" for name in ("lt", "le", "gt", "ge")]


@methods.handles(*(getattr(cls, name) for cls in (dict, OrderedDict) for name in _UNORDERED))
def no_order(t: Tracing, args: Args, kwargs: Kwargs) -> Any:
    return NOT_IMPLEMENTED
