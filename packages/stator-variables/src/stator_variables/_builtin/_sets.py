"""The methods of set and frozenset (Objects/setobject.c)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from stator_bytecode import operation, settle

from stator_variables import _kinds as k
from stator_variables._builtin._arity import ANY_COUNT, Args, Kwargs
from stator_variables._builtin._method_table import MethodTable
from stator_variables._model import _calls, _containers, _iteration
from stator_variables._model._containers import replace_set, step_with
from stator_variables._model._hashing import element_of, key_of
from stator_variables._model._raising import throw
from stator_variables._model._set_order import derived, made_again
from stator_variables._tracing import Tracing

methods = MethodTable("set method")
NOT_IMPLEMENTED = k.ConstantTracker(NotImplemented)
Entries = dict[Any, Any]


# -- what the operators give: entries of the result -------------------------------------------------------------------
def combine(verb: str, left: Entries, right: Entries) -> Entries:
    """Which of two equal elements stays is as in C: an intersection goes through the shorter set, or the second one."""
    if verb == "union":
        return {**left, **{key: item for key, item in right.items() if key not in left}}
    if verb == "intersection":
        shorter, longer = (left, right) if len(right) > len(left) else (right, left)
        return {key: item for key, item in shorter.items() if key in longer}
    if verb == "difference":
        return {key: item for key, item in left.items() if key not in right}
    return {**{key: item for key, item in right.items() if key not in left}, **combine("difference", left, right)}


def compared(symbol: str, left: Any, right: Any) -> bool:
    compare: dict[str, Callable[[], bool]] = {
        "==": lambda: left == right,
        "!=": lambda: left != right,
        "<": lambda: left < right,
        "<=": lambda: left <= right,
        ">": lambda: left > right,
        ">=": lambda: left >= right,
    }
    return compare[symbol]()


IN_PLACE = {verb: f"{verb}_update" for verb in ("intersection", "difference", "symmetric_difference")} | {
    "union": "update"
}
"""What the in-place form of an operation is called."""


# -- elements ---------------------------------------------------------------------------------------------------------
@methods.handles(set.__init__, takes=(0, 1))
def init(t: Tracing, args: Args, kwargs: Kwargs) -> Any:
    if args[0].entries:
        replace_set(t, args[0], {})
    return k.NONE if len(args) == 1 else _containers.set_update(t, args[0], args[1])


@methods.handles(set.add, takes=1)
def add(t: Tracing, args: Args, kwargs: Kwargs) -> Any:
    return _containers.set_add(t, *args)


@methods.handles(set.__contains__, frozenset.__contains__, takes=1)
def contains(t: Tracing, args: Args, kwargs: Kwargs) -> Any:
    return k.ConstantTracker(_element(t, *args) in args[0].entries)


def _element(t: Tracing, of: Any, vt: Any) -> Any:
    """A set that is looked for stands for the frozenset of its elements."""
    return frozenset(vt.entries) if isinstance(vt, k.SetTracker) else element_of(t, vt, of)


@methods.handles(set.__len__, frozenset.__len__)
def length(t: Tracing, args: Args, kwargs: Kwargs) -> Any:
    return k.ConstantTracker(len(args[0].entries))


@methods.handles(set.__iter__, frozenset.__iter__)
def iterate(t: Tracing, args: Args, kwargs: Kwargs) -> Any:
    return _iteration.set_iterator(t, args[0])


@methods.handles(set.discard, takes=1)
def discard(t: Tracing, args: Args, kwargs: Kwargs) -> Any:
    _take_out(t, args[0], _element(t, *args))
    return k.NONE


@methods.handles(set.remove, takes=1)
def remove(t: Tracing, args: Args, kwargs: Kwargs) -> Any:
    if not _take_out(t, args[0], _element(t, *args)):
        from stator_variables._builtin._dicts import raise_key_error

        raise_key_error(args[1])
    return k.NONE


def _take_out(t: Tracing, vt: Any, hashed: Any) -> bool:
    if hashed not in vt.entries:
        return False
    rest = {key: item for key, item in vt.entries.items() if key != hashed}
    replace_set(t, vt, rest, ("discard", vt.entries[hashed]))
    return True


@methods.handles(set.pop, takes=0)
def pop(t: Tracing, args: Args, kwargs: Kwargs) -> Any:
    vt = args[0]
    if not vt.entries:
        throw(KeyError, "pop from an empty set")
    key = next(iter(vt.entries)) if len(vt.entries) == 1 else made_again(t, vt).pop()
    taken = vt.entries[key]
    replace_set(t, vt, {other: item for other, item in vt.entries.items() if other != key}, ("pop", None))
    return taken


@methods.handles(set.clear, takes=0)
def clear(t: Tracing, args: Args, kwargs: Kwargs) -> Any:
    replace_set(t, args[0], {}, ("clear", None))
    return k.NONE


@methods.handles(set.copy, frozenset.copy, takes=0)
def copy(t: Tracing, args: Args, kwargs: Kwargs) -> Any:
    return args[0] if args[0].cls is frozenset else derived(args[0].cls, dict(args[0].entries), "copy", args[0])


@methods.handles(frozenset.__hash__)
def hash_(t: Tracing, args: Args, kwargs: Kwargs) -> Any:
    return _calls.call_builtin(t, k.BuiltinTracker(hash), args, {})


# -- methods that take iterables --------------------------------------------------------------------------------------
@operation
def entries_of(t: Tracing, vt: Any) -> Any:
    """The elements of any iterable, hashed. The order is that in which they came."""
    if isinstance(vt, k.SetTracker):
        return vt.entries
    if isinstance(vt, k.DictTracker):
        from stator_variables._model import _dictionary

        return {key_of(t, key): key for key, _ in _dictionary.items(t, vt)}
    made = k.SetTracker(set)
    yield from settle(_containers.set_update(t, made, vt))
    return made.entries


@operation
def _fold(t: Tracing, vt: Any, others: Args, verb: str, in_place: bool) -> Any:
    entries, operands = vt.entries, []
    for other in others:
        more = yield from settle(entries_of(t, other))
        operands.append(
            other if isinstance(other, k.SetTracker | k.DictTracker) else k.TupleTracker([*more.values()], tuple)
        )
        entries = combine(verb, entries, more)
    if not in_place:
        return derived(vt.cls, dict(entries), verb, vt, *operands)
    steps = [step for operand in operands for step in step_with(IN_PLACE[verb], operand)]
    if entries is not vt.entries:
        replace_set(t, vt, entries, *(steps if len(steps) == len(others) else ()))
    return k.NONE


def _register_method(name: str, *targets: Any, verb: str, in_place: bool, takes: tuple[int, int]) -> None:
    @methods.handles(*targets, takes=takes)
    def method(t: Tracing, args: Args, kwargs: Kwargs) -> Any:
        return _fold(t, args[0], args[1:], verb, in_place)


for _verb in ("union", "intersection", "difference", "symmetric_difference"):
    _takes = (1, 1) if _verb == "symmetric_difference" else (0, ANY_COUNT)
    _targets = getattr(set, _verb), getattr(frozenset, _verb)
    _register_method(_verb, *_targets, verb=_verb, in_place=False, takes=_takes)
    if _verb != "union":
        _register_method(_verb, getattr(set, f"{_verb}_update"), verb=_verb, in_place=True, takes=_takes)


@methods.handles(set.update, takes=(0, ANY_COUNT))
def update(t: Tracing, args: Args, kwargs: Kwargs) -> Any:
    return _update(t, args[0], args[1:])


@operation
def _update(t: Tracing, vt: Any, others: Args) -> Any:
    for other in others:
        yield from settle(_containers.set_update(t, vt, other))
    return k.NONE


@operation
def _subset(t: Tracing, left: Any, right: Any) -> Any:
    ours, theirs = (yield from settle(entries_of(t, left))), (yield from settle(entries_of(t, right)))
    return k.ConstantTracker(ours.keys() <= theirs.keys())


@methods.handles(set.issubset, frozenset.issubset, takes=1)
def issubset(t: Tracing, args: Args, kwargs: Kwargs) -> Any:
    return _subset(t, args[0], args[1])


@methods.handles(set.issuperset, frozenset.issuperset, takes=1)
def issuperset(t: Tracing, args: Args, kwargs: Kwargs) -> Any:
    return _subset(t, args[1], args[0])


@methods.handles(set.isdisjoint, frozenset.isdisjoint, takes=1)
def isdisjoint(t: Tracing, args: Args, kwargs: Kwargs) -> Any:
    return _isdisjoint(t, args[0], args[1])


@operation
def _isdisjoint(t: Tracing, left: Any, right: Any) -> Any:
    theirs = yield from settle(entries_of(t, right))
    return k.ConstantTracker(left.entries.keys().isdisjoint(theirs.keys()))


# -- operators, which take sets only ----------------------------------------------------------------------------------
_SYMBOLS = {"and": "intersection", "or": "union", "xor": "symmetric_difference", "sub": "difference"}


def _register_operator(name: str, verb: str) -> None:
    @methods.handles(getattr(set, f"__{name}__"), getattr(frozenset, f"__{name}__"))
    def plain(t: Tracing, args: Args, kwargs: Kwargs) -> Any:
        return _operate(args[0], args[1], verb)

    @methods.handles(getattr(set, f"__r{name}__"), getattr(frozenset, f"__r{name}__"))
    def reflected(t: Tracing, args: Args, kwargs: Kwargs) -> Any:
        return _operate(args[1], args[0], verb)

    @methods.handles(getattr(set, f"__i{name}__"))
    def in_place(t: Tracing, args: Args, kwargs: Kwargs) -> Any:
        if not isinstance(args[1], k.SetTracker):
            return NOT_IMPLEMENTED
        steps = step_with(IN_PLACE[verb], args[1])
        replace_set(t, args[0], combine(verb, args[0].entries, args[1].entries), *steps)
        return args[0]


def _operate(left: Any, right: Any, verb: str) -> Any:
    if not isinstance(left, k.SetTracker) or not isinstance(right, k.SetTracker):
        return NOT_IMPLEMENTED
    return derived(left.cls, combine(verb, left.entries, right.entries), verb, left, right)


for _name, _verb in _SYMBOLS.items():
    _register_operator(_name, _verb)


def _register_comparison(name: str, symbol: str) -> None:
    @methods.handles(getattr(set, f"__{name}__"), getattr(frozenset, f"__{name}__"))
    def compare(t: Tracing, args: Args, kwargs: Kwargs) -> Any:
        if not isinstance(args[1], k.SetTracker):
            return NOT_IMPLEMENTED
        return k.ConstantTracker(compared(symbol, args[0].entries.keys(), args[1].entries.keys()))


for _name, _symbol in {"eq": "==", "ne": "!=", "lt": "<", "le": "<=", "gt": ">", "ge": ">="}.items():
    _register_comparison(_name, _symbol)
