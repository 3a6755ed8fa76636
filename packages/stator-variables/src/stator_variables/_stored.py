"""What existing containers hold, read in one step and past what their classes say."""

import types
from typing import Any

from stator_guards import Custom


def stored(base: Any, real: Any) -> list[Any]:
    """What a container holds, past what a subclass says. Of the builtin class itself in one instruction."""
    return [*real] if type(real) is base else [*base.__iter__(real)]


def answers_in_python(cls: type, name: str) -> bool:
    """Whether a class answers in Python."""
    return isinstance(next((vars(c)[name] for c in cls.__mro__ if name in vars(c)), None), types.FunctionType)


def item_owner(cls: type, base: type) -> Any:
    """The builtin class to read stored items through, where `cls` reads them itself, or makes what is missing."""
    return base if answers_in_python(cls, "__getitem__") or hasattr(cls, "__missing__") else None


def set_base(real: Any) -> Any:
    """Whose methods read a set, whatever its class answers_in_python."""
    return set if issubclass(type(real), set) else frozenset


def members_of(real: Any) -> list[Any]:
    """Those of a set, in its order."""
    return stored(set_base(real), real)


def same_members(base: Any, members: list[Any]) -> Custom:
    expected = {(type(item), item) for item in members}

    def holds(value: Any) -> bool:
        found = stored(base, value)
        return len(found) == len(expected) and all((type(v), v) in expected for v in found)

    return Custom("{fn}({value})", holds, f"the same members, {members!r}")
