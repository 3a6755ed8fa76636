"""The order of a set, where it is known: it follows from the hashes of the elements and from the steps that made it."""

from __future__ import annotations

from typing import Any

from stator_guards import CapturedSource, Custom

from stator_variables import _kinds as k
from stator_variables._model._hashing import key_of
from stator_variables._tracing import Tracing
from stator_variables._tracker import MISSING

_NUMBERS = (int, bool, float)


def in_order(t: Tracing, vt: Any) -> list[Any]:
    """The items in the order of C's set, where that is known: of an existing one that is as it was, and of a new one of
    numbers, whose hashes are the same in every process."""
    if vt.cls in (set, frozenset) and vt.source is not None and (vt.cls is frozenset or vt.steps == []):
        order = list(vt.real)
        if type(vt.source) is not CapturedSource:
            t.guard(vt.source, Custom("{fn}({value})", lambda value: [*value] == order, f"in the order {order!r}"))
        return list(vt.entries.values())
    real = _replayed(t, vt) if vt.source is None and all(type(key) in _NUMBERS for key in vt.entries) else None
    if real is None:
        raise t.unsupported("set-order", "iteration over a set, whose order depends on hashing")
    return [vt.entries[key] for key in real]


def _replayed(t: Tracing, vt: Any) -> Any:
    """The set that the program's steps make, or None where they are not known."""
    made: Any = set()
    for method, item in vt.steps or ():
        if method in ("add", "discard"):
            getattr(made, method)(key_of(t, item))
        elif item is None:
            made.clear()
        else:
            whole = item.value if isinstance(item, k.ConstantTracker) else item.real
            whole = _replayed(t, item) if whole is MISSING else whole
            if whole is None:
                return None
            getattr(made, method)(whole)
    return None if vt.steps is None else made
