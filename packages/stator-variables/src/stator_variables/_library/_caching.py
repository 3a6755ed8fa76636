"""`functools.lru_cache` and `functools.cache`.

What a cache holds is read without calling it, by the guards as well, so that nothing is counted or
thrown out. The calls themselves are effects: the entry makes them again, each a hit, in their
order.

    y = cached(3)      guards: the cache has that object for 3      entry: cached(3)
    y = cached(n)      the result is an existing object, read through peek(cached, n) like any
                       other; entry: cached(n)

A call that finds nothing is made ahead, while tracing or by a guard, if nothing that came before it
can show in it; the entry leaves it out that time. Else it is a break, and runs natively in its
place.
"""

import functools
import math
from collections import Counter
from collections.abc import Sequence
from typing import Any

import attrs
import torch
from stator_bytecode import OperationSteps, Result, operation, settle
from stator_bytecode.errors import Unsupported
from stator_guards import (
    CallSource,
    CapturedSource,
    Is,
    Kind,
    ParameterSource,
    Renderer,
    Source,
    State,
    Truth,
)

from stator_variables._bodies._body import BodyTrace
from stator_variables._library._cached_calls import (
    CachedCall,
    CachedCalls,
    RaisedAhead,
    ahead,
    make_ahead,
    result_number,
)
from stator_variables._library._cached_numbers import note_varying_numbers
from stator_variables._library._code_references import reaches
from stator_variables._objects import _number
from stator_variables._objects._cache_contents import (
    CACHED,
    KeptResult,
    KeptResults,
    key_of_call,
    peek,
)
from stator_variables._objects._hash_results import ALONE
from stator_variables._objects._hashing import real_key, tuple_of
from stator_variables._objects._iterators._iterator import IteratorTracker
from stator_variables._objects._method import MethodTracker
from stator_variables._objects._tuple import TupleTracker
from stator_variables._objects._wrap import wrap_present
from stator_variables._space import Space
from stator_variables._tracker import (
    MISSING,
    Args,
    FunctionTable,
    Kwargs,
    VariableTracker,
    is_a,
    made_of,
)
from stator_variables._trackers import ClassTracker, NewClassTracker, NumberTracker, is_none

handlers = FunctionTable("cache")


@attrs.frozen
class CachedResult(Kind):
    """The fact that the cache has a result.

    A missing result may be computed by the guard: effects of the program before the call are not
    observable in it.
    """

    lookup: CallSource
    turn: int
    # earlier calls, of caches that evict the least recently used result
    bounded: tuple[CallSource, ...]

    rank = 1
    merge_key = None
    of_contents = False
    fix = "call the cached function before"
    needs = "kept by the cache"
    finds = "not kept"

    def test(self, value: str, render: Renderer) -> str:
        return f"{value} is not {render.capture(MISSING, 'missing')}"

    def holds(self, value: object, state: State) -> bool:
        return value is not MISSING

    def mend(self, state: State) -> bool:
        """Make the call, if it throws no other result out, after those of before, which find what
        they look for."""
        cached, *values = (source.evaluate(state) for source in self.lookup.arguments)
        before = [
            [source.evaluate(state) for source in lookup.arguments] for lookup in self.bounded
        ]
        if (
            type(cached) is not CACHED
            or not _room(cached)
            or any(_room(first) < WITHIN for first, *_ in before)
        ):
            return False

        try:
            _make_first(self.bounded, before)
            lookup: Any = self.lookup.fn
            make_ahead(lookup.args[0], cached, values)
        except RaisedAhead as raised:
            cause: Any = raised.__cause__
            ahead.failed = raised.args[0], cause.with_traceback(None)
            return False
        return True


WITHIN = 16
"""The number of results of another cache that a call made by a guard may add to it."""


def _room(cached: Any) -> float:
    info = cached.cache_info()
    return math.inf if info.maxsize is None else info.maxsize - info.currsize


def _make_first(lookup: Sequence[CallSource], before: Sequence[list[Any]]) -> None:
    """Make the calls that no guard has made yet."""
    numbers = Counter[tuple[int, int]]()
    for each, (cached, *values) in zip(lookup, before, strict=True):
        names = each.fn.args[0]  # type: ignore[attr-defined]
        number = result_number(names, cached, values)
        numbers[number] += 1
        if ahead.made[number] < numbers[number]:
            make_ahead(names, cached, values)


@handlers.handles(CACHED.__get__)
def bind(t: Space, args: Args, kwargs: Kwargs) -> Result:
    cached, receiver = args[:2]
    return cached if is_none(receiver) else MethodTracker(cached, receiver)


