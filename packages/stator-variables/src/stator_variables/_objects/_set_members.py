"""The members of sets: those of an existing one, read at once when the program needs more than one
look-up; additions.

One guard covers members that are compared by value and never change. The members of a set that the
program compares are read one by one, as the keys of a dict are.
"""

import enum
import functools
from functools import partial
from typing import Any

import torch
from stator_bytecode import Result
from stator_guards import CallSource, CapturedSource, Custom, ItemSource, Source, Truth

from stator_variables._hash_key import Identity
from stator_variables._objects import _dict_entries
from stator_variables._objects._builder_table import BuilderTable
from stator_variables._objects._hash_results import AS_ELEMENT, hashing
from stator_variables._objects._hashing import (
    element_of,
    has_identity,
    key_of_value,
    real_key,
    rely_on_kept_hashes,
    rely_on_objects,
    tell_apart,
)
from stator_variables._objects._keys import runs_user_code
from stator_variables._objects._set import SetStep, SetTracker, as_operand, dict_of
from stator_variables._objects._undecided_key import is_undecided, put_undecided
from stator_variables._objects._wrap import (
    ATOMS,
    SINGLETONS,
    VALUES,
    of_instances,
    wrap_items,
)
from stator_variables._pure import PATHS
from stator_variables._runtime._contents import members_of, set_base, stored
from stator_variables._space import Space
from stator_variables._tracker import MISSING, VariableTracker, source_of
from stator_variables._trackers import NONE

builders = BuilderTable()


_PLAIN = frozenset(map(id, (*ATOMS, *PATHS, *SINGLETONS, *VALUES)))
_COMPOSED = (tuple, torch.Size, frozenset)


def read(t: Space, vt: SetTracker, real: object, source: Source) -> None:
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


def _is_named(member: object) -> bool:
    """Return True for what the entry can refer to without reading the set."""
    return type(member) in ATOMS or isinstance(member, type | enum.Enum)


def _constant(t: Space, member: object) -> VariableTracker:
    return t.wrap(member, CapturedSource(str(member), member))


def _is_value(member: Any) -> bool:
    """Return True for an object that C compares by value and that consists of such objects."""
    if type(member) in _COMPOSED:
        return all(map(_is_value, member))
    return id(type(member)) in _PLAIN or _is_named(member)


def _lazily(t: Space, members: list[Any], source: Source) -> dict[Any, Any]:
    """Return the members by their keys. The guard on the set covers the keys: no member is realized
    here."""
    return {
        key_of_value(t, member): t.wrap(member, ItemSource(source, index))
        for index, member in enumerate(members)
    }


def _one_by_one(t: Space, members: list[Any], source: Source) -> dict[Any, Any]:
    found = wrap_items(t, members, CallSource(members_of, source))
    keys = [t.key_of(member) for member in found]
    if any(map(runs_user_code, keys)) and len({*map(hash, keys)}) < len(keys):
        # The program would compare them, which the set did once and does no more.
        raise t.unsupported("set-of-objects", "an existing set with members of one hash")
    return dict(zip(keys, found, strict=True))


def _same_members(base: type, members: list[Any]) -> Custom:
    expected = {(type(member), member) for member in members}

    def holds(value: object) -> bool:
        found = stored(base, value)
        return len(found) == len(expected) and all((type(v), v) in expected for v in found)

    return Custom("{fn}({value})", holds, f"the same members, {members!r}")


def _same_in_order(base: type, members: list[Any]) -> Custom:
    """Equality of all members in the order of the set, by which the entry reads them."""
    classes = list(map(type, members))

    def holds(value: object) -> bool:
        found = stored(base, value)
        return found == members and list(map(type, found)) == classes

    return Custom("{fn}({value})", holds, f"the members {members!r} in this order")


@builders.by_base.handles(set, frozenset)
@of_instances
def build_set(t: Space, real: object, source: Source) -> VariableTracker:
    tracker = SetTracker(type(real))
    tracker.unread = lambda vt: read(t, vt, real, source)
    return tracker


