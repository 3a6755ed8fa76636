"""Changes of a namespace that can be undone: `swap(owner, name, value)`, and `back()`."""

from __future__ import annotations

import types
from typing import Any

import attrs

NONE = object()
ASKED = ("__class__", "__bases__", "training", "gain")
"""Attributes that lie in no `__dict__` of their owner, and are put back as they were read."""


@attrs.define
class Changes:
    """What was there before, the first of each place."""

    before: dict[tuple[int, str], tuple[Any, str, Any]] = attrs.field(factory=dict)

    def swap(self, owner: Any, name: str, value: Any) -> None:
        held = _held(owner, name)
        _put(owner, name, value)
        self.before.setdefault((id(owner), name), (owner, name, held))

    def back(self) -> None:
        places, self.before = list(self.before.values()), {}
        for place in reversed(places):
            _put(*place)


def _held(owner: Any, name: str) -> Any:
    namespace = owner if isinstance(owner, dict) else getattr(owner, "__dict__", {})
    if name in namespace:
        return namespace[name]
    asked = name in ASKED or isinstance(owner, types.FunctionType | types.CellType)
    return getattr(owner, name, NONE) if asked else NONE


def _put(owner: Any, name: str, value: Any) -> None:
    if isinstance(owner, dict):
        owner.pop(name, None) if value is NONE else owner.update({name: value})
    elif value is NONE:
        delattr(owner, name)
    else:
        setattr(owner, name, value)
