"""The methods of dict, OrderedDict and defaultdict (Objects/dictobject.c,
Objects/odictobject.c)."""

import collections
import functools
import sys
from collections import OrderedDict, defaultdict
from typing import Any

from stator_bytecode import NULL, OperationSteps, Result, operation, settle

from stator_variables._objects import _access_log, _dict_entries, _dict_update
from stator_variables._objects._dict import DictTracker
from stator_variables._objects._dict_view import VIEW_CLASSES, ViewTracker
from stator_variables._objects._hash_results import ALONE, AS_KEY, hashing
from stator_variables._objects._hashing import tell_apart
from stator_variables._objects._iterators._table import DictIteratorTracker, dict_iterator
from stator_variables._objects._lookup import defines, refuse_overridden
from stator_variables._objects._method_table import MethodTable, comparisons, then
from stator_variables._objects._program_error import name_of, throw
from stator_variables._objects._representation import in_turn, shown
from stator_variables._objects._text import text_of
from stator_variables._objects._tuple import TupleTracker
from stator_variables._objects._wrap import new_namespace
from stator_variables._space import Space
from stator_variables._tracker import MISSING, Args, FunctionTable, Kwargs, VariableTracker
from stator_variables._trackers import NONE, NOT_IMPLEMENTED, ClassTracker, ConstantTracker, is_none

handlers = FunctionTable("dict")
methods = MethodTable("dict method")
_TRUE = ConstantTracker(True)


def is_ordered(vt: VariableTracker) -> bool:
    return issubclass(vt.cls, OrderedDict)


def _use(vt: VariableTracker) -> str:
    """Return the use of a key that is deleted: an ordered dict hashes it alone."""
    return ALONE if is_ordered(vt) else AS_KEY


# -- items -----------------------------------------------------------------------------------------
@methods.handles(dict.__getitem__, takes=1)
def getitem(t: Space, vt: VariableTracker, key: VariableTracker) -> Result:
    if (found := t.lookup(vt, t.key_of(key))) is not MISSING:
        return found
    missing = t.special(vt, "__missing__") if vt.cls is not dict else MISSING
    if missing is not MISSING:
        return t.call(missing, [key])
    throw(KeyError, key)


@methods.handles(defaultdict.__missing__, takes=1)
@operation
def missing(t: Space, vt: DictTracker, key: VariableTracker) -> OperationSteps:
    if is_none(vt.default_factory):
        throw(KeyError, key)
    value = yield from settle(t.call(vt.default_factory, []))
    _dict_entries.store(t, vt, key, value)
    return value


@methods.handles(vars(defaultdict)["default_factory"], takes=0)
def default_factory(t: Space, vt: DictTracker) -> VariableTracker:
    return vt.default_factory


methods.handles(dict.__setitem__, OrderedDict.__setitem__)(_dict_entries.store)
methods.handles(dict.clear, OrderedDict.clear, takes=0)(_dict_entries.clear)


@methods.handles(dict.__delitem__, OrderedDict.__delitem__)
def delitem(t: Space, vt: DictTracker, key: VariableTracker) -> None:
    if _dict_entries.remove(t, vt, t.key_of(key, _use(vt))) is MISSING:
        throw(KeyError, key)


@methods.handles(dict.__len__)
def length(t: Space, vt: VariableTracker) -> ConstantTracker:
    return ConstantTracker(len(t.items(vt)))


@methods.handles(dict.__contains__)
def contains(t: Space, vt: VariableTracker, key: VariableTracker) -> ConstantTracker:
    return ConstantTracker(t.lookup(vt, t.key_of(key)) is not MISSING)


@methods.handles(dict.get)
def get(
    t: Space, vt: VariableTracker, key: VariableTracker, default: VariableTracker = NONE
) -> VariableTracker:
    if (found := _access_log.selected_item(vt, key)) is not MISSING:
        return found  # type: ignore[no-any-return]
    return default if (found := t.lookup(vt, t.key_of(key))) is MISSING else found