def new_set(t: Space, items: list[Any]) -> SetTracker:
    made = SetTracker(set)
    for item in items:
        hashed = t.key_of(item, AS_ELEMENT)
        tell_apart(t, item, hashed)
        if hashed not in made.entries:
            made.entries[hashed] = item
            made.steps.append(("add", item))
    return made


def replace_set(t: Space, vt: SetTracker, entries: dict[Any, Any], *steps: SetStep) -> None:
    """`steps` are what the program did."""
    if vt.unread is not None:
        vt.unread(vt)
    _change_set(t, vt, entries, *steps)


def _change_set(t: Space, vt: SetTracker, entries: dict[Any, Any], *steps: SetStep) -> None:
    t.write(vt, known=entries, steps=[*vt.steps, *steps])


def step_with(method: str, other: VariableTracker) -> list[SetStep]:
    """The step that takes `other`, as it is now."""
    return [(method, as_operand(other))]


def set_add(t: Space, vt: SetTracker, item: VariableTracker, use: str = AS_ELEMENT) -> None:
    if vt.unread is not None and is_undecided(t, item):
        put_undecided(t, vt, (item,), _add_known)
    else:
        _add_known(t, vt, item, use)


def _add_known(t: Space, vt: Any, item: VariableTracker, use: str = AS_ELEMENT) -> None:
    hashed = element_of(t, item, vt, use)
    if has_member(t, vt, hashed):
        return
    if vt.source is None:
        vt.known[hashed] = item
        vt.steps.append(("add", item))
        t.journal.record(lambda: vt.known.pop(hashed) and vt.steps.pop())
        t.mark_mutated(vt)
    else:
        _change_set(t, vt, {**vt.known, hashed: item}, ("add", item))


def has_member(t: Space, vt: SetTracker, hashed: object) -> bool:
    """Return True for a member of a set. Of an unread set from outside only the result is guarded:
    no new object is a member."""
    if vt.undecided:
        vt.decide()  # without reading the rest
    if vt.unread is not None and has_identity(hashed):  # it was not there before: `element_of`
        return hashed in vt.known
    if vt.unread is None or hashed in vt.known or runs_user_code(hashed):
        return hashed in vt.entries
    if (thing := real_key(hashed)) is MISSING:
        return False
    if type(hashed) is not Identity and _dict_entries.may_call_eq(members_of(vt.real)):
        return hashed in vt.entries  # the program compares, which the Machine interprets
    if type(hashed) is not Identity:  # the entry reads an object itself, and looks it up
        rely_on_objects(t, hashed, in_existing=True)
    return _is_in_existing(t, vt, hashed, thing)


def _is_in_existing(t: Space, vt: Any, hashed: object, thing: object) -> bool:
    known = t.heap.trackers.get(id(thing)) if type(hashed) is Identity else None
    origin = CapturedSource("constant", thing) if known is None else source_of(known)
    has = set_base(vt.real).__contains__
    found = has(vt.real, thing)
    t.guard(CallSource(has, vt.source, origin), Truth(found))
    return bool(found)


def set_update(t: Space, vt: SetTracker, iterable: VariableTracker) -> Result:
    if iterable is vt:
        return NONE
    if (entries := known_entries(t, iterable)) is not None:
        _merge(t, vt, entries, iterable if iterable.base is set else dict_of(entries))
        return NONE
    return t.for_each(iterable, lambda item: hashing(t, functools.partial(set_add, t, vt, item)))


def known_entries(t: Space, vt: Any) -> dict[Any, Any] | None:
    """Return the hashed elements of a set or a dict, whose hashes C reads; None for another
    iterable."""
    if vt.base is set:
        entries: dict[Any, Any] = vt.entries
        return entries
    return {t.key_of(key): key for key, _ in t.items(vt)} if vt.cls is dict else None


def _merge(t: Space, vt: SetTracker, entries: dict[Any, Any], operand: VariableTracker) -> None:
    more = {hashed: item for hashed, item in entries.items() if hashed not in vt.entries}
    for hashed, item in more.items():
        tell_apart(t, item, hashed)
    if entries:  # C makes room even when there is nothing new
        replace_set(t, vt, {**vt.entries, **more}, *step_with("update", operand))
