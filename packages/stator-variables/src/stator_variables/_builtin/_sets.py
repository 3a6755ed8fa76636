"""The methods of set and frozenset (Objects/setobject.c)."""

import functools
import sys
from collections.abc import Callable, Generator
from typing import Any

from stator_bytecode import NULL, OperationSteps, Raised, Result, operation, settle

from stator_variables._objects import _set_members
from stator_variables._objects._arity import ANY_COUNT
from stator_variables._objects._hashing import element_of, hashing
from stator_variables._objects._iterators._table import set_iterator
from stator_variables._objects._lookup import overrides
from stator_variables._objects._method_table import COMPARISONS, MethodTable
from stator_variables._objects._program_error import new_exception, throw
from stator_variables._objects._set import SetTracker, derived, made_again
from stator_variables._objects._set_members import replace_set, step_with
from stator_variables._objects._tuple import TupleTracker
from stator_variables._protocols import _calls
from stator_variables._space import Space
from stator_variables._tracker import VariableTracker
from stator_variables._trackers import NONE, NOT_IMPLEMENTED, BuiltinTracker, ConstantTracker

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


_VERBS = ("union", "intersection", "difference", "symmetric_difference")
IN_PLACE = {verb: "update" if verb == "union" else f"{verb}_update" for verb in _VERBS}
"""The names of the in-place forms of operations."""


# -- elements --------------------------------------------------------------------------------------
@methods.handles(set.__init__, takes=(0, 1))
def init(t: Space, vt: SetTracker, *iterable: VariableTracker) -> Result:
    if vt.entries:
        replace_set(t, vt, {})
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
        raise Raised(new_exception(KeyError, [element]))


def _take_out(t: Space, vt: SetTracker, hashed: object) -> bool:
    if hashed not in vt.entries:
        return False
    rest = {key: item for key, item in vt.entries.items() if key != hashed}
    replace_set(t, vt, rest, ("discard", vt.entries[hashed]))
    return True


@methods.handles(set.pop, takes=0)
def pop(t: Space, vt: SetTracker) -> Result:
    if not vt.entries:
        throw(KeyError, "pop from an empty set")
    key = next(iter(vt.entries)) if len(vt.entries) == 1 else made_again(t, vt).pop()
    taken = vt.entries[key]
    replace_set(
        t, vt, {other: item for other, item in vt.entries.items() if other != key}, ("pop", None)
    )
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
    return _calls.call_builtin(t, BuiltinTracker(hash), [plain], {})


# -- methods that take iterables -------------------------------------------------------------------
@operation
def entries_of(
    t: Space, vt: Any, is_enough: Callable[[Any], bool] = lambda key: False
) -> OperationSteps:
    """The elements of any iterable, hashed, up to one that is enough.

    The order is that in which they came.
    """
    if vt.base is set:
        return vt.entries
    if vt.base is dict and vt.cls is dict:
        return {t.key_of(key): key for key, _ in t.items(vt)}
    return (yield from _entries_through(t, (yield from settle(t.get_iterator(vt))), is_enough))


def _entries_through(
    t: Space, iterator: VariableTracker, is_enough: Callable[[Any], bool]
) -> Generator[Any, Any, Entries]:
    made = SetTracker(set)
    while (item := (yield from settle(t.next_value(iterator)))) is not NULL:
        size = len(made.entries)
        yield from settle(hashing(t, functools.partial(_set_members.set_add, t, made, item)))
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


@operation
def _fold(
    t: Space, vt: SetTracker, others: tuple[Any, ...], verb: str, in_place: bool
) -> OperationSteps:
    entries, operands = vt.entries, []
    if verb == "union" and issubclass(vt.cls, set):
        others = tuple(other for other in others if other is not vt)
    for other in others:
        more = yield from settle(
            entries_of(t, other, *([_all_of(entries)] if verb == "intersection" else []))
        )
        hashed = other.base in (set, dict)
        operands.append(other if hashed else TupleTracker([*more.values()]))
        entries = combine(verb, entries, more)
    if not in_place:
        if issubclass(vt.cls, set) and all(operand is vt for operand in operands):
            return _with_itself(vt, verb if operands else "union")
        return derived(vt.cls, dict(entries), verb, vt, *operands)
    steps = [step for operand in operands for step in _step(vt, verb, operand)]
    if entries is not vt.entries:
        replace_set(t, vt, entries, *(steps if len(steps) == len(others) else ()))
    return NONE


def _with_itself(vt: Any, verb: str) -> SetTracker:
    """Return the result of C for a set and itself, without reading its table."""
    if verb in ("union", "intersection"):
        return derived(vt.cls, dict(vt.entries), "copy", vt)
    return SetTracker(set, {}, [])


def _step(vt: VariableTracker, verb: str, other: VariableTracker) -> list[tuple[str, Any]]:
    """The step that changes a set by another one.

    By itself C empties it, or leaves it; what it does for an intersection no other step does.
    """
    if other is not vt:
        return step_with(IN_PLACE[verb], other)
    return [] if verb == "intersection" else [("clear", None)]


def _register_method(*targets: object, verb: str, in_place: bool, takes: tuple[int, int]) -> None:
    methods.handles(*targets, takes=takes)(
        lambda t, vt, *others: _fold(t, vt, others, verb, in_place)
    )


for _verb in _VERBS:
    _takes = (1, 1) if _verb == "symmetric_difference" else (0, ANY_COUNT)
    _targets = getattr(set, _verb), getattr(frozenset, _verb)
    _register_method(*_targets, verb=_verb, in_place=False, takes=_takes)
    if _verb != "union":
        _register_method(getattr(set, IN_PLACE[_verb]), verb=_verb, in_place=True, takes=_takes)


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
    until = [_all_of(left.entries)] if sys.version_info >= (3, 12) else []
    theirs = yield from settle(entries_of(t, right, *until))
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
OPERATORS = {
    "and": "intersection",
    "or": "union",
    "xor": "symmetric_difference",
    "sub": "difference",
}


def _register_operator(name: str, verb: str) -> None:
    for cls in (set, frozenset):
        methods.handles(getattr(cls, f"__{name}__"))(
            lambda t, left, right: _operate(left, right, verb)
        )
        methods.handles(getattr(cls, f"__r{name}__"))(
            lambda t, right, left: _operate(left, right, verb)
        )

    @methods.handles(getattr(set, f"__i{name}__"))
    def in_place(t: Space, vt: SetTracker, other: Any) -> VariableTracker:
        if other.base is not set:
            return NOT_IMPLEMENTED
        if verb != "union" or other is not vt:
            replace_set(t, vt, combine(verb, vt.entries, other.entries), *_step(vt, verb, other))
        return vt


def _operate(left: Any, right: Any, verb: str) -> VariableTracker:
    if left.base is not set or right.base is not set:
        return NOT_IMPLEMENTED
    if left is right and issubclass(left.cls, set):
        return _with_itself(left, verb)
    return derived(left.cls, combine(verb, left.entries, right.entries), verb, left, right)


for _name, _verb in OPERATORS.items():
    _register_operator(_name, _verb)


def _register_comparison(compare: Callable[[Any, Any], bool], *targets: object) -> None:
    @methods.handles(*targets)
    def run(t: Space, left: SetTracker, right: Any) -> ConstantTracker:
        if right.base is not set:
            return NOT_IMPLEMENTED
        return ConstantTracker(compare(left.entries.keys(), right.entries.keys()))


for _name, _, _compare in COMPARISONS.values():
    _register_comparison(_compare, getattr(set, _name), getattr(frozenset, _name))
