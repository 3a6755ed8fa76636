"""The methods of dict views (`dictviews_*` in Objects/dictobject.c): set operations on keys and
items."""

from typing import Any

from stator_bytecode import OperationSteps, Result, operation, settle

from stator_variables._applevel import _methods as app
from stator_variables._objects import _dict_methods, _set_members, _set_methods
from stator_variables._objects._dict_view import DICT_VIEW, VIEW_CLASSES, ViewTracker, elements
from stator_variables._objects._iterators._table import DictIteratorTracker, dict_iterator
from stator_variables._objects._lookup import refuse_overridden
from stator_variables._objects._method_table import (
    COMPARISONS,
    MethodTable,
    app_level,
    comparisons,
    then,
)
from stator_variables._objects._program_error import name_of
from stator_variables._objects._representation import shown
from stator_variables._objects._set import SetTracker, derived, in_order
from stator_variables._objects._set_members import replace_set, step_with
from stator_variables._objects._tuple import TupleTracker
from stator_variables._space import Space
from stator_variables._tracker import MISSING, VariableTracker, is_a
from stator_variables._trackers import NOT_IMPLEMENTED, ConstantTracker

methods = MethodTable("view method")
(KEYS, VALUES, ITEMS), _ORDERED = zip(*VIEW_CLASSES.values(), strict=True)
SET_LIKE = (KEYS, ITEMS)


@methods.handles(KEYS.__len__, VALUES.__len__, ITEMS.__len__)
def length(t: Space, vt: ViewTracker) -> ConstantTracker:
    return _dict_methods.length(t, vt.mapping)


@methods.handles(
    KEYS.__iter__, VALUES.__iter__, ITEMS.__iter__, *(cls.__iter__ for cls in _ORDERED)
)
def iterate(t: Space, vt: ViewTracker) -> DictIteratorTracker:
    return dict_iterator(t, vt.mapping, vt.part)


_REVERSED = [cls.__reversed__ for cls in (KEYS, VALUES, ITEMS, *_ORDERED)]


@methods.handles(*_REVERSED, takes=0)
def reversed_(t: Space, vt: ViewTracker) -> DictIteratorTracker:
    return dict_iterator(t, vt.mapping, vt.part, backwards=True)


@methods.handles(KEYS.mapping, VALUES.mapping, ITEMS.mapping, takes=0)
def mapping(t: Space, vt: VariableTracker) -> Result:
    raise t.unsupported("mapping-proxy", "the mapping of a dict view")


@methods.handles(KEYS.__contains__)
def keys_contain(t: Space, vt: ViewTracker, key: VariableTracker) -> ConstantTracker:
    return _dict_methods.contains(t, vt.mapping, key)


@methods.handles(ITEMS.__contains__)
@operation
def items_contain(t: Space, vt: ViewTracker, pair: TupleTracker) -> OperationSteps:
    if pair.base is not tuple or len(pair.items) != 2:
        return ConstantTracker(False)
    if (found := t.lookup(vt.mapping, t.key_of(pair.items[0]))) is MISSING:
        return ConstantTracker(False)
    return ConstantTracker((yield from settle(t.equal(found, pair.items[1]))))


# -- set operators ---------------------------------------------------------------------------------
@methods.handles_each(_set_methods.operators("", *SET_LIKE))
@operation
def operate(t: Space, left: VariableTracker, right: VariableTracker, of: str) -> OperationSteps:
    if (pairs := _of_pairs(t, left, right, of)) is not MISSING:
        return (yield from settle(pairs))
    made = yield from settle(_as_set(t, left))
    other = yield from settle(_as_set(t, right))
    operand = right if right.base is set else TupleTracker([*other.entries.values()])
    if of == "intersection":
        return _intersection(t, made, other, left, right)
    entries = _set_methods.combine(of, made.entries, other.entries)
    replace_set(t, made, entries, *step_with(_set_methods.IN_PLACE[of], operand))
    return made


