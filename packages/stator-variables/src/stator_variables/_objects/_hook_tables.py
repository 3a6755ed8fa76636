"""Dicts of hooks, whose keys are numbers of handles: other ones in each process, in their order."""

import operator
from typing import Any

from stator_guards import CallSource, Equals, ItemSource, Source, Truth, shown_as
from torch.utils.hooks import RemovableHandle

from stator_variables._hash_key import HandleKey
from stator_variables._objects._dict import DictEntries, DictTracker
from stator_variables._objects._identity_number import HandleKeyTracker
from stator_variables._runtime._contents import keys_in_order, value_under
from stator_variables._space import Space

_HOOK_TABLES = frozenset(
    f"{prefix}{name}"
    for prefix in ("_", "_global_")
    for name in ("forward_hooks", "forward_pre_hooks", "backward_hooks", "backward_pre_hooks")
)


def are_handles(d: DictTracker, keys: tuple[Any, ...]) -> bool:
    """Return True if the keys of an existing dict are those of hooks, none of them read as a
    number."""
    name = getattr(d.source, "key", getattr(d.source, "attribute", None))
    is_table = name in _HOOK_TABLES and set(map(type, keys)) == {int}
    return is_table and not any(type(hashed) is int for hashed in d.entries)


def entries_of_handles(t: Space, d: DictTracker, keys: tuple[Any, ...]) -> DictEntries:
    """The hooks in their order: a hook that is registered again is the same one under another
    key."""
    assert d.source is not None
    t.guard(CallSource(count_of_handles, d.source), Equals(len(keys)))
    numbers, entries = CallSource(keys_in_order, d.source), {}
    for index, key in enumerate(keys):
        place = ItemSource(numbers, index)
        key_vt = HandleKeyTracker(key, place)
        if (read := d.entries.get(t.key_of(key_vt))) is not None:
            rely_on_same_handle(t, read[0], key_vt)
        value = t.wrap(dict.__getitem__(d.real, key), CallSource(value_under, d.source, place))
        entries[t.key_of(key_vt)] = key_vt, value
    return entries


def rely_on_same_handle(t: Space, one: Any, other: Any) -> None:
    """Two keys that are equal now come from places that have equal keys."""
    if one is not other and one.source != other.source:
        t.guard(CallSource(operator.eq, one.source, other.source), Truth(True))


@shown_as("the number of hooks in {0}")
def count_of_handles(d: Any) -> int:
    """The number of keys; -1 where they are no keys of hooks."""
    return len(d) if all(type(key) is int for key in dict.keys(d)) else -1


def refuse_number_among_handles(t: Space, d: DictTracker, hashed: object) -> None:
    if d.complete and type(hashed) is int and any(type(key) is HandleKey for key in d.entries):
        raise t.unsupported("identity-number", "a number and the keys of hooks, in one dict")


def number_of_handle(d: DictTracker, key: object, value: Any, source: Source) -> Any:
    """Return the tracker of the number in a handle; None for another value."""
    is_number = key == "id" and d.owner is not None and d.owner.cls is RemovableHandle
    return HandleKeyTracker(value, source) if is_number else None