@methods.handles(OrderedDict.setdefault, takes=(1, 2), named=("default",))
def ordered_setdefault(
    t: Space, vt: DictTracker, key: VariableTracker, default: VariableTracker = NONE
) -> Result:
    refuse_overridden(t, vt, "__contains__", "__getitem__", "__setitem__")
    return setdefault(t, vt, key, default)


@methods.handles(dict.setdefault, takes=(1, 2))
def setdefault(
    t: Space, vt: DictTracker, key: VariableTracker, default: VariableTracker = NONE
) -> Result:
    if (found := t.lookup(vt, t.key_of(key))) is not MISSING:
        return found
    _dict_entries.store(t, vt, key, default)
    return default


@methods.handles(dict.pop, takes=(1, 2))
@methods.handles(OrderedDict.pop, takes=(1, 2), named=("default",))
def pop(
    t: Space, vt: DictTracker, key: VariableTracker, default: VariableTracker | None = None
) -> Result:
    if (found := _dict_entries.remove(t, vt, t.key_of(key, _use(vt)))) is not MISSING:
        return found
    if default is None:
        throw(KeyError, key)
    return default


@methods.handles(dict.popitem)
def popitem(t: Space, vt: DictTracker) -> TupleTracker:
    return _pop_at(t, vt, -1, "popitem(): dictionary is empty")


@methods.handles(OrderedDict.popitem)
@operation
def ordered_popitem(t: Space, vt: DictTracker, last: VariableTracker = _TRUE) -> OperationSteps:
    at_end = yield from settle(t.truth(last))
    return _pop_at(t, vt, -1 if at_end else 0, "dictionary is empty")


def _pop_at(t: Space, vt: DictTracker, index: int, complaint: str) -> TupleTracker:
    if not (pairs := t.items(vt)):
        throw(KeyError, complaint)
    key, value = pairs[index]
    _dict_entries.remove(t, vt, t.key_of(key))
    return TupleTracker([key, value])


@methods.handles(OrderedDict.move_to_end)
@operation
def move_to_end(
    t: Space, vt: DictTracker, key: VariableTracker, last: VariableTracker = _TRUE
) -> OperationSteps:
    """Taken out and put in again; to put it in front, so are all that were before it."""
    at_end = yield from settle(t.truth(last))
    hashed = t.key_of(key, ALONE)
    _dict_entries.complete(t, vt)
    if hashed not in vt.entries:
        throw(KeyError, key)
    others = [] if at_end else [entry for entry in vt.entries if entry != hashed]
    for moved in (hashed, *others):
        own_key, value = vt.entries[moved]
        _dict_entries.remove(t, vt, moved)
        _dict_entries.store_hashed(t, vt, moved, own_key, value)
    return NONE


# -- iteration and views ---------------------------------------------------------------------------
@methods.handles(dict.__iter__, OrderedDict.__iter__)
def iterate(t: Space, vt: DictTracker) -> DictIteratorTracker:
    return dict_iterator(t, vt, "keys")


@methods.handles(dict.__reversed__, OrderedDict.__reversed__, takes=0)
def reversed_(t: Space, vt: DictTracker) -> DictIteratorTracker:
    return dict_iterator(t, vt, "keys", backwards=True)


@methods.handles_each(
    {getattr(cls, part): part for part in VIEW_CLASSES for cls in (dict, OrderedDict)}, takes=0
)
def view(t: Space, vt: VariableTracker, of: str) -> ViewTracker:
    return ViewTracker(VIEW_CLASSES[of][is_ordered(vt)], of, vt)


# -- whole dicts -----------------------------------------------------------------------------------
@handlers.handles_each((dict, OrderedDict))
def make_dict(t: Space, args: Args, kwargs: Kwargs, of: type) -> Result:
    made = DictTracker(of, complete=True)
    if of is not dict:
        new_namespace(made)
    return then(_dict_update.update_all(t, made, args, kwargs), made)


