"""Numbers by which programs identify objects: `id(thing)`, keys of hooks, addresses of storages."""

from typing import Any

from stator_guards import Source

from stator_variables._emitter import (
    Emitter,
)
from stator_variables._hash_key import HandleKey, IdOf, identity_of
from stator_variables._space import Space
from stator_variables._tracker import KeyOf, VariableTracker


class IdTracker(VariableTracker, references=("thing",)):
    """The number `id(thing)`: equal for the same thing, and otherwise unknown while tracing."""

    cls = int

    def __init__(self, thing: Any) -> None:
        self.thing = thing

    def hash_key(self, t: Space, part: KeyOf) -> object:
        return IdOf(identity_of(self.thing))

    def rebuild(self, e: Emitter) -> str:
        thing = e.expr(self.thing)
        return f"{thing}.id" if self.thing.has_own_number else f"id({thing})"


class HandleKeyTracker(VariableTracker):
    """A key of an existing dictionary of hooks: the `id` of a handle, another number in each
    process and for each hook that is registered again. It is known as the key that it is, not as
    the number."""

    cls = int

    def __init__(self, number: int, source: Source) -> None:
        self.number = number
        self.source = source

    def hash_key(self, t: Space, part: KeyOf) -> object:
        return HandleKey(self.number, self)


class AddressTracker(IdTracker):
    """`storage._cdata`, a number like `id(storage)`."""

    def rebuild(self, e: Emitter) -> str:
        return f"{e.expr(self.thing)}._cdata"
