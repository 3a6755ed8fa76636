"""`functools.lru_cache` and `functools.cache`.

A call with constants is really made, and made again by the guards of the entry: that is what the plain program does
too, and the cache answers both alike. Otherwise the function behind the cache is inlined where nobody can tell the
difference: when the call has no effect and gives a constant or an object that existed before. Else the cached
function runs natively.
"""

from __future__ import annotations

import functools
from typing import Any

from stator_bytecode import HandlerTable, operation, settle
from stator_guards import AttrSource, CallSource, Is

from stator_variables import _kinds as k
from stator_variables._build import wrap
from stator_variables._model import _calls
from stator_variables._tracing import Tracing
from stator_variables._tracker import MISSING

handlers: HandlerTable[Any, Any] = HandlerTable("cache")
_CACHED: Any = functools._lru_cache_wrapper


@handlers.handles(_CACHED.__get__)
def bind(t: Tracing, args: list[Any], kwargs: dict[str, Any]) -> Any:
    cached, receiver = args[:2]
    return cached if k.is_none(receiver) else k.MethodTracker(cached, receiver)


@handlers.handles(_CACHED.__call__)
def call(t: Tracing, args: list[Any], kwargs: dict[str, Any]) -> Any:
    return _call(t, args[0], args[1:], kwargs)


@operation
def _call(t: Tracing, cached: Any, args: list[Any], kwargs: dict[str, Any]) -> Any:
    if cached.real is MISSING:
        raise t.unsupported("cached-function", "a cached function made while tracing")
    values = [arg.constant() for arg in args]
    named = {name: arg.constant() for name, arg in kwargs.items()}
    if not any(v is MISSING for v in (*values, *named.values())):
        return _asked(t, cached, values, named)
    wrapped = wrap(t, cached.real.__wrapped__, AttrSource(cached.source, "__wrapped__"))
    changes = len(t.changed)
    result = yield from settle(_calls.call(t, wrapped, args, kwargs))
    if len(t.changed) != changes or not (result.constant() is not MISSING or result.source is not None):
        raise t.unsupported("cached-function", "a cached function with effects, or whose result has an identity")
    return result


def _asked(t: Tracing, cached: Any, values: list[Any], named: dict[str, Any]) -> Any:
    ask = functools.partial(cached.real, *values, **named)
    key = (id(cached.real), tuple(map(repr, values)), tuple(sorted((n, repr(v)) for n, v in named.items())))
    ask = t.shared.setdefault(key, ask)
    t.guard(cached.source, Is(cached.real))
    try:
        result = ask()
    except Exception as error:
        raise t.unsupported("cached-function", f"a cached function that raised {type(error).__name__}") from error
    return wrap(t, result, CallSource(ask))
