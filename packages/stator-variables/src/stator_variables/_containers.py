"""Lists, tuples, dicts and sets: storage operations, and the handlers of their C methods."""

from __future__ import annotations

import collections
import operator
import types
from typing import Any

import torch
from stator_bytecode import HandlerTable, operation, settle

from stator_variables import _attributes, _calls, _dictionary, _iteration, _operators, _torch_calls
from stator_variables import _kinds as k
from stator_variables._hashing import key_of
from stator_variables._lookup import plain_lookup, type_lookup
from stator_variables._raising import throw
from stator_variables._tracing import Tracing
from stator_variables._tracker import MISSING

methods: HandlerTable[Any, Any] = HandlerTable("container method")


# -- storage ----------------------------------------------------------------------------------------------------------
def replace_items(t: Tracing, vt: Any, items: list[Any]) -> None:
    """Every list mutation: the new items, undone together."""
    before = vt.items
    vt.items = items

    def undo() -> None:
        vt.items = before

    t.journal.record(undo)
    t.change(vt)


def append(t: Tracing, vt: Any, item: Any) -> None:
    if vt.source is None and vt.maxlen is None:
        vt.items.append(item)
        t.journal.record(vt.items.pop)
        return
    items = [*vt.items, item]
    replace_items(t, vt, items[-vt.maxlen :] if vt.maxlen is not None and len(items) > vt.maxlen else items)


@operation
def extend(t: Tracing, vt: Any, iterable: Any) -> Any:
    found = yield from settle(_iteration.drain(t, iterable))
    for item in found:
        append(t, vt, item)
    return k.NONE


def new_set(t: Tracing, items: list[Any], cls: type) -> k.SetTracker:
    made = k.SetTracker(cls)
    for item in items:
        made.entries.setdefault(key_of(t, item), item)
    return made


def new_map(t: Tracing, keys: list[Any], values: list[Any]) -> k.DictTracker:
    made = k.DictTracker(dict, complete=True)
    for key, value in zip(keys, values, strict=True):
        hashed = key_of(t, key)
        made.entries[hashed] = (made.entries[hashed][0] if hashed in made.entries else key, value)
    return made


def _replace_set(t: Tracing, vt: Any, entries: dict[Any, Any]) -> None:
    before = vt.entries
    vt.entries = entries

    def undo() -> None:
        vt.entries = before

    t.journal.record(undo)
    t.change(vt)


def set_add(t: Tracing, vt: Any, item: Any) -> Any:
    hashed = key_of(t, item)
    if hashed not in vt.entries:
        _replace_set(t, vt, {**vt.entries, hashed: item})
    return k.NONE


@operation
def set_update(t: Tracing, vt: Any, iterable: Any) -> Any:
    for item in (yield from settle(_iteration.drain(t, iterable))):
        set_add(t, vt, item)
    return k.NONE


@operation
def dict_update(t: Tracing, vt: Any, mapping: Any) -> Any:
    """`dict.update` with one positional argument."""
    if isinstance(mapping, k.DictTracker) and not _overrides(mapping, "keys", dict.keys):
        for key, value in _dictionary.items(t, mapping):
            _dictionary.store(t, vt, key, value)
        return k.NONE
    keys = _attributes.special(t, mapping, "keys")
    if keys is not MISSING:
        for key in (yield from settle(_iteration.drain(t, (yield from settle(_calls.call(t, keys, [], {})))))):
            _dictionary.store(t, vt, key, (yield from settle(_iteration.get_item(t, mapping, key))))
        return k.NONE
    for pair in (yield from settle(_iteration.drain(t, mapping))):
        key, value = yield from settle(_iteration.unpack(t, pair, 2))
        _dictionary.store(t, vt, key, value)
    return k.NONE


def _overrides(vt: Any, name: str, original: Any) -> bool:
    return isinstance(plain_lookup(vt.cls, name), types.FunctionType)


