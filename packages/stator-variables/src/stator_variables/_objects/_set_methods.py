"""The methods of set and frozenset (Objects/setobject.c)."""

import functools
import sys
from collections.abc import Callable, Generator
from typing import Any

from stator_bytecode import NULL, OperationSteps, Result, after, operation, settle

from stator_variables._objects import _set_members
from stator_variables._objects._arity import ANY_COUNT
from stator_variables._objects._hash_results import ALONE, AS_ELEMENT, hashing
from stator_variables._objects._hashing import element_of
from stator_variables._objects._iterators._table import set_iterator
from stator_variables._objects._lookup import overrides, refuse_overridden
from stator_variables._objects._method_table import COMPARISONS, MethodTable, comparisons, then
from stator_variables._objects._program_error import name_of, throw
from stator_variables._objects._representation import shown
from stator_variables._objects._set import SetStep, SetTracker, derived, made_again, ordered
from stator_variables._objects._set_members import replace_set, step_with
from stator_variables._objects._tuple import TupleTracker
from stator_variables._objects._wrap import with_new_namespace
from stator_variables._space import Space
from stator_variables._tracker import VariableTracker
from stator_variables._trackers import (
    NONE,
    NOT_IMPLEMENTED,
    BuiltinTracker,
    ClassTracker,
    ConstantTracker,
)

methods = MethodTable("set method")
Entries = dict[Any, Any]


# -- what the operators give: entries of the result ------------------------------------------------
def combine(verb: str, left: Entries, right: Entries) -> Entries:
    """Combine two sets. Of two equal elements the same one stays as in C: an intersection iterates
    the shorter set, or the second one."""
    if verb == "union":
        return {**left, **{key: item for key, item in right.items() if key not in left}}
    if verb == "intersection":
        shorter, longer = (left, right) if len(right) > len(left) else (right, left)
        return {key: item for key, item in shorter.items() if key in longer}
    if verb == "difference":
        return {key: item for key, item in left.items() if key not in right}
    return {
        **{key: item for key, item in right.items() if key not in left},
        **combine("difference", left, right),
    }


IN_PLACE = {
    "union": "update",
    "intersection": "intersection_update",
    "difference": "difference_update",
    "symmetric_difference": "symmetric_difference_update",
}
"""The names of the in-place forms of operations."""
_OPERATORS = {"or": "union", "and": "intersection", "sub": "difference"}
_OPERATORS["xor"] = "symmetric_difference"
_CLASSES = (set, frozenset)


def operators(prefix: str, *classes: type) -> dict[Any, str]:
    """Return the verbs of the operators of these classes: plain, reflected ("r"), in place
    ("i")."""
    return {
        getattr(cls, f"__{prefix}{name}__"): verb
        for name, verb in _OPERATORS.items()
        for cls in classes
    }


# -- new sets --------------------------------------------------------------------------------------
@methods.handles_each({cls: cls for cls in _CLASSES}, takes=(0, 1))
def new(t: Space, *iterable: VariableTracker, of: type) -> Result:
    if of is frozenset and iterable and iterable[0].cls is of:
        return iterable[0]
    return _set_of(t, of, *iterable)


def _set_of(t: Space, cls: type, *iterable: VariableTracker) -> Result:
    made = SetTracker(cls)
    return then(_set_members.set_update(t, made, *iterable), made) if iterable else made


@methods.handles(frozenset.__new__, takes=(1, 2))
def new_frozenset(t: Space, cls: ClassTracker, *iterable: VariableTracker) -> Result:
    """More than an iterable is not accepted: it depends on the `__init__` of the class."""
    return after(_set_of(t, cls.value, *iterable), with_new_namespace)


# -- elements --------------------------------------------------------------------------------------
@methods.handles(set.__init__, takes=(0, 1))
def init(t: Space, vt: SetTracker, *iterable: VariableTracker) -> Result:
    if vt.entries:
        clear(t, vt)
    return _set_members.set_update(t, vt, *iterable) if iterable else NONE


methods.handles(set.add, takes=1)(_set_members.set_add)
methods.handles(set.__iter__, frozenset.__iter__)(set_iterator)


@methods.handles(set.__contains__, frozenset.__contains__, takes=1)
def contains(t: Space, vt: SetTracker, element: VariableTracker) -> ConstantTracker:
    return ConstantTracker(_set_members.has_member(t, vt, _element(t, vt, element)))


def _element(t: Space, of: SetTracker, vt: Any) -> object:
    """A set that has no hash and is looked for represents the frozenset of its elements."""
    has_hash = getattr(vt.cls, "__hash__", None) is not None
    return element_of(t, vt, of) if has_hash or vt.base is not set else frozenset(vt.entries)


