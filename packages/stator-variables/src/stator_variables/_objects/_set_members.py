"""The members of an existing set, read at once when the program needs more than one look-up.

One guard covers members that are compared by value and never change. The members of a set that the program compares
are read one by one, as the keys of a dict are.
"""

import enum
from functools import partial
from typing import Any

import stator_guards as guards
import torch
from stator_guards import CallSource, CapturedSource, Custom, ItemSource, Source

from stator_variables._objects._builder_table import BuilderTable
from stator_variables._objects._hashing import key_of_value, rely_on_kept_hashes, tell_apart
from stator_variables._objects._keys import asks
from stator_variables._objects._set import SetTracker
from stator_variables._objects._wrapping import (
    ATOMS,
    SINGLETONS,
    VALUES,
    with_namespace,
    wrap_items,
)
from stator_variables._pure import PATHS
from stator_variables._runtime._contents import members_of, set_base, stored
from stator_variables._space import Space
from stator_variables._tracker import VariableTracker

builders = BuilderTable()


_PLAIN = frozenset(map(id, (*ATOMS, *PATHS, *SINGLETONS, *VALUES)))
_COMPOSED = (tuple, torch.Size, frozenset)


def read(t: Space, vt: SetTracker, real: Any, source: Source) -> None:
    """Read all members, and rely on them."""
    members = members_of(real)  # in one step: other threads may change it
    if all(map(_is_named, members)):
        t.guard(source, _same_members(set_base(real), members))
        before = {t.key_of(member): member for member in map(partial(_constant, t), members)}
    elif all(map(_is_value, members)):
        t.guard(source, _same_in_order(set_base(real), members))
        before = _lazily(t, members, CallSource(members_of, source))
    else:
        t.allow_length(len(members), vt.cls)
        before = _one_by_one(t, members, source)
        rely_on_kept_hashes(t, source, real, dict(zip(before, members, strict=True)))

    for hashed, member in before.items():
        tell_apart(t, member, hashed)
    t.journal.assign(vt, known={**before, **vt.known}, before=before, unread=None)


def _is_named(member: Any) -> bool:
    """Return True for what the entry can refer to without reading the set."""
    return type(member) in ATOMS or isinstance(member, type | enum.Enum)


def _constant(t: Space, member: Any) -> Any:
    return t.wrap(member, CapturedSource(str(member), member))


def _is_value(member: Any) -> bool:
    """Return True for an object that C compares by value and that consists of such objects."""
    if type(member) in _COMPOSED:
        return all(map(_is_value, member))
    return id(type(member)) in _PLAIN or _is_named(member)


def _lazily(t: Space, members: list[Any], source: Source) -> dict[Any, Any]:
    """The members by their keys. The guard on the set covers the keys: no member is looked at here."""
    return {
        key_of_value(t, member): t.wrap(member, ItemSource(source, index))
        for index, member in enumerate(members)
    }


def _one_by_one(t: Space, members: list[Any], source: Source) -> dict[Any, Any]:
    found = wrap_items(t, members, CallSource(members_of, source))
    keys = [t.key_of(member) for member in found]
    if any(map(asks, keys)) and len({*map(hash, keys)}) < len(keys):
        # The program would be asked whether they are equal, which the set was once and is no more.
        raise t.unsupported("set-of-objects", "an existing set with members of one hash")
    return dict(zip(keys, found, strict=True))


def _same_members(base: Any, members: list[Any]) -> Custom:
    expected = {(type(member), member) for member in members}

    def holds(value: Any) -> bool:
        found = stored(base, value)
        return len(found) == len(expected) and all((type(v), v) in expected for v in found)

    return Custom("{fn}({value})", holds, f"the same members, {members!r}")


def _same_in_order(base: Any, members: list[Any]) -> Custom:
    """Equality of all members in the order of the set, by which the entry reads them."""
    classes = list(map(type, members))

    def holds(value: Any) -> bool:
        found = stored(base, value)
        return found == members and list(map(type, found)) == classes

    return Custom("{fn}({value})", holds, f"the members {members!r} in this order")


@builders.by_base.handles(set, frozenset)
def build_set(t: Space, real: Any, source: guards.Source) -> VariableTracker:
    t.guard(source, guards.TypeIs(type(real)))
    tracker = SetTracker(type(real))
    tracker.unread = lambda vt: read(t, vt, real, source)
    return with_namespace(t, tracker, real, source)
