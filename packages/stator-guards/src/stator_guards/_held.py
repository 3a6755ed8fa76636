"""An object that a predicate refers to: held strongly, or weakly and then never mistaken for another one.

A dead object's address may be given to a new object, so a weak hold answers `is_` by asking the reference, never by
comparing ids.
"""

from __future__ import annotations

import weakref
from types import FunctionType, ModuleType
from typing import Any

import attrs


class _Dead:
    """What a weak hold gives when its object is gone: identical to no value that a program can have."""

    def __repr__(self) -> str:
        return "<gone>"


GONE = _Dead()


def _strong(obj: object) -> Any:
    return lambda: obj


@attrs.frozen(eq=False)
class Held:
    """`get()` gives the object, or GONE once it died."""

    reference: Any
    weak: bool
    address: int
    name: str
    """What to call the object once it is gone."""

    @classmethod
    def of(cls, obj: object, *, weak: bool) -> Held:
        """Hold `obj`; what cannot be referred to weakly is held strongly."""
        try:
            ref = weakref.ref(obj) if weak else _strong(obj)
        except TypeError:
            ref, weak = _strong(obj), False
        return cls(ref, weak, id(obj), _name(obj))

    @property
    def text(self) -> str:
        """One line for messages. Made when it is asked for: a `repr` can be long, slow, and the user's code."""
        obj = self.get()
        return f"{self.name} (gone)" if obj is GONE else short(obj)

    def get(self) -> Any:
        obj = self.reference()
        return GONE if self.weak and obj is None else obj

    @property
    def is_gone(self) -> bool:
        return self.get() is GONE

    def is_(self, obj: object) -> bool:
        return self.get() is obj

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Held):
            return NotImplemented
        return self is other or (not self.is_gone and self.get() is other.get())

    def __hash__(self) -> int:
        return hash(self.address)


def _name(obj: object) -> str:
    """A class or function by its name, another object by its class alone."""
    name = getattr(obj, "__qualname__", None) if issubclass(type(obj), (type, FunctionType)) else None
    return name if isinstance(name, str) else f"of class {type(obj).__name__}"


def short(obj: object, limit: int = 80) -> str:
    """One line of `repr`, for messages; a class or function by its name, so that no user `__repr__` runs for those."""
    if issubclass(type(obj), ModuleType):  # which may have its own way to be read
        return _name(obj)
    if isinstance(obj, type) or callable(obj):
        name = getattr(obj, "__qualname__", None)
        if isinstance(name, str):
            return name
    try:
        text = repr(obj).replace("\n", " ")
    except Exception as error:  # a user's __repr__ may raise anything, and a message must not
        text = f"<{type(obj).__name__}: repr raised {type(error).__name__}>"
    return text if len(text) <= limit else text[: limit - 3] + "..."