@methods.handles_each(_set_methods.operators("r", *SET_LIKE))
def operate_reflected(t: Space, right: VariableTracker, left: VariableTracker, of: str) -> Result:
    return operate(t, left, right, of)


def _of_pairs(t: Space, left: Any, right: Any, verb: str) -> Result:
    """Combine views with the pairs of a dict, of which C hashes only the result; MISSING for
    operations through sets."""
    view, other = (left, right) if left.base is DICT_VIEW else (right, left)
    views = other.base is DICT_VIEW
    if verb == "symmetric_difference" and views and view.part == other.part == "items":
        return app_level(t, app.differing, [_dict_methods.copy(t, left.mapping), right])
    if verb != "intersection" or "items" not in (view.part, other.part if views else ""):
        return MISSING
    size = len(t.items(view.mapping))
    if other.cls is set and size <= len(other.entries):
        return MISSING
    if views and other.part != "values" and len(t.items(other.mapping)) > size:
        view, other = other, view
    return app_level(t, app.common, [view, other])


def _intersection(
    t: Space, made: SetTracker, other: SetTracker, left: VariableTracker, right: Any
) -> SetTracker:
    """Goes through the shorter of two views, through the view if a set is not shorter, else through
    what is not a view (`_PyDictView_Intersect`)."""
    if left.base is not DICT_VIEW:
        made, other, left, right = other, made, right, left
    if right.base is set:
        refuse_overridden(t, right, "__iter__")
    through, among = (other.entries, made.entries)
    longer = len(through) > len(among)

    if longer if right.base is DICT_VIEW else right.cls is set and len(through) >= len(among):
        through, among = among, through
    elif right.base is set and not longer:
        return derived(
            set,
            _set_methods.combine("intersection", among, right.entries),
            "intersection",
            made,
            right,
        )
    elif right.base is set:
        through = {t.key_of(item): item for item in in_order(t, right)}

    return _set_members.new_set(t, [item for key, item in through.items() if key in among])


def _as_set(t: Space, vt: Any) -> Result:
    if vt.base is DICT_VIEW and vt.part != "values":
        return _set_members.new_set(t, elements(t, vt))
    made = SetTracker(set)
    return then(_set_members.set_update(t, made, vt), made)


@methods.handles(KEYS.isdisjoint, ITEMS.isdisjoint, takes=1)
def isdisjoint(t: Space, left: VariableTracker, right: VariableTracker) -> Result:
    has_length = ConstantTracker(is_a(right, SetTracker | ViewTracker))
    return app_level(t, app.is_disjoint, [left, right, has_length])


def _is_set(vt: Any) -> bool:
    return vt.base is set or (vt.base is DICT_VIEW and vt.part != "values")


@methods.handles_each(comparisons(ITEMS))
def compare_items(t: Space, left: VariableTracker, right: VariableTracker, of: str) -> Result:
    if not _is_set(right):
        return NOT_IMPLEMENTED
    return app_level(t, app.compared, [left, right, ConstantTracker(of)])


@methods.handles_each(comparisons(KEYS))
@operation
def compare_keys(
    t: Space, left: VariableTracker, right: VariableTracker, of: str
) -> OperationSteps:
    if not _is_set(right) or right.cls not in (KEYS, set, frozenset):
        return (yield from settle(compare_items(t, left, right, of)))
    ours, theirs = (yield from settle(_as_set(t, left))), (yield from settle(_as_set(t, right)))
    return ConstantTracker(COMPARISONS[of][2](ours.entries.keys(), theirs.entries.keys()))


@methods.handles(*dict.fromkeys(cls.__repr__ for cls in (KEYS, VALUES, ITEMS, *_ORDERED)))
def repr_(t: Space, vt: ViewTracker) -> Result:
    return shown(t, vt, "...", elements(t, vt), f"{name_of(t, vt.cls)}([", "])")
