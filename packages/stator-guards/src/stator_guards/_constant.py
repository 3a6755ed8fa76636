"""Constants compared the way a specialised program needs it: by exact type and value, at every depth.

`==` calls 1, True and 1.0 one value, 0.0 and -0.0 too, and NaN none. `constant_key` maps a constant to something
hashable whose plain equality tells all of these apart.
"""

import struct
from collections.abc import Hashable, Iterable
from types import EllipsisType, NoneType

PLAIN = (NoneType, bool, int, str, bytes, EllipsisType, type(NotImplemented))


def constant_key(value: object) -> Hashable:
    """A key equal for two constants only when no program can tell them apart; TypeError for what is no constant."""
    cls = type(value)
    if cls in PLAIN:
        return (cls, value)
    if cls is float:
        return (cls, struct.pack("<d", value))
    if isinstance(value, complex) and cls is complex:
        return (cls, struct.pack("<dd", value.real, value.imag))
    if isinstance(value, tuple) and cls is tuple:
        return (cls, *map(constant_key, value))
    if isinstance(value, frozenset) and cls is frozenset:
        return (cls, frozenset(map(constant_key, value)))
    if isinstance(value, slice):
        return (cls, constant_key((value.start, value.stop, value.step)))
    if isinstance(value, range):
        return (cls, value.start, value.stop, value.step)
    raise TypeError(f"{cls.__name__} is not a constant")


def is_constant(value: object) -> bool:
    try:
        constant_key(value)
    except TypeError:
        return False
    return True


def key_of(value: object) -> Hashable:
    """The constant key of a constant, the identity of anything else: how keys of dicts are told apart."""
    if type(value) is str:  # nearly all keys
        return (str, value)
    return constant_key(value) if is_constant(value) else (object, id(value))


def same_constant(value: object, key: Hashable) -> bool:
    """Whether `value` is a constant with this key."""
    return is_constant(value) and constant_key(value) == key


def same_keys(mapping: object, keys: Hashable) -> bool:
    """Whether the keys of `mapping`, in order, are exactly `keys` (a tuple of `key_of`)."""
    return tuple(map(key_of, [*mapping])) == keys  # type: ignore[misc]


def same_plain_keys(mapping: Iterable[object], keys: list[object], types: list[type]) -> bool:
    """Whether the keys, in order, are `keys` of exactly `types`: faster, for strings, numbers and bools."""
    found = [*mapping]  # in one step: other threads may change it
    return [*map(type, found)] == types and found == keys


def is_literal(value: object) -> bool:
    """Whether `repr` of the constant, written into source, gives it back."""
    if type(value) is tuple:
        return all(map(is_literal, value))
    if type(value) is int:  # a longer one than sys.set_int_max_str_digits may set as the limit cannot be written down
        return value.bit_length() <= 2000
    return type(value) in (NoneType, bool, str, bytes, EllipsisType)
