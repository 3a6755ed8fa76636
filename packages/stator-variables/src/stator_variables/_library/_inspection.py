"""`inspect.signature` and its kin on existing functions: computed once, while the function is known by identity."""

import inspect
import types
from typing import Any

from stator_bytecode import HandlerTable
from stator_guards import CapturedSource, Is, KeysAre

from stator_variables import _kinds as k
from stator_variables._build import wrap
from stator_variables._tracing import Tracing
from stator_variables._tracker import MISSING

handlers: HandlerTable[Any, Any] = HandlerTable("inspection")


@handlers.handles(inspect.signature)
def signature(t: Tracing, args: list[Any], kwargs: dict[str, Any]) -> Any:
    """A signature depends on the function, its code and the attributes set on it (`__wrapped__`, `__signature__`)."""
    target = args[0]
    bound = isinstance(target, k.MethodTracker)
    function = target.function if bound else target
    if kwargs or len(args) != 1 or function.real is MISSING:
        raise t.unsupported("inspection", "inspect.signature of something made while tracing")
    real = function.real
    t.guard(function.source, Is(real))
    if isinstance(function, k.FunctionTracker) and function.namespace is not None and function.source is not None:
        t.guard(function.namespace.source, KeysAre(tuple(real.__dict__)))
    try:
        found = inspect.signature(types.MethodType(real, object()) if bound else real)
    except (ValueError, TypeError) as error:
        raise t.unsupported("inspection", f"inspect.signature, which raises {error!r}") from None
    return wrap(t, found, CapturedSource(f"signature of {getattr(real, '__name__', '?')}", found))
