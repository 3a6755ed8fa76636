"""A reference to an object from a predicate: strong, or weak and then never mistaken for another
object.

A dead object's address may be given to a new object, so a weak reference implements `is_` by
dereferencing, never by comparing ids.
"""

from __future__ import annotations

import gc
import itertools
import struct
import sys
import weakref
from collections.abc import Callable, Hashable, Iterable, Sequence
from types import EllipsisType, FunctionType, ModuleType, NoneType
from typing import Any

import attrs

identity: Callable[[object], int] = id if sys.version_info < (3, 12) else object.__hash__
"""The identity of an object in what runs on every call. `id` raises an audit event: under a hook,
as filelock installs one from CPython 3.12 on, it takes five times as long."""


class _Dead:
    """The referent of a weak reference whose object is dead: identical to no value of a program."""

    def __repr__(self) -> str:
        return "<gone>"


GONE = _Dead()


def _unshared(_: object) -> None:
    """Do nothing. The callback makes the weak reference distinct: without one, CPython returns the
    program's."""


def _strong(obj: object) -> object:
    return lambda: obj


@attrs.frozen(eq=False)
class ObjectRef:
    """`get()` gives the object, or GONE once it died."""

    reference: Any
    weak: bool
    address: int
    name: str
    """The name of the object in messages after its death."""

    @classmethod
    def of(cls, obj: object, *, weak: bool) -> ObjectRef:
        """Hold `obj`; what cannot be referred to weakly is held strongly."""
        try:
            ref = weakref.ref(obj, _unshared) if weak else _strong(obj)
        except TypeError:
            ref, weak = _strong(obj), False
        return cls(ref, weak, id(obj), _name(obj))

    @property
    def text(self) -> str:
        """One line for messages, made on demand: a `repr` can be long, slow, and the user's
        code."""
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
        if not isinstance(other, ObjectRef):
            return NotImplemented
        return self is other or (not self.is_gone and self.get() is other.get())

    def __hash__(self) -> int:
        return hash(self.address)


def _name(obj: object) -> str:
    """A class or function by its name, another object by its class alone."""
    name = (
        getattr(obj, "__qualname__", None) if issubclass(type(obj), (type, FunctionType)) else None
    )
    return name if isinstance(name, str) else f"of class {type(obj).__name__}"


def short(obj: object, limit: int = 80) -> str:
    """One line about an object, for messages: its `repr`, but that of no class of the program's,
    which would run."""
    if issubclass(type(obj), ModuleType):  # which may have its own way to be read
        return _name(obj)
    is_named = issubclass(type(obj), type) or (callable(obj) and not type(obj).__flags__ & _HEAP)
    if is_named and isinstance(name := getattr(obj, "__qualname__", None), str):
        return name
    text = _text(obj, 4).replace("\n", " ")
    return text if len(text) <= limit else text[: limit - 3] + "..."


_BRACKETS: dict[type, tuple[str, str]] = {
    list: ("[", "]"),
    tuple: ("(", ")"),
    set: ("{", "}"),
    frozenset: ("{", "}"),
}
_HEAP = 1 << 9  # Py_TPFLAGS_HEAPTYPE
_MOST = 40  # items: more have no place in a line
_MOST_BITS = 1000


def _text(obj: Any, depth: int) -> str:
    cls = type(obj)
    if not depth:
        return "..."
    if cls is dict:  # copied, as other threads may change it meanwhile
        items = itertools.islice(dict.copy(obj).items(), _MOST)
        return (
            "{"
            + ", ".join(
                f"{_text(key, depth - 1)}: {_text(value, depth - 1)}" for key, value in items
            )
            + "}"
        )

    if cls in _BRACKETS:
        start, end = _BRACKETS[cls]
        texts = [_text(item, depth - 1) for item in list(obj)[:_MOST]]  # at once, too
        return start + ", ".join(texts) + ("," if cls is tuple and len(texts) == 1 else "") + end
    if cls is int and obj.bit_length() > _MOST_BITS:  # Python may refuse to write it down
        return f"<int of {obj.bit_length()} bits>"
    # and its `repr` theirs, the program's among them
    holds_others = cls.__flags__ & _HEAP or gc.is_tracked(obj)
    return repr(obj) if is_constant(obj) or not holds_others else f"<{cls.__name__} object>"


