"""Keys of values in dicts and sets while tracing, where the value itself cannot be one."""

from typing import Any

import torch
from attrs import field, frozen

from stator_variables._tracker import MISSING, VariableTracker


class Identity:
    """A key that is equal only to itself: an existing object, or the tracker of a new one."""

    __slots__ = ("thing",)

    def __init__(self, thing: Any) -> None:
        self.thing = thing

    def __hash__(self) -> int:
        return id(self.thing)

    def __eq__(self, other: object) -> bool:
        return type(other) is Identity and other.thing is self.thing


@frozen
class HandleKey:
    """The key that a hook has in the dictionaries of its module."""

    number: int
    tracker: Any = field(eq=False)


@frozen
class IdOf:
    """The key `id(thing)`: equal for the same thing."""

    identity: Identity


@frozen
class RefTo:
    """The key `weakref.ref(thing)`: equal for the same thing, if that compares by identity."""

    identity: Identity


OF_IDENTITY = (IdOf, RefTo)
WITH_IDENTITY = (*OF_IDENTITY, HandleKey)
"""Keys made of the identity of a thing, which are looked up in an existing dict with the object at
hand."""


def identity_of(vt: VariableTracker) -> Identity:
    """Return the identity of the thing that a tracker represents."""
    if vt.is_known:
        return Identity(vt.constant())
    return Identity(vt.real if vt.real is not MISSING else vt)


def type_hashes_by_identity(cls: type) -> bool:
    """Return True if instances hash by identity (`object`, or a C class that compares by it): no
    other value equals one."""
    if issubclass(cls, torch.Tensor):
        return True
    return getattr(cls, "__hash__", None) is object.__hash__