@handlers.handles(CACHED.__call__)
def call(t: Space, args: Args, kwargs: Kwargs) -> Result:
    cached, *values = args
    parameters = getattr(cached.real, "cache_parameters", None)
    if parameters is None or parameters()["maxsize"] == 0:
        raise t.unsupported(
            "cached-function", "a cached function made while tracing, or one that keeps nothing"
        )

    given = [*values, *kwargs.values()]
    if t.state(CachedCalls).trial is not None:
        return _within_trial(
            t, cached, values, kwargs, [value for _, value in (_argument(t, vt) for vt in given)]
        )
    has_room = _has_room(t, cached.real.cache_info())
    if not has_room:  # what is read below would be thrown out
        given = [_number.as_constant(t, vt) for vt in given]

    arguments = [_argument(t, vt) for vt in given]
    t.guard(cached.source, Is(cached.real))
    look_up = make_lookup(tuple(kwargs), parameters()["typed"])
    sources = [source for source, _ in arguments]
    made = CachedCall(cached, values, kwargs, CallSource(look_up, cached.source, *sources))
    real = [value for _, value in arguments]
    result = look_up(cached.real, *real)

    made.is_read = _number.has_numbers(given) or (
        has_room and any(_may_vary(source) for source, _ in arguments)
    )
    if result is not MISSING:
        made.made = _was_made_ahead(t, made, real)
        return _found(t, made, result)
    is_independent = t.policy.is_whole and _is_independent(t, made, real)
    # those make equals of equal arguments
    if cached.real.__module__ != "typing" and not _may_be_ahead(t, made, is_independent):
        raise _refused(t, made, "has no result for this yet")
    # behind changes it must not raise: the program may catch that, and would call it once more
    is_tried = not is_independent or bool(t.heap.changed)
    return _tried(t, made, real) if is_tried else _missed(t, made, real)


def _is_independent(t: Space, made: CachedCall, values: list[Any]) -> bool:
    """Return whether the function cannot reach what the program has changed before, nor tensors or
    random numbers behind writes to some."""
    changed, is_pure = {id(vt.real) for vt in t.heap.changed.values()}, t.graph.is_pure
    if is_pure and not changed:
        return True
    return not reaches([made.cached.real, *values], changed, with_torch=not is_pure)


def _refused(t: Space, made: CachedCall, why: str) -> Exception:
    t.guard(made.lookup, Is(MISSING))
    return t.unsupported("cached-function", f"a cached function that {why}", once=True)


def _found(t: Space, made: CachedCall, result: object) -> VariableTracker:
    calls = t.state(CachedCalls).calls
    calls.append(made)
    t.journal.record(calls.pop)
    if made.is_read:
        if _number.has_numbers([*made.args, *made.kwargs.values()]):
            note_varying_numbers(t, made.cached.real, made.args, made.kwargs, result, made.lookup)
        return wrap_present(t, result, made.lookup)  # for other arguments there may be nothing
    _rely_on(t, made, result)
    return t.wrap(result, CapturedSource("cached", result))


def _rely_on(t: Space, made: CachedCall, result: object) -> None:
    """Guard what the cache has for a call; all calls with constant arguments have one guard."""
    cached = made.cached.real
    lookup = made.lookup.fn.args  # type: ignore[attr-defined]
    if (values := made.constants()) is not None:
        if (known := t.shared.get(("kept", id(cached)))) is None:
            known = t.shared["kept", id(cached)] = KeptResults(cached)
        known.add(lookup, values, result)
        t.guard(CallSource(known, made.cached.source), Truth(True))
    else:
        t.guard(CallSource(KeptResult(lookup, cached, result), *made.lookup.arguments), Truth(True))


def _was_made_ahead(t: Space, made: CachedCall, values: list[Any]) -> bool:
    """Return True if a guard made the call ahead, which held then, when another guard of its set
    did not."""
    number = result_number([*made.kwargs], made.cached.real, values)
    calls = t.state(CachedCalls).calls
    return bool(ahead.made[number] > sum(earlier.lookup == made.lookup for earlier in calls))


def _may_vary(source: Source) -> bool:
    """Return whether an argument is another object on another call, for which the cache has another
    result."""
    return any(isinstance(step, ParameterSource) for step in source.steps())


def _has_room(t: Space, info: Any) -> bool:
    calls = t.state(CachedCalls).calls
    return info.maxsize is None or bool(info.currsize + len(calls) < info.maxsize)


def _may_be_ahead(t: Space, made: CachedCall, is_independent: bool) -> bool:
    """Return True if a call that misses may be made before the entry runs, if it does nothing but
    compute.

    Effects before the call are not observable in it, and it evicts nothing that the entry reads.
    """
    info = made.cached.real.cache_info()
    before = [earlier for earlier in t.state(CachedCalls).calls if earlier.cached is made.cached]
    if any(
        earlier.lookup == made.lookup or (earlier.is_read and info.currsize == info.maxsize)
        for earlier in before
    ):
        return False
    if is_independent:
        return True
    return all(
        is_a(vt, IteratorTracker) for vt in t.heap.changed.values()
    )  # reading one advances it


@functools.cache
def make_lookup(names: tuple[str, ...], typed: bool) -> Any:
    """Return one function for all traces: a change of its value is reported from one trace to the
    next."""
    look_up = functools.partial(peek, names, typed)
    setattr(look_up, "__name__", "kept")
    return look_up


