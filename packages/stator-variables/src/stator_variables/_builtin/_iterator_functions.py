"""Handlers of what makes, orders and steps iterators, and generators: `range`, `zip`, `map`,
`sorted`, `send`."""

import itertools
import types
from types import GeneratorType
from typing import Any

from stator_bytecode import (
    NULL,
    GeneratorStatus,
    OperationSteps,
    Raised,
    Result,
    Resume,
    Then,
    after,
    operation,
    settle,
)

from stator_variables._objects import _exceptions, _new_values, _number
from stator_variables._objects._hash_results import observed
from stator_variables._objects._iterators._item import ItemIteratorTracker
from stator_variables._objects._iterators._iterator import IteratorTracker
from stator_variables._objects._iterators._map import (
    CallableIteratorTracker,
    CallingTracker,
    FilterTracker,
    MapTracker,
)
from stator_variables._objects._iterators._sequence import (
    ConstantIteratorTracker,
    SequenceIteratorTracker,
)
from stator_variables._objects._iterators._zip import EnumerateTracker, ZipTracker
from stator_variables._objects._list import ListTracker
from stator_variables._objects._lookup import defines, overrides
from stator_variables._objects._method import MethodTracker
from stator_variables._objects._method_table import folded, settle_all
from stator_variables._objects._program_error import attempt, complain, new_exception, throw
from stator_variables._objects._sorting import sort
from stator_variables._protocols import _containers, _iteration
from stator_variables._space import Space
from stator_variables._tracker import MISSING, Args, FunctionTable, Kwargs, VariableTracker, is_a
from stator_variables._trackers import (
    NONE,
    ConstantTracker,
    GeneratorTracker,
    ObjectTracker,
    is_none,
)

handlers = FunctionTable("builtin")


@handlers.handles(iter)
def handle_iter(t: Space, args: Args, kwargs: Kwargs) -> Result:
    if len(args) == 2:
        if not defines(t, args[0].cls, "__call__"):
            return _new_values.computed(t, iter, None, None)  # raises, in the words of this CPython
        return CallableIteratorTracker(*args)
    return t.get_iterator(args[0])


@handlers.handles(str.__iter__, bytes.__iter__, range.__iter__)
def iterate_constant(t: Space, args: Args, kwargs: Kwargs) -> ConstantIteratorTracker:
    vt = args[0]
    if not vt.is_known:
        raise t.unsupported("builtin", f"the iterator of a builtin class over a {vt.cls.__name__}")
    return ConstantIteratorTracker(type(iter(vt.value)), vt, vt.value)


@handlers.handles(next)
def handle_next(t: Space, args: Args, kwargs: Kwargs) -> Result:
    if is_a(args[0], GeneratorTracker) and len(args) == 1:
        return Resume(args[0].state, NONE)
    return _next(t, args[0], args[1] if len(args) > 1 else None)


@operation
def _next(t: Space, it: VariableTracker, default: VariableTracker | None) -> OperationSteps:
    try:
        value = yield from settle(it.next(t))  # whose StopIteration may have a value
    except Raised as raised:
        if default is None or not issubclass(raised.value.cls, StopIteration):
            raise
        return default
    if value is not NULL:
        return value
    if default is None:
        raise Raised(new_exception(StopIteration, []))
    return default


@handlers.handles(range)
@operation
def make_range(t: Space, args: Args, kwargs: Kwargs) -> OperationSteps:
    found = yield from settle_all(_containers.as_index(t, arg) for arg in args)
    return folded(t, range, [_number.as_constant(t, vt) for vt in found], kwargs)


@handlers.handles(zip)
def make_zip(t: Space, args: Args, kwargs: Kwargs) -> Result:
    strict = kwargs["strict"].constant() if "strict" in kwargs else False
    return _iterators(t, args, lambda found: ZipTracker(bool(strict), *found))


@handlers.handles_each({map: MapTracker, filter: FilterTracker})
def make_map(t: Space, args: Args, kwargs: Kwargs, of: type[CallingTracker]) -> Result:
    return _iterators(t, args[1:], lambda found: of(args[0], *found))


@handlers.handles(enumerate)
def make_enumerate(t: Space, args: Args, kwargs: Kwargs) -> Result:
    start = args[1] if len(args) > 1 else kwargs.get("start", ConstantTracker(0))
    if not issubclass(start.cls, int) or is_a(start, ObjectTracker):
        raise t.unsupported("bad-arguments", f"enumerate() from a {start.cls.__name__} on")
    iterable = args[0] if args else kwargs["iterable"]
    return after(t.get_iterator(iterable), lambda found: EnumerateTracker(found, start))


@operation
def _iterators(t: Space, iterables: Args, make: Any) -> OperationSteps:
    return make((yield from settle_all(map(t.get_iterator, iterables))))