@methods.handles(dict.__init__, OrderedDict.__init__, takes=(0, 1), named=None)
@methods.handles(dict.update, OrderedDict.update, takes=(0, 1), named=None)
def update(t: Space, vt: DictTracker, /, *args: Any, **kwargs: VariableTracker) -> Result:
    return _dict_update.update_all(t, vt, args, kwargs)


@methods.handles(defaultdict.__init__, takes=(0, 2), named=None)
def defaultdict_init(
    t: Space,
    vt: DictTracker,
    factory: VariableTracker = NONE,
    /,
    *args: VariableTracker,
    **kwargs: VariableTracker,
) -> Result:
    if not is_none(factory) and not defines(t, factory.cls, "__call__"):
        throw(TypeError, "first argument must be callable or None")
    if vt.source is not None:
        raise t.unsupported("bad-arguments", "__init__ of a defaultdict that exists already")
    vt.default_factory = factory
    return _dict_update.update_all(t, vt, args, kwargs)


def _same_entries(t: Space, vt: DictTracker, made: DictTracker) -> DictTracker:
    _dict_entries.complete(t, vt)
    made.entries = dict(vt.entries)
    return made


@methods.handles(dict.copy, takes=0)
def copy(t: Space, vt: DictTracker) -> DictTracker:
    refuse_overridden(t, vt, "__iter__")  # then C calls `keys`, and reads each item
    return _same_entries(t, vt, DictTracker(dict, complete=True))


@methods.handles(OrderedDict.copy, defaultdict.copy, defaultdict.__copy__, takes=0)
def subclass_copy(t: Space, vt: DictTracker) -> VariableTracker:
    return _same_entries(t, vt, _empty_like(t, vt, "a copy"))


def _empty_like(t: Space, vt: DictTracker, what: str) -> DictTracker:
    if not any(vt.cls is cls for cls in (dict, OrderedDict, defaultdict)):
        raise t.unsupported(
            "container-subclass", f"{what} of {vt.cls.__name__}, a subclass of a builtin container"
        )
    made = DictTracker(vt.cls, complete=True)
    made.default_factory = vt.default_factory
    if vt.cls is OrderedDict:
        new_namespace(made)
    return made


def _merged(t: Space, owner: DictTracker, left: DictTracker, right: VariableTracker) -> Result:
    if left.base is not dict or right.base is not dict:
        return NOT_IMPLEMENTED
    refuse_overridden(t, left, "__iter__")
    made = _same_entries(t, left, _empty_like(t, owner, "|"))
    return then(_dict_update.dict_update(t, made, right), made)


_either = methods.handles(dict.__or__, OrderedDict.__or__, defaultdict.__or__)
_either(lambda t, vt, other: _merged(t, vt, vt, other))
_reflected = methods.handles(dict.__ror__, OrderedDict.__ror__, defaultdict.__ror__)
_reflected(lambda t, vt, other: _merged(t, vt, other, vt))


@methods.handles(dict.__ior__, OrderedDict.__ior__)
def ior(t: Space, vt: DictTracker, other: VariableTracker) -> Result:
    return then(_dict_update.dict_update(t, vt, other), vt)


@methods.handles_each(comparisons(dict, OrderedDict))
@operation
def compare(t: Space, left: DictTracker, right: Any, of: str) -> OperationSteps:
    if right.base is not dict or of not in ("==", "!="):
        return NOT_IMPLEMENTED
    invert = of == "!="
    _dict_entries.complete(t, left)
    _dict_entries.complete(t, right)
    if left.entries.keys() != right.entries.keys():
        return ConstantTracker(invert)

    for hashed, (_, value) in list(left.entries.items()):
        if (other := right.entries.get(hashed)) is None:
            raise t.unsupported(
                "dict-changed-during-comparison", "a dict that changes while it is compared"
            )
        if not (yield from settle(t.equal(value, other[1]))):
            return ConstantTracker(invert)
    ordered = is_ordered(left) and is_ordered(right)
    return ConstantTracker((ordered and list(left.entries) != list(right.entries)) is invert)