# Constants compared the way a specialised program needs it: by exact type and value, at every
# depth.
#
# `==` calls 1, True and 1.0 one value, 0.0 and -0.0 too, and NaN none. `constant_key` maps a
# constant to something hashable whose plain equality distinguishes all of these.

PLAIN = (NoneType, bool, int, str, bytes, EllipsisType, type(NotImplemented))


def constant_key(value: object) -> Hashable:
    """Return a key equal for two constants only when no program can distinguish them; TypeError for
    other values."""
    cls = type(value)
    if cls in PLAIN:
        return (cls, value)
    if cls is float:
        return (cls, struct.pack("<d", value))
    # the class first: `isinstance` reads `__class__`, which a user class may define
    if cls is complex and isinstance(value, complex):
        return (cls, struct.pack("<dd", value.real, value.imag))
    if cls is tuple and isinstance(value, tuple):
        return (cls, *map(constant_key, value))
    if cls is frozenset and isinstance(value, frozenset):
        return (cls, frozenset(map(constant_key, value)))
    if cls is slice and isinstance(value, slice):
        return (cls, constant_key((value.start, value.stop, value.step)))
    if cls is range and isinstance(value, range):
        return (cls, value.start, value.stop, value.step)
    raise TypeError(f"{cls.__name__} is not a constant")


def is_constant(value: object) -> bool:
    try:
        constant_key(value)
    except TypeError:
        return False
    return True


def kept(key: Hashable) -> Hashable:
    """Return a key as guards store it: an object weakly, so that the guard does not extend its
    lifetime.

    A set, which equals others, may be the guard's alone and is held strongly.
    """
    if type(key) is str or is_constant(key) or type(key) is ObjectRef:
        return key
    return ObjectRef.of(key, weak=type(key) is not frozenset)


def real(key: Hashable) -> object:
    """The key that is kept."""
    return key.get() if type(key) is ObjectRef else key


def key_of(value: object) -> Hashable:
    """Return the key that distinguishes keys of dicts: the constant key of a constant, otherwise
    the identity."""
    if type(value) is str:  # nearly all keys
        return (str, value)
    if type(value) is ObjectRef:
        return value
    return constant_key(value) if is_constant(value) else (object, id(value))


def same_constant(value: object, key: Hashable) -> bool:
    """Return True if `value` is a constant with this key."""
    return is_constant(value) and constant_key(value) == key


def same_keys(mapping: Iterable[Hashable], keys: Sequence[Hashable]) -> bool:
    """Return True if the keys of `mapping`, in order, are exactly `keys`, each a `key_of` of a
    stored one."""
    found = [*mapping]
    return len(found) == len(keys) and all(map(_is_key, found, keys))


def _is_key(found: Hashable, key: Hashable) -> bool:
    return key.is_(found) if type(key) is ObjectRef else key_of(found) == key


def same_plain_keys(mapping: Iterable[object], keys: list[object], types: list[type]) -> bool:
    """Return True if the keys, in order, are `keys` of exactly `types`: faster, for strings,
    numbers and bools."""
    found = [*mapping]  # in one step: other threads may change it
    return [*map(type, found)] == types and found == keys


def is_literal(value: object) -> bool:
    """Return True if the `repr` of the constant, written into source, evaluates to it."""
    if type(value) is tuple:
        return all(map(is_literal, value))
    # a longer one than sys.set_int_max_str_digits may set as the limit cannot be written down
    if type(value) is int:
        return value.bit_length() <= 2000
    return type(value) in (NoneType, bool, str, bytes, EllipsisType)
