"""What existing containers hold, read in one step and past what their classes say."""

import types
from typing import Any

from stator_guards import Custom


def stored(base: Any, real: Any) -> list[Any]:
    """What a container holds, past what a subclass says. Of the builtin class itself in one instruction."""
    return [*real] if type(real) is base else [*base.__iter__(real)]


def item_owner(cls: type, base: type) -> type | None:
    """The builtin class to read stored items through, where `cls` has a `__getitem__` of its own in Python."""
    own = next((vars(c)["__getitem__"] for c in cls.__mro__ if "__getitem__" in vars(c)), None)
    return base if isinstance(own, types.FunctionType) else None


def set_base(real: Any) -> Any:
    """Whose methods read a set, whatever its class overrides."""
    return set if isinstance(real, set) else frozenset


def members_of(real: Any) -> list[Any]:
    """Those of a set, in its order."""
    return stored(set_base(real), real)


def same_members(base: Any, members: list[Any]) -> Custom:
    expected = {(type(item), item) for item in members}

    def holds(value: Any) -> bool:
        found = stored(base, value)
        return len(found) == len(expected) and all((type(v), v) in expected for v in found)

    return Custom("{fn}({value})", holds, f"the same members, {members!r}")
