"""The contents of existing containers, read in one step and without methods of their classes."""

import collections
import itertools
from typing import Any

from stator_guards import shown_as

from stator_variables._tracker import MISSING


def stored(base: Any, real: Any) -> list[Any]:
    """Return the items of a container without methods of a subclass, in one instruction: other
    threads run between two."""
    return (
        [*real]
        if type(real) is base
        else [*itertools.chain.from_iterable(map(base.__iter__, (real,)))]
    )


def may_override(cls: type) -> bool:
    """Return True if a class overrides, or may at any time override, reads of it.

    All can but classes of C whose dictionary never changes. (Py_TPFLAGS_IMMUTABLETYPE)
    """
    return not cls.__flags__ & 1 << 8


def item_owner(cls: type, base: type) -> type | None:
    """The builtin class to read stored items through, where `cls` may read them itself, or makes
    what is missing."""
    return base if may_override(cls) or has_member(cls, "__missing__") else None


def has_member(cls: type, *names: str) -> bool:
    """Return True if a class, or a base of it, has one of these attributes. `hasattr` would run a
    metaclass."""
    spaces = [vars(base) for base in type.__dict__["__mro__"].__get__(cls)]
    return any(name in space for space in spaces for name in names)


def plain_lookup(cls: type, name: str) -> object:
    """The raw class attribute without guards: for classes that cannot change, or decisions that do
    not rely on it."""
    for base in cls.__mro__:
        namespace = type.__dict__["__dict__"].__get__(base)
        if name in namespace:
            return namespace[name]
    return MISSING


def set_base(real: object) -> Any:
    """Return the class whose methods read a set, without those of its own class."""
    return set if issubclass(type(real), set) else frozenset


@shown_as("the members of {0}")
def members_of(real: object) -> list[Any]:
    """Return the members of a set, in its order."""
    return stored(set_base(real), real)


@shown_as("the keys of {0}")
def keys_in_order(d: Any) -> tuple[Any, ...]:
    """The keys of a dict; the order of an OrderedDict is not that of the dict it is."""
    kind = collections.OrderedDict if issubclass(type(d), collections.OrderedDict) else dict
    return tuple(kind.keys(d))


@shown_as("the values of {0}")
def values_in_order(d: Any) -> tuple[Any, ...]:
    """Return the values in their order, without comparing keys."""
    return tuple(dict.values(d))


@shown_as("item {1} of {0}")
def value_under(d: Any, key: Any) -> Any:
    """MISSING when there is none."""
    return dict.get(d, key, MISSING)