@methods.handles(set.__len__, frozenset.__len__)
def length(t: Space, vt: SetTracker) -> ConstantTracker:
    return ConstantTracker(len(vt.entries))


@methods.handles(set.discard, takes=1)
def discard(t: Space, vt: SetTracker, element: VariableTracker) -> None:
    _take_out(t, vt, _element(t, vt, element))


@methods.handles(set.remove, takes=1)
def remove(t: Space, vt: SetTracker, element: VariableTracker) -> None:
    if not _take_out(t, vt, _element(t, vt, element)):
        throw(KeyError, element)


def _take_out(t: Space, vt: SetTracker, hashed: object, *step: SetStep) -> bool:
    """Return True if there was such an element; `step` is what C did, if not `discard`."""
    if hashed not in vt.entries:
        return False
    rest = {key: item for key, item in vt.entries.items() if key != hashed}
    steps = step or (("discard", vt.entries[hashed]),)
    replace_set(t, vt, rest, *steps)
    return True


@methods.handles(set.pop, takes=0)
def pop(t: Space, vt: SetTracker) -> Result:
    if not vt.entries:
        throw(KeyError, "pop from an empty set")
    key = next(iter(vt.entries)) if len(vt.entries) == 1 else made_again(t, vt).pop()
    taken = vt.entries[key]
    _take_out(t, vt, key, ("pop", None))
    return taken


@methods.handles(set.clear, takes=0)
def clear(t: Space, vt: SetTracker) -> None:
    replace_set(t, vt, {}, ("clear", None))


@methods.handles(set.copy, frozenset.copy, takes=0)
def copy(t: Space, vt: SetTracker) -> VariableTracker:
    return vt if vt.cls is frozenset else derived(vt.cls, dict(vt.entries), "copy", vt)


@methods.handles(frozenset.__hash__)
def hash_(t: Space, vt: SetTracker) -> Result:
    """Return the hash of the builtin class, without that of a subclass."""
    plain = SetTracker(frozenset)
    plain.entries = vt.entries
    return t.call(BuiltinTracker(hash), [plain])


def _never(key: Any) -> bool:
    return False


# -- methods that take iterables -------------------------------------------------------------------
@operation
def entries_of(
    t: Space, vt: Any, is_enough: Callable[[Any], bool] = _never, use: str = AS_ELEMENT
) -> OperationSteps:
    """The elements of any iterable, hashed for a use, up to one that is enough.

    The order is that in which they came.
    """
    if (known := _set_members.known_entries(t, vt)) is not None:
        return known
    iterator = yield from settle(t.get_iterator(vt))
    return (yield from _entries_through(t, iterator, is_enough, use))


def _entries_through(
    t: Space, iterator: VariableTracker, is_enough: Callable[[Any], bool], use: str = AS_ELEMENT
) -> Generator[Any, Any, Entries]:
    made = SetTracker(set)
    while (item := (yield from settle(t.next_value(iterator)))) is not NULL:
        size = len(made.entries)
        add = functools.partial(_set_members.set_add, t, made, item, use)
        yield from settle(hashing(t, add))
        if len(made.entries) > size and is_enough(next(reversed(made.entries))):
            break
    return made.entries


def _all_of(entries: Entries) -> Callable[[Any], bool]:
    """Return a predicate that is true for the last of them to come, and for none of no elements."""
    missing = set(entries)

    def is_last(key: object) -> bool:
        if key not in missing:
            return False
        missing.remove(key)
        return not missing

    return is_last


def _named(*verbs: str) -> dict[Any, tuple[str, bool]]:
    """Return, for the methods of these names, the verb, and True for those in place."""
    found = {getattr(cls, verb): (verb, False) for verb in verbs for cls in _CLASSES}
    in_place = {getattr(set, IN_PLACE[verb]): (verb, True) for verb in verbs if verb != "union"}
    return found | in_place


@methods.handles_each(_named("union", "intersection", "difference"), takes=(0, ANY_COUNT))
@methods.handles_each(_named("symmetric_difference"), takes=1)
@operation
def combine_all(
    t: Space, vt: SetTracker, *others: VariableTracker, of: tuple[str, bool]
) -> OperationSteps:
    verb, in_place = of
    entries, operands = vt.entries, []
    if verb == "union" and issubclass(vt.cls, set):
        others = tuple(other for other in others if other is not vt)
    for other in others:
        if verb == "intersection":
            more = yield from settle(entries_of(t, other, _all_of(entries), ALONE))
        else:
            more = yield from settle(entries_of(t, other))
        hashed = other.base in (set, dict)
        operands.append(other if hashed else TupleTracker([*more.values()]))
        entries = combine(verb, entries, more)

    if not in_place:
        if issubclass(vt.cls, set) and all(operand is vt for operand in operands):
            return _with_itself(vt, verb if operands else "union")
        return derived(vt.cls, dict(entries), verb, vt, *operands)
    steps = [step for operand in operands for step in _step(t, vt, verb, operand)]
    if entries is not vt.entries:
        replace_set(t, vt, entries, *steps)
    return NONE