@operation
def dict_merge(t: Tracing, vt: Any, mapping: Any, function: Any) -> Any:
    """`**mapping` in a call: a repeated keyword is an error."""
    other = k.DictTracker(dict, complete=True)
    yield from settle(dict_update(t, other, mapping))
    for hashed, (key, value) in other.entries.items():
        if hashed in vt.entries:
            name = getattr(function, "qualname", None) or function.describe()
            throw(TypeError, f"{name}() got multiple values for keyword argument '{hashed}'")
        _dictionary.store(t, vt, key, value)
    return k.NONE


def length(t: Tracing, vt: Any) -> Any:
    """`len(vt)`: a Result."""
    if isinstance(vt, k.TensorTracker):
        if vt.example.dim() == 0:
            throw(TypeError, "len() of a 0-d tensor")
        return _torch_calls.metadata_value(t, vt.example.shape[0], "size", [vt, k.ConstantTracker(0)], {})
    if isinstance(vt, k.ConstantTracker):
        return _calls.fold(t, len, [vt], {})
    raw, source = type_lookup(t, vt.cls, "__len__")
    if source is None:
        throw(TypeError, f"object of type '{vt.cls.__name__}' has no len()")
    return _calls.call(t, _attributes.bind(t, raw, source, vt, "__len__"), [], {})


def set_item(t: Tracing, container: Any, key: Any, new: Any) -> Any:
    if isinstance(container, k.TensorTracker):
        return _torch_calls.record(t, operator.setitem, [container, key, new], {})
    raw, source = type_lookup(t, container.cls, "__setitem__")
    if source is None:
        throw(TypeError, f"'{container.cls.__name__}' object does not support item assignment")
    return _calls.call(t, _attributes.bind(t, raw, source, container, "__setitem__"), [key, new], {})


def delete_item(t: Tracing, container: Any, key: Any) -> Any:
    raw, source = type_lookup(t, container.cls, "__delitem__")
    if source is None:
        throw(TypeError, f"'{container.cls.__name__}' object doesn't support item deletion")
    return _calls.call(t, _attributes.bind(t, raw, source, container, "__delitem__"), [key], {})


# -- sequences --------------------------------------------------------------------------------------------------------
def index_of(t: Tracing, key: Any, what: str) -> Any:
    """A key as a Python int or slice."""
    constant = key.constant()
    if isinstance(key, k.NumberTracker):
        return int(key.example)
    if constant is MISSING or not (isinstance(constant, slice) or hasattr(constant, "__index__")):
        if isinstance(key, k.SliceTracker):
            return slice(*(index_of(t, p, what) if not k.is_none(p) else None for p in key.parts))
        throw(TypeError, f"{what} indices must be integers or slices, not {key.cls.__name__}")
    return constant if isinstance(constant, slice) else operator.index(constant)


@methods.handles(list.__getitem__, tuple.__getitem__, torch.Size.__getitem__, collections.deque.__getitem__)
def sequence_getitem(t: Tracing, args: list[Any], kwargs: dict[str, Any]) -> Any:
    vt, key = args
    if not isinstance(vt, k.SequenceTracker):
        return _calls.fold(t, operator.getitem, [vt, key], {})
    base = "tuple" if isinstance(vt, k.TupleTracker) else "deque" if issubclass(vt.cls, collections.deque) else "list"
    index = index_of(t, key, base)
    if isinstance(index, slice):
        return type(vt)(vt.items[index], _slice_class(vt))
    if not -len(vt.items) <= index < len(vt.items):
        throw(IndexError, "deque index out of range" if base == "deque" else f"{base} index out of range")
    return vt.items[index]


def _slice_class(vt: Any) -> type:
    import torch

    if vt.cls is torch.Size:
        return torch.Size
    return tuple if isinstance(vt, k.TupleTracker) else list


@methods.handles(list.__setitem__, collections.deque.__setitem__)
def list_setitem(t: Tracing, args: list[Any], kwargs: dict[str, Any]) -> Any:
    vt, key, value = args
    index = index_of(t, key, "list")
    if isinstance(index, slice):
        return _set_slice(t, vt, index, value)
    if not -len(vt.items) <= index < len(vt.items):
        throw(IndexError, "list assignment index out of range")
    items = list(vt.items)
    items[index] = value
    replace_items(t, vt, items)
    return k.NONE