@methods.handles(dict.fromkeys, takes=(1, 2))
def dict_fromkeys(t: Space, *args: VariableTracker) -> Result:
    return fromkeys(t, ClassTracker(dict), *args)


@methods.handles(
    dict.__dict__["fromkeys"], OrderedDict.__dict__["fromkeys"], takes=(1, 2), named=("value",)
)
@operation
def fromkeys(
    t: Space, cls: ClassTracker, iterable: VariableTracker, value: VariableTracker = NONE
) -> OperationSteps:
    is_dict = cls.value is dict
    made = DictTracker(dict, complete=True) if is_dict else (yield from settle(t.call(cls, [])))
    put = functools.partial(_dict_entries.put, t) if is_dict else t.set_item
    yield from settle(t.for_each(iterable, lambda key: put(made, key, value)))
    return made


def _counted(t: Space, mapping: VariableTracker, item: VariableTracker) -> Result:
    hashed = t.key_of(item, ALONE)
    tell_apart(t, item, hashed)
    return t.lookup(mapping, hashed)


@methods.handles(collections._count_elements)  # type: ignore[attr-defined]
@operation
def count_elements(t: Space, mapping: DictTracker, iterable: VariableTracker) -> OperationSteps:
    """Counting as `_count_elements` does for a Counter that overrides neither `get` nor
    `__setitem__`."""
    if mapping.base is not dict or mapping.cls is not collections.Counter:
        raise t.unsupported("container-subclass", f"counting into a {mapping.cls.__name__}")
    iterator = yield from settle(t.get_iterator(iterable))
    while (item := (yield from settle(t.next_value(iterator)))) is not NULL:
        before = yield from settle(hashing(t, functools.partial(_counted, t, mapping, item)))
        before = ConstantTracker(0) if before is MISSING else before
        after = yield from settle(t.binary("+", before, ConstantTracker(1)))
        yield from settle(_dict_entries.put(t, mapping, item, after))
    return NONE


# -- text ------------------------------------------------------------------------------------------
@methods.handles(dict.__repr__)
def repr_(t: Space, vt: VariableTracker) -> Result:
    return in_turn(t, vt, "{...}", _text(t, vt, "{", "}"))


@methods.handles(defaultdict.__repr__)
@operation
def defaultdict_repr(t: Space, vt: DictTracker) -> OperationSteps:
    factory = yield from settle(t.convert(vt.default_factory, "r"))
    inside = yield from settle(repr_(t, vt))
    return text_of(t, [f"{name_of(t, vt.cls)}(", factory, ", ", inside, ")"])


@methods.handles(OrderedDict.__repr__)
def ordered_repr(t: Space, vt: VariableTracker) -> Result:
    refuse_overridden(t, vt, *_READ_BY_C)
    pairs, start = t.items(vt), f"{name_of(t, vt.cls)}("
    if not pairs:
        return ConstantTracker(f"{start})")
    if sys.version_info >= (3, 12):
        return in_turn(t, vt, "...", _text(t, vt, f"{start}{{", "})"))
    return shown(t, vt, "...", map(TupleTracker, pairs), f"{start}[", "])")


_READ_BY_C = ("keys", "__getitem__") if sys.version_info >= (3, 12) else ("items",)


@operation
def _text(t: Space, vt: VariableTracker, start: str, end: str) -> OperationSteps:
    texts: list[Any] = []
    for key, value in t.items(vt):
        key_text = yield from settle(t.convert(key, "r"))
        texts += ", ", key_text, ": ", (yield from settle(t.convert(value, "r")))
    return text_of(t, [start, *texts[1:], end])