def _with_itself(vt: Any, verb: str) -> SetTracker:
    """Return the result of C for a set and itself, without reading its table."""
    if verb in ("union", "intersection"):
        return derived(vt.cls, dict(vt.entries), "copy", vt)
    return SetTracker(set, {}, [])


def _step(t: Space, vt: VariableTracker, verb: str, other: VariableTracker) -> list[SetStep]:
    """The step that changes a set by another one.

    By itself C empties it; what it does for an intersection no other step does.
    """
    if other is not vt:
        return step_with(IN_PLACE[verb], other)
    if verb == "intersection":
        raise t.unsupported("set-order", "the intersection of a set with itself, in place")
    return [("clear", None)]


@methods.handles(set.update, takes=(0, ANY_COUNT))
@operation
def update(t: Space, vt: SetTracker, *others: Any) -> OperationSteps:
    for other in others:
        yield from settle(_set_members.set_update(t, vt, other))
    return NONE


@methods.handles(set.issubset, frozenset.issubset, takes=1)
@operation
def issubset(t: Space, left: SetTracker, right: VariableTracker) -> OperationSteps:
    # before, C made a set of the other first
    until = _all_of(left.entries) if sys.version_info >= (3, 12) else _never
    theirs = yield from settle(entries_of(t, right, until, ALONE))
    return ConstantTracker(left.entries.keys() <= theirs.keys())


@methods.handles(set.issuperset, frozenset.issuperset, takes=1)
@operation
def issuperset(t: Space, left: SetTracker, right: VariableTracker) -> OperationSteps:
    theirs = yield from settle(entries_of(t, right, lambda key: key not in left.entries))
    return ConstantTracker(left.entries.keys() >= theirs.keys())


@methods.handles(set.isdisjoint, frozenset.isdisjoint, takes=1)
@operation
def isdisjoint(t: Space, left: SetTracker, right: VariableTracker) -> OperationSteps:
    is_found = left.entries.__contains__
    if overrides(t, right.cls, "__iter__"):  # C calls this one, whatever it is
        theirs = yield from _entries_through(
            t, (yield from settle(t.get_iterator(right))), is_found
        )
    else:
        theirs = yield from settle(entries_of(t, right, is_found))
    return ConstantTracker(left.entries.keys().isdisjoint(theirs.keys()))


# -- operators, which take sets only ---------------------------------------------------------------
@methods.handles_each(operators("", *_CLASSES))
def operate(t: Space, left: SetTracker, right: Any, of: str) -> VariableTracker:
    if left.base is not set or right.base is not set:
        return NOT_IMPLEMENTED
    if left is right and issubclass(left.cls, set):
        return _with_itself(left, of)
    return derived(left.cls, combine(of, left.entries, right.entries), of, left, right)


@methods.handles_each(operators("r", *_CLASSES))
def operate_reflected(t: Space, right: SetTracker, left: SetTracker, of: str) -> VariableTracker:
    return operate(t, left, right, of)


@methods.handles_each(operators("i", set))
def operate_in_place(t: Space, vt: SetTracker, other: Any, of: str) -> VariableTracker:
    if other.base is not set:
        return NOT_IMPLEMENTED
    if of != "union" or other is not vt:
        replace_set(t, vt, combine(of, vt.entries, other.entries), *_step(t, vt, of, other))
    return vt


@methods.handles_each(comparisons(*_CLASSES))
def compare(t: Space, left: SetTracker, right: Any, of: str) -> ConstantTracker:
    if right.base is not set:
        return NOT_IMPLEMENTED
    test = COMPARISONS[of][2]
    return ConstantTracker(test(left.entries.keys(), right.entries.keys()))


@methods.handles(set.__repr__, frozenset.__repr__)
def repr_(t: Space, vt: SetTracker) -> Result:
    refuse_overridden(t, vt, "__iter__", "__len__")
    items = ordered(t, vt)
    name = name_of(t, vt.cls)
    if not items:
        return ConstantTracker(f"{name}()")
    start, end = ("{", "}") if vt.cls is set else (f"{name}({{", "})")
    return shown(t, vt, f"{name}(...)", items, start, end)