@operation
def _set_slice(t: Tracing, vt: Any, index: slice, value: Any) -> Any:
    found = yield from settle(_iteration.drain(t, value))
    items = list(vt.items)
    try:
        items[index] = found
    except ValueError as error:
        throw(ValueError, *error.args)
    replace_items(t, vt, items)
    return k.NONE


@methods.handles(list.__delitem__)
def list_delitem(t: Tracing, args: list[Any], kwargs: dict[str, Any]) -> Any:
    vt, key = args
    index = index_of(t, key, "list")
    if not isinstance(index, slice) and not -len(vt.items) <= index < len(vt.items):
        throw(IndexError, "list assignment index out of range")
    items = list(vt.items)
    del items[index]
    replace_items(t, vt, items)
    return k.NONE


@methods.handles(list.__len__, tuple.__len__, collections.deque.__len__)
def sequence_len(t: Tracing, args: list[Any], kwargs: dict[str, Any]) -> Any:
    return k.ConstantTracker(len(args[0].items))


@methods.handles(list.__contains__, tuple.__contains__)
def sequence_contains(t: Tracing, args: list[Any], kwargs: dict[str, Any]) -> Any:
    return _any_item_equal(t, args[0].items, args[1])


@operation
def _any_item_equal(t: Tracing, items: list[Any], item: Any) -> Any:
    for candidate in list(items):
        if (yield from settle(_operators.equal(t, candidate, item))):
            return k.ConstantTracker(True)
    return k.ConstantTracker(False)


@methods.handles(list.__iter__, tuple.__iter__, dict.__iter__, collections.OrderedDict.__iter__)
def iterate(t: Tracing, args: list[Any], kwargs: dict[str, Any]) -> Any:
    vt = args[0]
    if isinstance(vt, k.DictTracker):
        return _iteration.dict_iterator(t, vt, "keys")
    cls = tuple if isinstance(vt, k.TupleTracker) else list
    return k.IteratorTracker(type(iter(cls())), "sequence", [vt])


@methods.handles(list.__add__, tuple.__add__, torch.Size.__add__)
def sequence_add(t: Tracing, args: list[Any], kwargs: dict[str, Any]) -> Any:
    left, right = args
    kind = k.TupleTracker if isinstance(left, k.TupleTracker) else k.ListTracker
    if not isinstance(right, kind):
        base = "tuple" if kind is k.TupleTracker else "list"
        throw(TypeError, f'can only concatenate {base} (not "{right.cls.__name__}") to {base}')
    return kind([*left.items, *right.items], tuple if kind is k.TupleTracker else list)


@methods.handles(list.__iadd__)
def list_iadd(t: Tracing, args: list[Any], kwargs: dict[str, Any]) -> Any:
    return _extended(t, args[0], args[1])


@operation
def _extended(t: Tracing, vt: Any, iterable: Any) -> Any:
    yield from settle(extend(t, vt, iterable))
    return vt


@methods.handles(list.__mul__, tuple.__mul__, torch.Size.__mul__, torch.Size.__rmul__, list.__rmul__, tuple.__rmul__)
def sequence_mul(t: Tracing, args: list[Any], kwargs: dict[str, Any]) -> Any:
    vt, count = args
    times = count.constant()
    if isinstance(count, k.NumberTracker):
        times = int(count.example)
    if not isinstance(times, int):
        throw(TypeError, f"can't multiply sequence by non-int of type '{count.cls.__name__}'")
    return type(vt)(vt.items * times, tuple if isinstance(vt, k.TupleTracker) else list)


@methods.handles(list.append, collections.deque.append)
def list_append(t: Tracing, args: list[Any], kwargs: dict[str, Any]) -> Any:
    append(t, args[0], args[1])
    return k.NONE


@methods.handles(list.extend, collections.deque.extend)
def list_extend(t: Tracing, args: list[Any], kwargs: dict[str, Any]) -> Any:
    return extend(t, args[0], args[1])


