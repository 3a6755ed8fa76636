"""`functools.lru_cache` and `functools.cache`.

What a cache holds is read without calling it, by the guards as well, so that nothing is counted or thrown out. The
calls themselves are effects: the entry makes them again, each a hit, in their order.

    y = cached(n)      guards: n, and what the cache has for it      entry: cached(3)

A call that finds nothing runs natively. Where there may be no break it is made while tracing, if nothing that came
before it waits for the entry; the entry leaves it out when it runs for the first time.
"""

import functools
import gc
from collections.abc import Sequence
from typing import Any

import attrs
import torch
from stator_bytecode import HandlerTable
from stator_guards import CallSource, CapturedSource, Is, Source

from stator_variables import _kinds as k
from stator_variables._build import wrap
from stator_variables._model._hashing import key_of, real_key
from stator_variables._torch import _torch_calls
from stator_variables._tracing import Tracing
from stator_variables._tracker import MISSING

handlers: HandlerTable[Any, Any] = HandlerTable("cache")
_CACHED: Any = functools._lru_cache_wrapper


@attrs.define(eq=False)
class CachedCall:
    """A call for the entry to make. `made`: it was made while tracing, which counts as that of the first run."""

    cached: Any
    args: list[Any]
    kwargs: dict[str, Any]
    real: functools.partial[Any]
    asked: Any = None  # the source of what the cache holds for it
    made: bool = False

    def make(self) -> Any:
        self.made = True
        return self.real()


class Again:
    """Stands in an entry for a function whose call was made already, for the first run."""

    def __init__(self, fn: Any) -> None:
        self.fn = fn
        self.is_first = True

    def __call__(self, *args: Any, **kwargs: Any) -> None:
        if not self.is_first:
            self.fn(*args, **kwargs)
        self.is_first = False


@handlers.handles(_CACHED.__get__)
def bind(t: Tracing, args: list[Any], kwargs: dict[str, Any]) -> Any:
    cached, receiver = args[:2]
    return cached if k.is_none(receiver) else k.MethodTracker(cached, receiver)


@handlers.handles(_CACHED.__call__)
def call(t: Tracing, args: list[Any], kwargs: dict[str, Any]) -> Any:
    cached, *values = args
    parameters = getattr(cached.real, "cache_parameters", None)
    if parameters is None or parameters()["maxsize"] == 0:
        raise t.unsupported("cached-function", "a cached function made while tracing, or one that keeps nothing")
    arguments = [_argument(t, vt) for vt in (*values, *kwargs.values())]
    sources, real = [source for source, _ in arguments], [value for _, value in arguments]
    named = dict(zip(kwargs, real[len(values) :], strict=True))
    made = CachedCall(cached, values, kwargs, functools.partial(cached.real, *real[: len(values)], **named))
    t.guard(cached.source, Is(cached.real))
    shape = (tuple(kwargs), parameters()["typed"])
    ask = t.shared.setdefault((peek, *shape), functools.partial(peek, *shape))
    made.asked = CallSource(ask, cached.source, *sources)
    result = ask(cached.real, *real)
    if result is MISSING:
        result = _missed(t, made)
    t.guard(made.asked, Is(result))
    t.calls.append(made)
    t.journal.record(t.calls.pop)
    return wrap(t, result, CapturedSource("cached", result))


def _argument(t: Tracing, vt: Any) -> tuple[Source, Any]:
    """Where a guard finds an argument again, and what it is."""
    value = _constant(t, vt)
    if value is not MISSING:
        return CapturedSource("argument", value), value
    if real_key(key_of(t, vt)) is MISSING or vt.source is None:
        raise t.unsupported("cached-function", f"a cached function that is given a {vt.cls.__name__}")
    return vt.source, vt.real


def _constant(t: Tracing, vt: Any) -> Any:
    if isinstance(vt, k.NumberTracker):
        return _torch_calls.specialised(t, vt)
    if isinstance(vt, k.ClassTracker):
        return MISSING if isinstance(vt, k.MadeClass) else vt.value
    if isinstance(vt, k.TupleTracker) and vt.cls in (tuple, torch.Size):
        items = [_constant(t, item) for item in vt.items]
        return MISSING if any(item is MISSING for item in items) else vt.cls(items)
    return vt.constant()


def _missed(t: Tracing, made: CachedCall) -> Any:
    """The result of a call that finds nothing, made here."""
    if made.cached.real.__module__ == "typing":  # what these make is the same for equal arguments
        return made.make()
    thrown_out = any(earlier.asked == made.asked for earlier in t.calls)
    if thrown_out or t.changed or not (t.policy.is_whole and t.graph.is_pure):
        t.guard(made.asked, Is(MISSING))
        raise t.unsupported("cached-function", "a cached function that has no result for this yet")
    for earlier in t.calls:  # they count, and say which results are thrown out
        if earlier.cached is made.cached and not earlier.made:
            earlier.make()
    try:
        return made.make()
    except Exception as error:
        raise t.unsupported("cached-function", f"a cached function that raised {type(error).__name__}") from error


# -- what a cache holds -----------------------------------------------------------------------------------------------
def peek(names: Sequence[str], typed: bool, cached: Any, *values: Any) -> Any:
    """What a call would find, MISSING where nothing: `names` are those of the last values.

    The collector is told, in this order, of each kept call (key, result, the type of the record; where their number is
    bounded), of the dict by keys, the function, and the mark between positional and named arguments.
    """
    if type(cached) is not _CACHED:
        return MISSING
    held = gc.get_referents(cached)
    at = next(i for i in range(len(held) - 3, 0, -1) if type(held[i]) is dict and type(held[i + 2]) is object)
    key = _key(names, typed, held[at + 2], values)
    if key not in held[at]:
        return MISSING
    if at == 1:
        return held[at][key]
    pairs = zip(held[1:at:3], held[2:at:3], strict=True)
    return next(result for known, result in pairs if known is key or (hash(known) == hash(key) and known == key))


def _key(names: Sequence[str], typed: bool, mark: object, values: tuple[Any, ...]) -> Any:
    if not typed and not names and len(values) == 1 and type(values[0]) in (int, str):
        return values[0]
    count = len(values) - len(names)
    named = [part for pair in zip(names, values[count:], strict=True) for part in pair]
    return (*values[:count], *([mark, *named] if names else []), *(map(type, values) if typed else []))


# -- the calls of an entry --------------------------------------------------------------------------------------------
def effects(e: Any) -> None:
    for made in e.t.calls:
        args = [e.expr(arg) for arg in made.args] + [f"{name}={e.expr(arg)}" for name, arg in made.kwargs.items()]
        fn = e.capture(Again(made.cached.real), "again") if made.made else e.expr(made.cached)
        e.lines.append(f"{fn}({', '.join(args)})")
