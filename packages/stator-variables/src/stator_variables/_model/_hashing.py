"""How trackers are hashed: the Python value itself for constants, the identity for the rest.

Equal constants of different types (1, True, 1.0) are one key, as in Python; which key object stays is the dict's
business.
"""

from __future__ import annotations

import types
from typing import Any

from stator_guards import CapturedSource, Is

from stator_variables import _kinds as k
from stator_variables._model._raising import throw, type_name
from stator_variables._torch import _torch_calls
from stator_variables._tracing import Tracing, source_of
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

    def __repr__(self) -> str:
        return f"Identity({self.thing!r})"


def key_of(t: Tracing, vt: Any) -> Any:
    """A hashable stand-in for a tracker. Raises Unsupported for objects whose class defines its own hash in Python."""
    if isinstance(vt, k.ConstantTracker):
        return vt.value
    if isinstance(vt, k.TupleTracker) and isinstance(vt.cls.__hash__, types.WrapperDescriptorType):
        return tuple(key_of(t, item) for item in vt.items)
    if isinstance(vt, k.SetTracker) and vt.cls is frozenset:
        return frozenset(vt.entries)
    if isinstance(vt, k.ClassTracker | k.BuiltinTracker):
        return Identity(vt.real)
    if isinstance(vt, k.IdTracker):
        return IdOf(_identity_of(vt.thing))
    if isinstance(vt, k.NumberTracker):
        return _torch_calls.specialised(t, vt)
    if getattr(vt.cls, "__hash__", None) is None:
        throw(TypeError, f"unhashable type: '{type_name(vt.cls)}'")
    if type_hashes_by_identity(vt.cls):
        _rely_on_hash(t, vt.cls)
        return Identity(vt.real if vt.real is not MISSING else vt)
    raise t.unsupported("user-hash", f"a key of class {vt.cls.__name__}, which defines __hash__ or __eq__")


def _rely_on_hash(t: Tracing, cls: type) -> None:
    from stator_variables._model._lookup import guarded_lookup

    for name in ("__hash__", "__eq__"):
        guarded_lookup(t, cls, name)


def element_of(t: Tracing, vt: Any, of: Any) -> Any:
    """The stand-in for an element of a set. An existing set may hold identities, as numbers that nobody can tell."""
    hashed = key_of(t, vt)
    if type(hashed) is IdOf and of.real is not MISSING:
        raise t.unsupported("identity-number", "an identity looked for in a set from before")
    return hashed


class IdOf:
    """The key `id(thing)`: equal for the same thing, and to no number that the program knows."""

    __slots__ = ("identity",)

    def __init__(self, identity: Identity) -> None:
        self.identity = identity

    def __hash__(self) -> int:
        return hash(self.identity) ^ 1

    def __eq__(self, other: object) -> bool:
        return type(other) is IdOf and other.identity == self.identity


def _identity_of(vt: Any) -> Identity:
    if isinstance(vt, k.ConstantTracker):
        return Identity(vt.value)
    return Identity(vt.real if vt.real is not MISSING else vt)


def tell_apart(t: Tracing, vt: Any, hashed: Any) -> None:
    """Two objects from outside that are keys of one container must not turn out to be one object on a later call."""
    if type(hashed) is Identity and vt.source is not None and type(vt.source) is not CapturedSource:
        t.told_apart.setdefault(id(vt.real), vt)


COMPOSED = (Identity, tuple)
"""Hashed keys in which objects are known by their identity."""


def rely_on_objects(t: Tracing, hashed: Any, in_existing: bool) -> None:
    """A look-up among what existed before holds for the very objects of the key; elsewhere for distinct ones."""
    if type(hashed) is tuple:
        for part in hashed:
            rely_on_objects(t, part, in_existing)
    elif type(hashed) is Identity and (found := t.heap.get(id(hashed.thing))) is not None:
        if in_existing:
            t.guard(source_of(found), Is(hashed.thing))
        else:
            tell_apart(t, found, hashed)


def type_hashes_by_identity(cls: type) -> bool:
    """Whether hash and equality of instances are those of `object` (or of a C class known to compare by identity)."""
    import torch

    if issubclass(cls, torch.Tensor):
        return True
    return getattr(cls, "__hash__", None) is object.__hash__ and cls.__eq__ is object.__eq__


def real_key(hashed: Any) -> Any:
    """The real dict key a hashed key stands for, or MISSING when it is a new object's or holds one."""
    if type(hashed) is Identity:
        thing = hashed.thing
        return MISSING if isinstance(thing, VariableTracker) else thing
    if type(hashed) is IdOf:
        return MISSING
    if type(hashed) is tuple:
        parts = [real_key(part) for part in hashed]
        return MISSING if any(part is MISSING for part in parts) else tuple(parts)
    return hashed