@handlers.handles(reversed, range.__reversed__)
def make_reversed(t: Space, args: Args, kwargs: Kwargs) -> Result:
    vt = args[0]
    bound = t.special(vt, "__reversed__")
    if is_a(bound, MethodTracker) and bound.function.base is types.FunctionType:
        return t.call(bound, [])
    in_python = overrides(t, vt.cls, "__len__", "__getitem__")
    if vt.base is tuple and not in_python:
        return SequenceIteratorTracker(reversed, 0, vt, backwards=True)
    if vt.is_known and isinstance(vt.value, str | bytes | range) and not in_python:
        if isinstance(vt.value, range):  # its iterator is one over the range the other way round
            return t.get_iterator(ConstantTracker(vt.value[::-1]))
        return ConstantIteratorTracker(reversed, vt, vt.value[::-1])

    is_sequence = bound is MISSING and _iteration.is_sequence(t, vt)
    if is_none(bound) or (bound is MISSING and not is_sequence):
        complain(t, TypeError, "'", vt.cls, "' object is not reversible")
    if not is_sequence:
        return t.call(bound, [])
    return _reversed_protocol(t, vt)


@operation
def _reversed_protocol(t: Space, vt: VariableTracker) -> OperationSteps:
    """Return `reversed` of an object with `__len__` and `__getitem__`: a real one would read the
    length again."""
    length, changed = yield from observed(t, settle(_containers.length(t, vt)), (vt,))
    if changed:
        raise t.unsupported(
            "builtin", f"reversed() of a {vt.cls.__name__}, whose __len__ changes things"
        )
    size = length.constant()
    if not isinstance(size, int):
        raise t.unsupported("builtin", f"reversed() of a {vt.cls.__name__} of unknown length")
    return ItemIteratorTracker(vt, size)


@handlers.handles(sorted)
@operation
def handle_sorted(t: Space, args: Args, kwargs: Kwargs) -> OperationSteps:
    # else equal keys stay in hash order
    if is_none(kwargs.get("key", NONE)) and has_total_order(t, args[0]):
        items = list(args[0].entries.values())
    else:
        items = yield from settle(t.drain(args[0], calls_len=True))
    order = [*range(len(items))]
    yield from sort(t, items, kwargs.get("key"), kwargs.get("reverse"), order)
    return ListTracker([items[i] for i in order])


def has_total_order(t: Space, vt: Any) -> bool:
    """Return True for a set of only strings, only ints…, that C iterates without methods of the
    program."""
    if vt.base is not set or overrides(t, vt.cls, "__iter__", "__len__"):
        return False
    kinds = {type(item.constant()) for item in vt.entries.values()}
    return kinds in ({str}, {int}, {bytes}, {float}) and not any(
        item.value != item.value for item in vt.entries.values()
    )


_CONTAINERS: list[Any] = [[], (), {}]
_ITERATOR_TYPES: list[Any] = [*map(type, map(iter, _CONTAINERS)), type(reversed([]))]
_ITERATOR_TYPES += [cls for cls in vars(itertools).values() if hasattr(cls, "__next__")]
_ITERATOR_TYPES += [zip, map, filter, enumerate]


@handlers.handles(*[cls.__next__ for cls in _ITERATOR_TYPES], GeneratorType.__next__)
def iterator_next(t: Space, args: Args, kwargs: Kwargs) -> Result:
    if not is_a(args[0], IteratorTracker | GeneratorTracker):
        raise t.unsupported("foreign-iterator", f"a step of an existing {args[0].cls.__name__}")
    return handle_next(t, args[:1], {})


@handlers.handles(*[cls.__iter__ for cls in _ITERATOR_TYPES], GeneratorType.__iter__)
def iterator_iter(t: Space, args: Args, kwargs: Kwargs) -> Result:
    return args[0]


# Handlers of the methods of generators.


def _state_of(t: Space, vt: VariableTracker) -> Any:
    """The state of a generator that was made while tracing; one that existed before has a native
    frame."""
    if not is_a(vt, GeneratorTracker):
        raise t.unsupported("foreign-iterator", f"a step of an existing {vt.cls.__name__}")
    return vt.state


@handlers.handles(GeneratorType.send)
def generator_send(t: Space, args: Args, kwargs: Kwargs) -> Result:
    return Resume(_state_of(t, args[0]), args[1])


@handlers.handles(GeneratorType.throw)
@operation
def generator_throw(t: Space, args: Args, kwargs: Kwargs) -> OperationSteps:
    state = _state_of(t, args[0])
    thrown = yield from settle(
        _exceptions.thrown_from(t, args[1], args[2] if len(args) > 2 else NONE)
    )
    if len(args) > 3 and not is_none(args[3]) and not _exceptions.is_traceback_of(thrown, args[3]):
        raise t.unsupported("builtin", "throw with another traceback than that of what is thrown")
    return (yield Resume(state, None, thrown))


@handlers.handles(GeneratorType.close)
@operation
def generator_close(t: Space, args: Args, kwargs: Kwargs) -> OperationSteps:
    state = _state_of(t, args[0])
    if state.status is GeneratorStatus.CLOSED:
        return NONE
    closing = new_exception(GeneratorExit, [])
    ended = yield from attempt(
        t, GeneratorExit | StopIteration, MISSING, Resume, state, None, closing, Then("value")
    )
    if ended is not MISSING:
        throw(RuntimeError, "generator ignored GeneratorExit")
    return NONE