@methods.handles(list.insert)
def list_insert(t: Tracing, args: list[Any], kwargs: dict[str, Any]) -> Any:
    items = list(args[0].items)
    items.insert(index_of(t, args[1], "list"), args[2])
    replace_items(t, args[0], items)
    return k.NONE


@methods.handles(list.pop, collections.deque.pop)
def list_pop(t: Tracing, args: list[Any], kwargs: dict[str, Any]) -> Any:
    vt = args[0]
    index = index_of(t, args[1], "list") if len(args) > 1 else -1
    if not vt.items:
        throw(IndexError, "pop from empty list")
    if not -len(vt.items) <= index < len(vt.items):
        throw(IndexError, "pop index out of range")
    items = list(vt.items)
    value = items.pop(index)
    replace_items(t, vt, items)
    return value


@methods.handles(collections.deque.popleft)
def deque_popleft(t: Tracing, args: list[Any], kwargs: dict[str, Any]) -> Any:
    if not args[0].items:
        throw(IndexError, "pop from an empty deque")
    first, *rest = args[0].items
    replace_items(t, args[0], rest)
    return first


@methods.handles(list.clear, collections.deque.clear)
def list_clear(t: Tracing, args: list[Any], kwargs: dict[str, Any]) -> Any:
    replace_items(t, args[0], [])
    return k.NONE


@methods.handles(list.copy)
def list_copy(t: Tracing, args: list[Any], kwargs: dict[str, Any]) -> Any:
    return k.ListTracker(args[0].items, list)


@methods.handles(list.reverse)
def list_reverse(t: Tracing, args: list[Any], kwargs: dict[str, Any]) -> Any:
    replace_items(t, args[0], args[0].items[::-1])
    return k.NONE


@methods.handles(list.__eq__, tuple.__eq__)
def sequence_eq(t: Tracing, args: list[Any], kwargs: dict[str, Any]) -> Any:
    left, right = args
    kind = k.TupleTracker if isinstance(left, k.TupleTracker) else k.ListTracker
    if not isinstance(right, kind):
        return k.ConstantTracker(NotImplemented)
    return _items_equal(t, left.items, right.items)


@methods.handles(list.__ne__, tuple.__ne__)
def sequence_ne(t: Tracing, args: list[Any], kwargs: dict[str, Any]) -> Any:
    result = sequence_eq(t, args, kwargs)
    if isinstance(result, k.ConstantTracker):
        return result
    return _operators._negated(t, result)


@operation
def _items_equal(t: Tracing, left: list[Any], right: list[Any]) -> Any:
    if len(left) != len(right):
        return k.ConstantTracker(False)
    for a, b in zip(left, right, strict=True):
        if not (yield from settle(_operators.equal(t, a, b))):
            return k.ConstantTracker(False)
    return k.ConstantTracker(True)


# -- dicts ------------------------------------------------------------------------------------------------------------
@methods.handles(dict.__getitem__)
def dict_getitem(t: Tracing, args: list[Any], kwargs: dict[str, Any]) -> Any:
    vt, key = args
    found = _dictionary.lookup(t, vt, key_of(t, key))
    if found is not MISSING:
        return found
    missing = _attributes.special(t, vt, "__missing__")
    if missing is not MISSING:
        return _calls.call(t, missing, [key], {})
    from stator_bytecode import Raised

    from stator_variables._raising import new_exception

    raise Raised(new_exception(KeyError, [key]))


@methods.handles(collections.defaultdict.__missing__)
def defaultdict_missing(t: Tracing, args: list[Any], kwargs: dict[str, Any]) -> Any:
    return _make_default(t, args[0], args[1])


@operation
def _make_default(t: Tracing, vt: Any, key: Any) -> Any:
    from stator_bytecode import Raised

    from stator_variables._raising import new_exception

    if vt.default_factory is MISSING or k.is_none(vt.default_factory):
        raise Raised(new_exception(KeyError, [key]))
    value = yield from settle(_calls.call(t, vt.default_factory, [], {}))
    _dictionary.store(t, vt, key, value)
    return value


@methods.handles(dict.__setitem__, collections.OrderedDict.__setitem__)
def dict_setitem(t: Tracing, args: list[Any], kwargs: dict[str, Any]) -> Any:
    _dictionary.store(t, *args)
    return k.NONE


