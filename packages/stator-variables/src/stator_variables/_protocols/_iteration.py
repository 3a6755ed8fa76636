"""Iteration: iterators over trackers, unpacking, and draining an iterable into a list."""

import collections
import operator
import types
from collections.abc import Callable, Sequence
from typing import Any

from stator_bytecode import (
    NULL,
    VALUE,
    Invoke,
    OperationSteps,
    Result,
    Then,
    after,
    operation,
    settle,
)
from stator_guards import CallSource, ItemSource, Length, Source, Truth

from stator_variables._objects import _new_values
from stator_variables._objects._iterator import AHEAD, IteratorTracker, is_over_changed
from stator_variables._objects._lookup import (
    defines,
    guarded_lookup,
    is_app_level,
    type_lookup,
)
from stator_variables._objects._program_error import attempt, complain, throw
from stator_variables._objects._tuple import TupleTracker
from stator_variables._protocols import _attributes
from stator_variables._runtime._contents import plain_lookup
from stator_variables._runtime._finalizers import exhausts_unobserved
from stator_variables._runtime._support import exhausted_by_items
from stator_variables._space import Space
from stator_variables._tensors import _torch_calls
from stator_variables._tracker import MISSING, VariableTracker, is_a
from stator_variables._trackers import ConstantTracker, is_none

_TUPLE_ITERATOR = type(iter(()))
_ITEM_ITERATOR = type(exhausted_by_items())
_SEQUENCES = (list, tuple, collections.deque)


def get_iterator(t: Space, vt: VariableTracker) -> Result:
    """`iter(vt)`: a Result."""
    if (native := vt.iter(t)) is not MISSING:
        return native
    raw, source = type_lookup(t, vt.cls, "__iter__")
    if source is not None and raw is not None:
        if _attributes.may_refuse(t, raw):
            return _iterator_if_bound(t, raw, source, vt)
        if type(raw) is types.WrapperDescriptorType and raw in t.handlers:
            return t.handlers[raw](t, [vt], {})
        given = t.call(t.bind(raw, source, vt, "__iter__"), [])
        return t.completed(given, Then("iter"))
    return _iterator_by_items(t, vt, raw)


@operation
def _iterator_if_bound(t: Space, raw: Any, source: Source, vt: Any) -> OperationSteps:
    if (bound := (yield from _attributes.bound_or_none(t, raw, source, vt, "__iter__"))) is None:
        return _iterator_by_items(t, vt, raw)
    return (yield from settle(t.completed(t.call(bound, []), Then("iter"))))


def _iterator_by_items(t: Space, vt: VariableTracker, raw: Any) -> IteratorTracker:
    if raw is not None and is_sequence(t, vt):
        return IteratorTracker(_ITEM_ITERATOR, "getitem", [vt])
    complain(t, TypeError, "'", vt.cls, "' object is not iterable")


def is_sequence(t: Space, vt: VariableTracker) -> bool:
    """Implement `PySequence_Check`: `__getitem__` of a class of C may be that of a mapping, which
    is unknown."""
    if vt.base in _SEQUENCES:
        return True
    if isinstance(guarded_lookup(t, vt.cls, "__getitem__"), types.WrapperDescriptorType):
        raise t.unsupported(
            "foreign-object", f"iteration over a {vt.cls.__qualname__} by its items"
        )
    return defines(t, vt.cls, "__getitem__")


def iterator_of_call(t: Space, found: VariableTracker) -> VariableTracker:
    """The result of `__iter__`, which has to be an iterator."""
    if not defines(t, found.cls, "__next__"):
        complain(t, TypeError, "iter() returned non-iterator of type '", found.cls, "'")
    return found


def iterate_tensor(t: Space, vt: Any) -> Any:
    """`iter(vt)`: of its parts, which the graph computes at once."""
    if vt.example.dim() == 0:
        throw(TypeError, "iteration over a 0-d tensor")
    parts = _torch_calls.record(t, "unbind", [vt, ConstantTracker(0)])
    return IteratorTracker(_TUPLE_ITERATOR, "sequence", [parts])


def iterate_array(t: Space, vt: Any) -> VariableTracker:
    """`iter(vt)`, or MISSING for an array without dimensions."""
    is_row = vt.tensor.example.dim() > 0
    return IteratorTracker(_ITEM_ITERATOR, "getitem", [vt]) if is_row else MISSING


def next_value(t: Space, it: VariableTracker) -> Result:
    """The next item; NULL when exhausted; a Resume for a generator; a Pending where items need
    calls."""
    return it.next(t) if it.steps_to_null else _user_next(t, it)


def next_or_raise(t: Space, it: VariableTracker) -> Result:
    """The same, with the StopIteration that an iterator of the program's raises: it may have a
    value."""
    return it.next(t)


