"""The methods of dict views (`dictviews_*` in Objects/dictobject.c): set operations on keys and items."""

from __future__ import annotations

from collections import OrderedDict
from typing import Any

from stator_bytecode import operation, settle

from stator_variables import _kinds as k
from stator_variables._builtin import _dicts, _sets
from stator_variables._builtin._arity import Args, Kwargs
from stator_variables._builtin._method_table import MethodTable
from stator_variables._model import _containers, _dictionary, _iteration, _operators
from stator_variables._model._containers import replace_set, step_with
from stator_variables._model._hashing import key_of
from stator_variables._model._set_order import derived
from stator_variables._tracing import Tracing
from stator_variables._tracker import MISSING

methods = MethodTable("view method")
_EMPTY: dict[Any, Any] = {}
KEYS: Any = type(_EMPTY.keys())
VALUES: Any = type(_EMPTY.values())
ITEMS: Any = type(_EMPTY.items())
_ORDERED = tuple(type(getattr(OrderedDict(), part)()) for part in ("keys", "values", "items"))
SET_LIKE = (KEYS, ITEMS)


@methods.handles(KEYS.__len__, VALUES.__len__, ITEMS.__len__)
def length(t: Tracing, args: Args, kwargs: Kwargs) -> Any:
    return k.ConstantTracker(len(_dictionary.items(t, args[0].mapping)))


@methods.handles(KEYS.__iter__, VALUES.__iter__, ITEMS.__iter__, *(cls.__iter__ for cls in _ORDERED))
def iterate(t: Tracing, args: Args, kwargs: Kwargs) -> Any:
    return _iteration.dict_iterator(t, args[0].mapping, args[0].part)


_REVERSED = [cls.__reversed__ for cls in (KEYS, VALUES, ITEMS, *_ORDERED)]


@methods.handles(*_REVERSED, takes=0)
def reversed_(t: Tracing, args: Args, kwargs: Kwargs) -> Any:
    return _iteration.dict_iterator(t, args[0].mapping, args[0].part, backwards=True)


@methods.handles(KEYS.mapping, VALUES.mapping, ITEMS.mapping, takes=0)
def mapping(t: Tracing, args: Args, kwargs: Kwargs) -> Any:
    raise t.unsupported("mapping-proxy", "the mapping of a dict view")


@methods.handles(KEYS.__contains__)
def keys_contain(t: Tracing, args: Args, kwargs: Kwargs) -> Any:
    return k.ConstantTracker(_dictionary.lookup(t, args[0].mapping, key_of(t, args[1])) is not MISSING)


@methods.handles(ITEMS.__contains__)
def items_contain(t: Tracing, args: Args, kwargs: Kwargs) -> Any:
    return _items_contain(t, args[0], args[1])


@operation
def _items_contain(t: Tracing, vt: Any, pair: Any) -> Any:
    if not isinstance(pair, k.TupleTracker) or len(pair.items) != 2:
        return k.ConstantTracker(False)
    found = _dictionary.lookup(t, vt.mapping, key_of(t, pair.items[0]))
    if found is MISSING:
        return k.ConstantTracker(False)
    return k.ConstantTracker((yield from settle(_operators.equal(t, found, pair.items[1]))))


def elements(t: Tracing, vt: Any) -> list[Any]:
    pairs = _dictionary.items(t, vt.mapping)
    return [key for key, _ in pairs] if vt.part == "keys" else [k.TupleTracker(pair, tuple) for pair in pairs]


# -- set operators ----------------------------------------------------------------------------------------------------
_OPERATORS = {"and": "intersection", "or": "union", "xor": "symmetric_difference", "sub": "difference"}


@operation
def _operate(t: Tracing, left: Any, right: Any, verb: str) -> Any:
    made = yield from settle(_as_set(t, left))
    other = yield from settle(_as_set(t, right))
    operand = right if isinstance(right, k.SetTracker) else k.TupleTracker([*other.entries.values()], tuple)
    if verb == "intersection":
        return _intersection(t, made, other, left, right)
    entries = _sets.combine(verb, made.entries, other.entries)
    replace_set(t, made, entries, *step_with(_sets.IN_PLACE[verb], operand))
    return made


def _intersection(t: Tracing, made: Any, other: Any, left: Any, right: Any) -> Any:
    """Goes through the shorter of two views, through a set if it is shorter, else through what is not a view
    (`_PyDictView_Intersect`)."""
    if isinstance(right, k.SetTracker) and len(other.entries) < len(made.entries):
        return derived(set, _sets.combine("intersection", made.entries, other.entries), "intersection", made, right)
    through, among = (other, made) if isinstance(left, k.ViewTracker) else (made, other)
    if isinstance(right, k.SetTracker) or (isinstance(right, k.ViewTracker) and len(other.entries) > len(made.entries)):
        through, among = made, other
    return _containers.new_set(t, [item for key, item in through.entries.items() if key in among.entries], set)


@operation
def _as_set(t: Tracing, vt: Any) -> Any:
    if isinstance(vt, k.ViewTracker) and vt.part != "values":
        return _containers.new_set(t, elements(t, vt), set)
    made = k.SetTracker(set)
    yield from settle(_containers.set_update(t, made, vt))
    return made


def _register(name: str, verb: str) -> None:
    for cls in SET_LIKE:
        methods.handles(getattr(cls, f"__{name}__"))(lambda t, args, kwargs: _operate(t, args[0], args[1], verb))
        methods.handles(getattr(cls, f"__r{name}__"))(lambda t, args, kwargs: _operate(t, args[1], args[0], verb))


for _name, _verb in _OPERATORS.items():
    _register(_name, _verb)


@methods.handles(KEYS.isdisjoint, ITEMS.isdisjoint, takes=1)
def isdisjoint(t: Tracing, args: Args, kwargs: Kwargs) -> Any:
    return _isdisjoint(t, args[0], args[1])


@operation
def _isdisjoint(t: Tracing, left: Any, right: Any) -> Any:
    ours, theirs = (yield from settle(_as_set(t, left))), (yield from settle(_as_set(t, right)))
    return k.ConstantTracker(ours.entries.keys().isdisjoint(theirs.entries.keys()))


def _comparison(cls: type, symbol: str) -> None:
    name = {"==": "eq", "!=": "ne", "<": "lt", "<=": "le", ">": "gt", ">=": "ge"}[symbol]

    @methods.handles(getattr(cls, f"__{name}__"))
    def compare(t: Tracing, args: Args, kwargs: Kwargs) -> Any:
        left, right = args
        other_is_set = isinstance(right, k.SetTracker) or (isinstance(right, k.ViewTracker) and right.part != "values")
        if not other_is_set:
            return _dicts.NOT_IMPLEMENTED
        return _compare(t, left, right, symbol)


@operation
def _compare(t: Tracing, left: Any, right: Any, symbol: str) -> Any:
    ours, theirs = (yield from settle(_as_set(t, left))), (yield from settle(_as_set(t, right)))
    return k.ConstantTracker(_sets.compared(symbol, ours.entries.keys(), theirs.entries.keys()))


for _symbol in ("==", "!=", "<", "<=", ">", ">="):
    for _cls in SET_LIKE:
        _comparison(_cls, _symbol)