@methods.handles(dict.__delitem__, collections.OrderedDict.__delitem__)
def dict_delitem(t: Tracing, args: list[Any], kwargs: dict[str, Any]) -> Any:
    from stator_bytecode import Raised

    from stator_variables._raising import new_exception

    if _dictionary.remove(t, args[0], key_of(t, args[1])) is MISSING:
        raise Raised(new_exception(KeyError, [args[1]]))
    return k.NONE


@methods.handles(dict.__len__)
def dict_len(t: Tracing, args: list[Any], kwargs: dict[str, Any]) -> Any:
    return k.ConstantTracker(len(_dictionary.items(t, args[0])))


@methods.handles(dict.__contains__)
def dict_contains(t: Tracing, args: list[Any], kwargs: dict[str, Any]) -> Any:
    return k.ConstantTracker(_dictionary.lookup(t, args[0], key_of(t, args[1])) is not MISSING)


@methods.handles(dict.get)
def dict_get(t: Tracing, args: list[Any], kwargs: dict[str, Any]) -> Any:
    found = _dictionary.lookup(t, args[0], key_of(t, args[1]))
    if found is not MISSING:
        return found
    return args[2] if len(args) > 2 else k.NONE


@methods.handles(dict.setdefault, collections.OrderedDict.setdefault)
def dict_setdefault(t: Tracing, args: list[Any], kwargs: dict[str, Any]) -> Any:
    found = _dictionary.lookup(t, args[0], key_of(t, args[1]))
    if found is not MISSING:
        return found
    value = args[2] if len(args) > 2 else k.NONE
    _dictionary.store(t, args[0], args[1], value)
    return value


@methods.handles(dict.pop, collections.OrderedDict.pop)
def dict_pop(t: Tracing, args: list[Any], kwargs: dict[str, Any]) -> Any:
    from stator_bytecode import Raised

    from stator_variables._raising import new_exception

    found = _dictionary.remove(t, args[0], key_of(t, args[1]))
    if found is not MISSING:
        return found
    default = args[2] if len(args) > 2 else kwargs.get("default")
    if default is None:
        raise Raised(new_exception(KeyError, [args[1]]))
    return default


@methods.handles(dict.keys, collections.OrderedDict.keys)
def dict_keys(t: Tracing, args: list[Any], kwargs: dict[str, Any]) -> Any:
    return k.ViewTracker(type({}.keys()), "keys", args[0])


@methods.handles(dict.values, collections.OrderedDict.values)
def dict_values(t: Tracing, args: list[Any], kwargs: dict[str, Any]) -> Any:
    return k.ViewTracker(type({}.values()), "values", args[0])


@methods.handles(dict.items, collections.OrderedDict.items)
def dict_items(t: Tracing, args: list[Any], kwargs: dict[str, Any]) -> Any:
    return k.ViewTracker(type({}.items()), "items", args[0])


@methods.handles(dict.update, dict.__init__, collections.OrderedDict.update, collections.OrderedDict.__init__)
def update(t: Tracing, args: list[Any], kwargs: dict[str, Any]) -> Any:
    return _update(t, args, kwargs)


@operation
def _update(t: Tracing, args: list[Any], kwargs: dict[str, Any]) -> Any:
    if len(args) > 2:
        throw(TypeError, f"update expected at most 1 argument, got {len(args) - 1}")
    for mapping in args[1:]:
        yield from settle(dict_update(t, args[0], mapping))
    for name, value in kwargs.items():
        _dictionary.set_name(t, args[0], name, value)
    return k.NONE


@methods.handles(collections.defaultdict.__init__)
def defaultdict_init(t: Tracing, args: list[Any], kwargs: dict[str, Any]) -> Any:
    args[0].default_factory = args[1] if len(args) > 1 else k.NONE
    return _update(t, [args[0], *args[2:]], kwargs)


@methods.handles(dict.copy)
def dict_copy(t: Tracing, args: list[Any], kwargs: dict[str, Any]) -> Any:
    made = k.DictTracker(dict, complete=True)
    _dictionary.complete(t, args[0])
    made.entries = dict(args[0].entries)
    return made