def step(t: Space, it: IteratorTracker) -> Result:
    """Give the next item of a builtin iterator; NULL at the end, but for a function that raises
    StopIteration."""
    return _STEPS[it.kind](t, it)


def _user_next(t: Space, it: VariableTracker) -> Result:
    """A `__next__` of Python's is a frame that waits with its caller where it breaks."""
    if isinstance(plain_lookup(it.cls, "__next__"), types.FunctionType) and not is_app_level(
        it.cls
    ):
        outcome = next_or_raise(t, it)
        if type(outcome) is Invoke and outcome.then is VALUE:
            return Invoke(outcome.frame, Then("next"))
        return _next_of(t, lambda *_: outcome, it)
    return _next_of(t, next_or_raise, it)


@operation
def _next_of(t: Space, step: Callable[[Space, Any], Any], it: VariableTracker) -> OperationSteps:
    return (yield from attempt(t, StopIteration, NULL, step, t, it))


def advance(t: Space, it: IteratorTracker) -> None:
    """Move a tracked iterator one on."""
    t.write(it, position=it.position + 1)


def _finish(t: Space, it: IteratorTracker) -> Any:
    if not it.exhausted:
        t.write(it, exhausted=True)
    return NULL


def _placed(item_at: Callable[[Space, Any], Any]) -> Callable[[Space, Any], Any]:
    """The step of an iterator that stands somewhere: it gives the item there and moves on, or ends
    where NULL is."""

    def step(t: Space, it: IteratorTracker) -> Result:
        def given(item: Any) -> Any:
            if item is NULL:
                return _finish(t, it)
            advance(t, it)
            return item

        if it.exhausted and it.kind != "deque":  # which still reads its container
            return NULL
        return after(item_at(t, it), given)

    return step


def _at(items: list[Any], index: int) -> Any:
    return items[index] if 0 <= index < len(items) else NULL


def indexed(values: Any) -> object:
    """The items of a constant by their position; a long range has them all without making them."""
    return values if isinstance(values, Sequence) else list(values)


@_placed
def _next_constant(t: Space, it: IteratorTracker) -> Any:
    try:
        return _new_values.fresh(t, it.parts[0][it.position])
    except IndexError:
        return NULL


_OF_PLAIN_ITEMS = tuple(type(iter(each)) for each in (range(1), range(1 << 70), "", "é", b""))
"""Iterators whose end releases nothing that the program can observe, whatever they go through."""


@_placed
def _next_of_existing(t: Space, it: Any) -> Any:
    _, source, left = it.parts
    at = it.position
    if is_over_changed(t, it):
        raise t.unsupported(
            "changed-during-iteration", f"a step of a {it.cls.__name__} over what was changed"
        )
    if at == 0:
        it.since = t.graph.mark()
    if at == AHEAD:
        raise _too_far(t, it)
    if at == len(left):
        if it.cls not in _OF_PLAIN_ITEMS:
            if not exhausts_unobserved(it.real):
                raise t.unsupported(
                    "object-dropped", f"a {it.cls.__name__} at its end, with what it held"
                )
            t.guard(CallSource(exhausts_unobserved, it.source), Truth(True))
        t.guard(source, Length(at))
        return NULL
    t.need_length(source, at + 1)
    return t.wrap(left[at], ItemSource(source, at))


def _too_far(t: Space, it: Any) -> Exception:
    """Return the refusal of many more rounds, without an operation of the graph in those before: a
    long loop."""
    length = operator.length_hint(it.real)
    if length > 8 * AHEAD and it.since == t.graph.mark():
        t.progress.looping = len(t.machine.frames) - 1
        return t.unsupported("long-loop", f"a loop over {length} items without a tensor operation")
    return t.unsupported("long-container", f"more than {AHEAD} items of a {it.cls.__name__}")


@_placed
def _next_in_dict(t: Space, it: IteratorTracker) -> Any:
    d, size, backwards = it.parts
    pairs = t.items(d)
    if len(pairs) != size:
        raise t.unsupported(
            "dict-changed-during-iteration", "a dict whose keys changed since its iterator was made"
        )
    if it.position >= size:
        return NULL
    key, value = pairs[-1 - it.position if backwards else it.position]
    return (
        key if it.kind == "keys" else value if it.kind == "values" else TupleTracker([key, value])
    )


@_placed
def _next_in_set(t: Space, it: IteratorTracker) -> Any:
    vt, size, items = it.parts
    if len(vt.entries) != size:
        throw(RuntimeError, "Set changed size during iteration")
    if {id(item) for item in vt.entries.values()} != {id(item) for item in items}:
        raise t.unsupported("set-order", "a set that changes while it is iterated")
    return _at(items, it.position)


