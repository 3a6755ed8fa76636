"""`functools.lru_cache` and `functools.cache`: the function behind the cache, where nobody can tell the difference.

That is so when the call has no effect and gives a constant or an object that existed before: then it does not matter
whether the cache knew the answer. Otherwise the cached function runs natively.
"""

from __future__ import annotations

import functools
from typing import Any

from stator_bytecode import HandlerTable, operation, settle
from stator_guards import AttrSource

from stator_variables import _calls
from stator_variables import _kinds as k
from stator_variables._build import wrap
from stator_variables._tracing import Tracing
from stator_variables._tracker import MISSING

handlers: HandlerTable[Any, Any] = HandlerTable("cache")
_CACHED = functools._lru_cache_wrapper


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
    wrapped = wrap(t, cached.real.__wrapped__, AttrSource(cached.source, "__wrapped__"))
    changes = len(t.changed)
    result = yield from settle(_calls.call(t, wrapped, args, kwargs))
    if len(t.changed) != changes or not (result.constant() is not MISSING or result.source is not None):
        raise t.unsupported("cached-function", "a cached function with effects, or whose result has an identity")
    return result
