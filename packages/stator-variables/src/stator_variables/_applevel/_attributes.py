"""Reading an attribute of a class that defines `__getattr__`, which C does, as plain Python."""

from __future__ import annotations

from typing import Any


def read(first: Any, then: Any, obj: Any, name: str) -> Any:
    """`first` is its `__getattribute__`, `then` its `__getattr__`; nothing is being handled while that one runs."""
    try:
        return first(obj, name)
    except AttributeError:
        pass
    return then(obj, name)
