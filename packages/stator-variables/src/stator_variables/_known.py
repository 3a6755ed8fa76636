"""The real object behind a tracker, for what is called natively while the graph runs: a policy, a configuration."""

import types
from typing import Any

from stator_guards import Is

from stator_variables import _kinds as k
from stator_variables._tracing import Tracing, real_of, source_of
from stator_variables._tracker import MISSING


def known_value(t: Tracing, vt: Any) -> Any:
    """An existing object itself, whose identity is guarded; a new one is made of such: constants, functions, partials,
    lists. Raises Unsupported for what exists only while the graph runs, and what was changed and is not written yet."""
    real = real_of(vt)
    if real is MISSING:
        return _made(t, vt)
    if id(vt) in t.changed or id(real) in t.made:
        raise t.unsupported("graph-argument", f"a {type(real).__qualname__} that was changed here")
    if vt.constant() is MISSING:
        t.guard(source_of(vt), Is(real))
    return real


def _made(t: Tracing, vt: Any) -> Any:
    if vt.constant() is not MISSING:
        return vt.constant()
    if isinstance(vt, k.PartialTracker):
        named = {name: known_value(t, value) for name, value in vt.kwargs.items()}
        return vt.cls(known_value(t, vt.function), *(known_value(t, arg) for arg in vt.args), **named)
    if isinstance(vt, k.SequenceTracker) and vt.cls in (list, tuple):
        return vt.cls([known_value(t, item) for item in vt.items])
    if isinstance(vt, k.BuiltinTracker | k.ClassTracker):
        return vt.value
    if isinstance(vt, k.FunctionTracker) and not vt.fields:
        return _function(t, vt)
    raise t.unsupported("graph-argument", f"a {vt.cls.__qualname__} that is made here, where the object is needed")


def _function(t: Tracing, vt: k.FunctionTracker) -> Any:
    cells = tuple(types.CellType(known_value(t, cell.content)) for cell in vt.closure)
    made = types.FunctionType(vt.code, vt.globals.real, vt.name, None, cells)
    made.__defaults__ = None if vt.defaults is None else tuple(known_value(t, value) for value in vt.defaults)
    named = {name: known_value(t, value) for name, value in (vt.kwdefaults or {}).items()}
    made.__kwdefaults__ = named or None
    return made