@methods.handles(dict.clear, collections.OrderedDict.clear)
def dict_clear(t: Tracing, args: list[Any], kwargs: dict[str, Any]) -> Any:
    _dictionary.clear(t, args[0])
    return k.NONE


@methods.handles(dict.__or__)
def dict_or(t: Tracing, args: list[Any], kwargs: dict[str, Any]) -> Any:
    if not isinstance(args[1], k.DictTracker):
        return k.ConstantTracker(NotImplemented)
    made = dict_copy(t, args[:1], {})
    for key, value in _dictionary.items(t, args[1]):
        _dictionary.store(t, made, key, value)
    return made


@methods.handles(dict.__ior__)
def dict_ior(t: Tracing, args: list[Any], kwargs: dict[str, Any]) -> Any:
    return _updated(t, args[0], args[1])


@operation
def _updated(t: Tracing, vt: Any, other: Any) -> Any:
    yield from settle(dict_update(t, vt, other))
    return vt


@methods.handles(dict.__eq__, collections.OrderedDict.__eq__)
def dict_eq(t: Tracing, args: list[Any], kwargs: dict[str, Any]) -> Any:
    left, right = args
    if not isinstance(right, k.DictTracker):
        return k.ConstantTracker(NotImplemented)
    both_ordered = all(issubclass(vt.cls, collections.OrderedDict) for vt in args)
    return _dicts_equal(t, left, right, both_ordered)


@operation
def _dicts_equal(t: Tracing, left: Any, right: Any, ordered: bool) -> Any:
    _dictionary.complete(t, left)
    _dictionary.complete(t, right)
    if left.entries.keys() != right.entries.keys() or (ordered and list(left.entries) != list(right.entries)):
        return k.ConstantTracker(False)
    for hashed, (_, value) in list(left.entries.items()):
        if not (yield from settle(_operators.equal(t, value, right.entries[hashed][1]))):
            return k.ConstantTracker(False)
    return k.ConstantTracker(True)


_KEYS, _VALUES, _ITEMS = type({}.keys()), type({}.values()), type({}.items())


@methods.handles(_KEYS.__len__, _VALUES.__len__, _ITEMS.__len__)
def view_len(t: Tracing, args: list[Any], kwargs: dict[str, Any]) -> Any:
    return dict_len(t, [args[0].mapping], {})


@methods.handles(_KEYS.__contains__)
def keys_contains(t: Tracing, args: list[Any], kwargs: dict[str, Any]) -> Any:
    return dict_contains(t, [args[0].mapping, args[1]], {})


@methods.handles(_KEYS.__iter__, _VALUES.__iter__, _ITEMS.__iter__)
def view_iter(t: Tracing, args: list[Any], kwargs: dict[str, Any]) -> Any:
    return _iteration.dict_iterator(t, args[0].mapping, args[0].part)


# -- sets -------------------------------------------------------------------------------------------------------------
@methods.handles(set.add)
def handle_set_add(t: Tracing, args: list[Any], kwargs: dict[str, Any]) -> Any:
    return set_add(t, *args)


@methods.handles(set.update)
def handle_set_update(t: Tracing, args: list[Any], kwargs: dict[str, Any]) -> Any:
    return set_update(t, *args)


@methods.handles(set.__contains__, frozenset.__contains__)
def set_contains(t: Tracing, args: list[Any], kwargs: dict[str, Any]) -> Any:
    return k.ConstantTracker(key_of(t, args[1]) in args[0].entries)


@methods.handles(set.__len__, frozenset.__len__)
def set_len(t: Tracing, args: list[Any], kwargs: dict[str, Any]) -> Any:
    return k.ConstantTracker(len(args[0].entries))


@methods.handles(set.discard)
def set_discard(t: Tracing, args: list[Any], kwargs: dict[str, Any]) -> Any:
    hashed = key_of(t, args[1])
    if hashed in args[0].entries:
        _replace_set(t, args[0], {key: value for key, value in args[0].entries.items() if key != hashed})
    return k.NONE