@_placed
def _next_in_deque(t: Space, it: IteratorTracker) -> Any:
    vt, size, structure = it.parts
    if it.index < 0:
        return NULL
    if len(vt.items) != size or vt.structure != structure:
        throw(RuntimeError, "deque mutated during iteration")
    return _at(vt.items, it.index)


def _one_of_each(t: Space, sources: list[Any]) -> OperationSteps:
    """The next items of several iterators, up to the first that has none."""
    found: list[Any] = []
    for part in sources:
        if (value := (yield from settle(next_value(t, part)))) is NULL:
            break
        found.append(value)
    return found


@operation
def _next_zip(t: Space, it: IteratorTracker) -> OperationSteps:
    sources, strict = it.parts
    found = yield from _one_of_each(t, sources)
    if strict and len(found) < len(sources):
        yield from _check_strict(t, sources, len(found))
    return TupleTracker(found) if sources and len(found) == len(sources) else NULL


def _check_strict(t: Space, sources: list[Any], index: int) -> OperationSteps:
    if index:
        s = " " if index == 1 else "s 1-"
        throw(ValueError, f"zip() argument {index + 1} is shorter than argument{s}{index}")
    for later, part in enumerate(sources[1:], start=1):
        if (yield from settle(next_value(t, part))) is not NULL:
            s = " " if later == 1 else "s 1-"
            throw(ValueError, f"zip() argument {later + 1} is longer than argument{s}{later}")


@operation
def _next_map(t: Space, it: IteratorTracker) -> OperationSteps:
    function, sources = it.parts
    args = yield from _one_of_each(t, sources)
    return (yield from settle(t.call(function, args))) if len(args) == len(sources) else NULL


@operation
def _next_filter(t: Space, it: IteratorTracker) -> OperationSteps:
    function, source = it.parts
    while True:
        if (value := (yield from settle(next_value(t, source)))) is NULL:
            return NULL
        kept = value if is_none(function) else (yield from settle(t.call(function, [value])))
        if (yield from settle(t.truth(kept))):
            return value


def _is_replayed(it: VariableTracker) -> bool:
    """Return True if the steps of an existing iterator can be repeated without running code of the
    program twice."""
    if not is_a(it, IteratorTracker) or it.kind in ("map", "filter"):
        return False
    return all(map(_is_replayed, {"zip": it.parts[0], "enumerate": it.parts[:1]}.get(it.kind, ())))


@operation
def _next_enumerate(t: Space, it: IteratorTracker) -> OperationSteps:
    source, start = it.parts
    if it.source is not None and not _is_replayed(source):
        raise t.unsupported(
            "existing-iterator", f"a step of an existing enumerate over a {source.cls.__name__}"
        )
    if (value := (yield from settle(next_value(t, source)))) is NULL:
        return NULL
    index = t.binary("+", start, ConstantTracker(it.position))
    if it.source is None and not start.is_known:  # a value that goes on over a break
        t.write(it, parts=[source, t.binary("+", index, ConstantTracker(1))], position=0)
    else:
        advance(t, it)
    return TupleTracker([index, value])


@_placed
@operation
def _next_getitem(t: Space, it: IteratorTracker) -> OperationSteps:
    if it.index < 0:
        return NULL
    ends = IndexError | StopIteration
    return (yield from attempt(t, ends, NULL, t.get_item, it.parts[0], ConstantTracker(it.index)))


@operation
def _next_callable(t: Space, it: IteratorTracker) -> OperationSteps:
    function, sentinel = it.parts
    if it.exhausted:
        return NULL
    value = yield from attempt(t, StopIteration, NULL, t.call, function, [], {})
    if value is NULL:
        return _finish(t, it)
    if it.exhausted:  # the call went through the iterator itself
        return NULL
    if (yield from settle(t.equal(sentinel, value))):
        return _finish(t, it)
    return value


"""Iterators whose callees may raise StopIteration, which ends them as it ends an iterator of the
program's."""

_STEPS = {
    "sequence": _placed(lambda t, it: _at(it.parts[0].items, it.position)),
    "reversed": _placed(lambda t, it: _at(it.parts[0].items, it.index)),
    "constant": _next_constant,
    "existing": _next_of_existing,
    **dict.fromkeys(("keys", "values", "items"), _next_in_dict),
    "zip": _next_zip,
    "map": _next_map,
    "filter": _next_filter,
    "enumerate": _next_enumerate,
    **dict.fromkeys(
        ("application", "pooled"), lambda t, it: next_value(t, it.parts[0])
    ),  # which determines its end
    "set": _next_in_set,
    **dict.fromkeys(("deque", "deque reversed"), _next_in_deque),
    **dict.fromkeys(("getitem", "reversed getitem"), _next_getitem),
    "callable": _next_callable,
}


ROOM = 1 << 20
"""C makes room for as many items, and may find that there is none."""
