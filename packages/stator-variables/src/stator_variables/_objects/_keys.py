"""Keys as dicts and sets hash them while tracing, and what the trackers of both have in common."""

from collections.abc import Callable, Sized
from typing import Any

from attrs import Factory, define, field

from stator_variables._objects._lookup import guarded_lookup
from stator_variables._space import Space
from stator_variables._tracker import VariableTracker


def rely_on_hash(t: Space, cls: type) -> None:
    for name in ("__hash__", "__eq__"):
        guarded_lookup(t, cls, name)


class ProgramKey:
    """A key whose class hashes and compares in Python: see `_hashing.UserKey`."""

    __slots__ = ()


def runs_user_code(hashed: Any) -> bool:
    """Return True if a look-up of this key may run code of the program."""
    return issubclass(type(hashed), ProgramKey) or (
        type(hashed) in (tuple, frozenset) and any(map(runs_user_code, hashed))
    )


@define(eq=False, repr=False, slots=False)
class HashedTracker(VariableTracker, references=("known", "undecided")):
    """A dict or a set.

    Writes to an existing one under keys that are not realized are `undecided`; reading the entries
    calls `decide`, which moves them there and relies on the keys.
    """

    cls: type
    known: dict[Any, Any] = Factory(dict)
    undecided: list[tuple[Any, ...]] = field(factory=list, kw_only=True)
    decide: Callable[[], None] = field(default=lambda: None, kw_only=True)

    def contents(self, t: Space) -> Sized:
        """Return what is counted as the length."""
        return self.entries

    def settle(self) -> None:
        if self.undecided:
            self.decide()

    @property
    def entries(self) -> dict[Any, Any]:
        self.settle()
        return self.known

    @entries.setter
    def entries(self, entries: dict[Any, Any]) -> None:
        self.known = entries