def _argument(t: Space, vt: Any) -> tuple[Source, Any]:
    """Return the source of an argument, for guards, and its value."""
    if is_a(vt, NumberTracker) and vt.cls is int and vt.traced.example.node.has_hint():
        source = t.graph.source_of(vt.traced, computed=True)
        if source is not None:
            return source, vt.traced.example.node.hint
    is_tuple = is_a(vt, TupleTracker) and vt.cls in _MADE
    has_numbers = is_tuple and _number.has_numbers(vt.items)
    if not has_numbers and (value := _constant(t, vt)) is not MISSING:
        return CapturedSource("argument", value), value

    if is_tuple:
        parts = [_argument(t, item) for item in vt.items]
        made = vt.cls([value for _, value in parts])
        return CallSource(_MADE[vt.cls], *(source for source, _ in parts)), made
    if real_key(t.key_of(vt, ALONE)) is MISSING or vt.source is None or is_a(vt, NewClassTracker):
        raise t.unsupported(
            "cached-function", f"a cached function that is given a {vt.cls.__name__}"
        )
    return vt.source, vt.real


def _size(*items: Any) -> object:
    return torch.Size(items)


_MADE: dict[type, Any] = {tuple: tuple_of, torch.Size: _size}


def _constant(t: Space, vt: VariableTracker) -> Any:
    if is_a(vt, NumberTracker):
        return _number.specialised(t, vt)
    if is_a(vt, ClassTracker):
        return MISSING if is_a(vt, NewClassTracker) else vt.value
    if is_a(vt, TupleTracker) and vt.cls in _MADE:
        return made_of(vt.cls, (_constant(t, item) for item in vt.items))
    return vt.constant()


@operation
def _tried(t: Space, made: CachedCall, values: list[Any]) -> OperationSteps:
    """The call is made ahead if its function does nothing but compute, and does not raise: that
    would happen twice. Behind writes to tensors and random numbers it may not see any tensor."""
    inside = getattr(made.cached.real, "__wrapped__", None)
    function = t.wrap(inside, CapturedSource("cached", inside))
    cached_calls = t.state(CachedCalls)
    trial: dict[Any, Any] = {}
    cached_calls.trial = trial

    try:
        with BodyTrace(t, "cached") as body:
            yield from body.run(function, made.args, made.kwargs)
            if not t.graph.is_pure and body.recorder.sees_tensors:
                raise t.unsupported(
                    "effect-in-body", "tensors, after a write to one or random numbers"
                )
            if any(_is_shared(earlier, trial) for earlier in cached_calls.calls):
                raise t.unsupported(
                    "effect-in-body", "calls of a bounded cache that was called before"
                )
            body.refuse_effects()
    except Unsupported as refused:
        raise _refused(
            t, made, f"has no result for this yet, and is not called ahead: {refused}"
        ) from None
    finally:
        cached_calls.trial = None

    return _missed(t, made, values)


def _is_shared(earlier: CachedCall, trial: dict[Any, Any]) -> bool:
    """Return True if the evictions of a cache depend on the order of an earlier call and those
    within."""
    return _is_bounded(earlier) and any(id(earlier.cached.real) == inside for inside, _ in trial)


def _is_bounded(earlier: CachedCall) -> bool:
    return earlier.cached.real.cache_info().maxsize is not None


@operation
def _within_trial(
    t: Space, cached: VariableTracker, args: Args, kwargs: Kwargs, values: list[Any]
) -> OperationSteps:
    """A call by a function that is tried: it is made when that one is, which then has the result
    that matters. So nothing is relied on here, and what the cache does not hold is interpreted,
    once for equal arguments."""
    names, typed = tuple(kwargs), cached.real.cache_parameters()["typed"]
    trial = t.state(CachedCalls).trial
    assert trial is not None
    call = id(cached.real), key_of_call(names, typed, None, tuple(values))
    if (found := make_lookup(names, typed)(cached.real, *values)) is not MISSING:
        trial[call] = t.wrap(found, CapturedSource("cached", found))
    elif call not in trial:
        inside = getattr(cached.real, "__wrapped__", None)
        function = t.wrap(inside, CapturedSource("cached", inside))
        t.journal.put(trial, call, (yield from settle(t.call(function, args, kwargs))))
    return trial[call]


def _missed(t: Space, made: CachedCall, values: list[Any]) -> VariableTracker:
    """The result of a call that finds nothing, made here."""
    calls = t.state(CachedCalls).calls
    for earlier in calls:  # they count, and determine the evictions
        if not earlier.made:
            earlier.make([_argument(t, vt)[1] for vt in (*earlier.args, *earlier.kwargs.values())])
    if made.is_read:
        bounded = tuple(earlier.lookup for earlier in calls if _is_bounded(earlier))
        t.guard(made.lookup, CachedResult(made.lookup, len(calls), bounded))
    try:
        result = made.make(values)
    except RaisedAhead as raised:
        name = type(raised.__cause__).__name__
        raise t.unsupported(
            "cached-function", f"a cached function that raised {name}"
        ) from raised.__cause__
    return _found(t, made, result)
