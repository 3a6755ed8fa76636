"""The storage of dicts: read, write, delete and complete a DictTracker. The methods of Python's
dicts are elsewhere.

An existing dict is read key by key, each read guarded on its own, until all of it is needed
(iteration, length); only then are its keys and their order relied on.
"""

import collections
import types
from typing import Any

from stator_bytecode import Result, frame_values
from stator_guards import (
    CallSource,
    DictItemSource,
    Is,
    ItemSource,
    KeyAbsent,
    KeyPresent,
    KeysAre,
    KeySource,
    Source,
)

from stator_variables._hash_key import HandleKey, Identity, RefTo, type_hashes_by_identity
from stator_variables._lifetime._reachability import reached
from stator_variables._objects._builder_table import BuilderTable, field
from stator_variables._objects._dict import DictEntries, DictTracker
from stator_variables._objects._hash_results import ALONE, AS_KEY, hashing
from stator_variables._objects._hashing import (
    COMPOSED,
    has_identity,
    is_handed_in,
    key_made,
    key_with_identities,
    real_key,
    rely_on_kept_hashes,
    rely_on_objects,
    tell_apart,
)
from stator_variables._objects._hook_tables import (
    are_handles,
    entries_of_handles,
    number_of_handle,
    refuse_number_among_handles,
    rely_on_same_handle,
)
from stator_variables._objects._keys import runs_user_code
from stator_variables._objects._lookup import overrides
from stator_variables._objects._undecided_key import is_undecided, put_undecided
from stator_variables._objects._wrap import ATOMS, of_instances, wrap_present
from stator_variables._runtime._contents import (
    item_owner,
    keys_in_order,
    may_override,
    plain_lookup,
    value_under,
    values_in_order,
)
from stator_variables._space import Space
from stator_variables._tracker import (
    DELETED,
    MISSING,
    VariableTracker,
    is_pending,
    real_of,
    source_of,
)
from stator_variables._trackers import ConstantTracker

builders = BuilderTable()


def lookup(t: Space, d: DictTracker, hashed: object) -> Any:
    """The value under a hashed key, or MISSING. That of a text is the text."""
    by_origin = d.real is not MISSING and (
        has_identity(hashed) or (not d.complete and _may_vary(t, d, hashed))
    )
    if type(hashed) in COMPOSED:
        rely_on_objects(t, hashed, d.real is not MISSING and not by_origin)
    refuse_number_among_handles(t, d, hashed)
    if (found := d.entries.get(hashed)) is not None:
        if type(hashed) is HandleKey:
            rely_on_same_handle(t, found[0], hashed.tracker)
        return MISSING if found[1] is DELETED else found[1]
    if by_origin:
        return _read_by_origin(t, d, hashed)
    return MISSING if d.complete else _read_existing(t, d, hashed)


def _may_vary(t: Space, d: DictTracker, hashed: object) -> bool:
    """Return whether a key has an object in it that was handed in, and so may be another one on
    each call."""
    return type(hashed) in (Identity, tuple) and is_handed_in(t, hashed) and not _may_call_eq(d)


def _read_by_origin(t: Space, d: DictTracker, hashed: object) -> Any:
    """Look a key up that another call has another object for, or another identity: what is relied
    on is what the dict has for the object at hand. No such key can be that of a new object."""
    if (key := key_with_identities(t, hashed)) is MISSING:
        return MISSING
    assert d.source is not None
    now, origin = key_made(t, key)
    value, where = value_under(d.real, now), CallSource(value_under, d.source, origin)
    if value is MISSING:
        t.guard(where, Is(MISSING))
        if not has_identity(hashed):
            d.entries[hashed] = (None, DELETED)
        return MISSING
    if d.complete:
        raise t.unsupported("identity-number", "a dict of identities of which all keys are known")
    tracker = wrap_present(t, value, where)
    d.entries[hashed] = (key, tracker)
    return tracker


def _read_existing(t: Space, d: DictTracker, hashed: object) -> Any:
    if (key := real_key(hashed)) is MISSING or (type(hashed) is not Identity and _may_call_eq(d)):
        complete(t, d)
        return lookup(t, d, hashed)
    try:
        value = dict.get(d.real, key, MISSING)
    except Exception as error:  # raised by the `__eq__` of a key of the program's
        raise t.unsupported("user-hash", f"a look into a dict whose keys raise {error!r}") from None
    assert d.source is not None
    if value is MISSING:
        t.guard(d.source, KeyAbsent(key, _owner(d)))
        d.entries[hashed] = (None, DELETED)
        return MISSING

    source = DictItemSource(d.source, key, item_owner(d.cls, dict))
    tracker = number_of_handle(d, key, value, source)
    tracker = t.wrap(value, source) if tracker is None else tracker
    t.needs_item(d.source, KeyPresent(key, _owner(d)), tracker)
    d.entries[hashed] = (ConstantTracker(key), tracker)
    return tracker


def _may_call_eq(d: DictTracker) -> bool:
    if d.may_call_eq is None:
        d.may_call_eq = may_call_eq([*dict.keys(d.real)])  # the view is read at once: threads
    return d.may_call_eq


def may_call_eq(keys: list[Any]) -> bool:
    """Return True if C, in a look-up of a key that is no object, may call `__eq__` of the program:
    guards would call it again."""
    kinds = {id(cls): cls for cls in map(type, keys)}.values()
    user_keys = (
        cls for cls in kinds if type(plain_lookup(cls, "__eq__")) is not types.WrapperDescriptorType
    )
    return not all(map(type_hashes_by_identity, user_keys))


def _owner(d: DictTracker) -> type[dict[Any, Any]] | None:
    return dict if may_override(d.cls) else None


def store(t: Space, d: DictTracker, key: VariableTracker, value: VariableTracker) -> None:
    if d.real is MISSING or d.complete or d.owner is not None or not is_undecided(t, key):
        _store_known(t, d, key, value)
    else:
        _release_unread(t, d, real_of(key) if is_pending(key) else MISSING, source_of(key))
        put_undecided(t, d, (key, value), _store_known)


def _store_known(t: Space, d: DictTracker, key: VariableTracker, value: VariableTracker) -> None:
    use = ALONE if issubclass(d.cls, collections.OrderedDict) else AS_KEY
    store_hashed(t, d, t.key_of(key, use), key, value)


def put(t: Space, d: DictTracker, key: VariableTracker, value: VariableTracker) -> Result:
    """The same for an operation that waits: a Result."""
    return hashing(t, lambda: store(t, d, key, value))


def store_hashed(
    t: Space, d: DictTracker, hashed: object, key: VariableTracker, value: VariableTracker
) -> None:
    """Set an item; an equal key that is there already keeps its place and its key object."""
    if has_identity(hashed):
        lookup(t, d, hashed)  # whether the key is there already makes a difference to the order
    elif type(hashed) in COMPOSED:
        rely_on_objects(t, hashed, in_existing=False)
    refuse_number_among_handles(t, d, hashed)
    if d.owner is not None and not isinstance(hashed, str):
        raise t.unsupported("user-hash", "an instance dictionary with a key that is no text")
    before = d.entries.get(hashed, MISSING)
    known = before is not MISSING and before[1] is not DELETED
    if not known and d.iterators:
        _refuse_under_iteration(t, d)
    d.entries[hashed] = (before[0] if known else key, value)
    _log(t, d, ("set", hashed, key, value), hashed, before)


def _refuse_under_iteration(t: Space, d: DictTracker) -> None:
    """Keys of a dict do not come or go while the program iterates over it: what C's iterator does
    then depends on how the dict is stored, so that it has to be C's own iterator, over the dict as
    it was before."""
    going = [it for it in d.iterators if not it.exhausted]
    if not going:  # as nearly always
        return

    changed = t.heap.changed
    if reached([*frame_values(t.machine.frames), *changed.values()], going, changed):
        raise t.unsupported(
            "dict-changed-during-iteration", "a dict whose keys change while it is iterated"
        )
    for it in going:
        t.write(it, size=-1)  # its next step is refused
    t.journal.assign(d, iterators=[])


def remove(t: Space, d: DictTracker, hashed: object) -> Any:
    """Delete an item and give its value, or MISSING when there was none."""
    if (value := lookup(t, d, hashed)) is MISSING:
        return MISSING
    if d.iterators:
        _refuse_under_iteration(t, d)
    entry = d.entries[hashed]
    order = list(d.entries)
    if d.complete:
        del d.entries[hashed]
    else:
        d.entries[hashed] = (entry[0], DELETED)
    _log(t, d, ("delete", hashed, entry[0], None), hashed, entry, order)
    return value


def _log(
    t: Space,
    d: DictTracker,
    write: Any,
    hashed: object,
    before: Any,
    order: list[Any] | None = None,
) -> None:
    if before is not MISSING:
        t.lifetimes.note_release(before[1], d)
    elif not d.complete:
        _release_unread(t, d, real_key(hashed), by_user_code=runs_user_code(hashed))
    d.log.append(write)

    def undo() -> None:
        d.log.pop()
        if before is MISSING:
            d.entries.pop(hashed, None)
        else:
            d.entries[hashed] = before
        if order is not None:
            rest = dict(d.entries)
            d.entries.clear()
            d.entries.update((k, rest[k]) for k in order if k in rest)

    t.journal.record(undo)
    t.mark_mutated(d)


def _release_unread(
    t: Space, d: DictTracker, key: Any, origin: Source | None = None, by_user_code: bool = False
) -> None:
    """Record the release of an unread value; if the look-up would call the program, it may be any
    of the values."""
    if by_user_code or _may_call_eq(d):
        t.lifetimes.note_release_unread(_values, d, None)
    elif key is not MISSING:
        t.lifetimes.note_release_unread(value_under, d, key, origin)


def _values(d: Any, _: None) -> list[Any]:
    return list(dict.values(d))


def deletions(d: DictTracker) -> int:
    """Return the number of deleted items, by which an iterator over an OrderedDict detects a
    change."""
    return sum(write[0] == "delete" for write in d.log)


def forget_undone(t: Space, d: DictTracker) -> None:
    """Drop writes that were overwritten, and those that put back what was there before the
    trace."""
    if d.source is None or any(verb == "delete" for verb, *_ in d.log):
        return
    final = {hashed: (verb, hashed, key, value) for verb, hashed, key, value in d.log}
    t.journal.assign(
        d, log=[write for write in final.values() if not _is_original(d, *write[1::2])]
    )


def _is_original(d: DictTracker, hashed: object, value: object) -> bool:
    key, real = real_key(hashed), real_of(value)
    return key is not MISSING and real is not MISSING and dict.get(d.real, key, MISSING) is real


def complete(t: Space, d: DictTracker) -> None:
    """Read all keys of an existing dict, in order."""
    if d.complete:
        return
    assert d.source is not None
    t.allow_length(dict.__len__(d.real), d.cls)
    if overrides(t, d.cls, "__iter__"):
        raise t.unsupported(
            "container-subclass", f"all keys of a {d.cls.__name__}, which iterates in its own way"
        )

    keys = _keys_of(t, d)
    if are_handles(d, keys):
        known = _with_writes(d, entries_of_handles(t, d, keys))
        t.journal.assign(d, entries=known, complete=True)
        return
    _rely_on_known_keys(t, d)
    is_open = may_override(d.cls)  # so C does where it lists what a dict has
    t.guard(CallSource(keys_in_order, d.source) if is_open else d.source, KeysAre(keys))
    entries: DictEntries = {}
    real: dict[Any, Any] = {}

    for index, key in enumerate(keys):
        is_atom = type(key) in ATOMS
        key_vt = ConstantTracker(key) if is_atom else t.wrap(key, KeySource(d.source, index))
        hashed = t.key_of(key_vt)
        if type(hashed) is RefTo:
            raise t.unsupported("user-hash", "all keys of a dict, which are weak references")

        real[hashed] = key
        read = d.entries.get(hashed)
        if read is None or read[1] is DELETED or _was_written(d, hashed):
            by_index = runs_user_code(hashed)
            value = _value_at(t, d, index) if by_index else _value_of(t, d, key)
            entries[hashed] = (key_vt, value)
        else:
            entries[hashed] = (key_vt, read[1])

    rely_on_kept_hashes(t, d.source, d.real, real)
    t.journal.assign(d, entries=_with_writes(d, entries), complete=True)


def _with_writes(d: DictTracker, entries: DictEntries) -> DictEntries:
    for verb, hashed, key_vt, value in d.log:
        if verb == "set":
            entries[hashed] = (entries[hashed][0] if hashed in entries else key_vt, value)
        else:
            entries.pop(hashed, None)
    return entries


def _rely_on_known_keys(t: Space, d: DictTracker) -> None:
    """Objects that were looked up in a dict become keys among the others."""
    if any(has_identity(hashed) and not _was_added(t, d, hashed) for hashed in d.entries):
        raise t.unsupported("identity-number", "all keys of a dict, some of which are identities")
    for hashed in d.entries:
        if type(hashed) in COMPOSED:
            rely_on_objects(t, hashed, in_existing=True)


def _keys_of(t: Space, d: DictTracker) -> tuple[Any, ...]:
    refuse_user_key_order(t, d.real)
    try:
        return keys_in_order(d.real)
    except Exception as error:
        raise _lost_keys(t, error) from None


def _value_of(t: Space, d: DictTracker, key: object) -> VariableTracker:
    assert d.source is not None
    try:
        value = dict.__getitem__(d.real, key)
    except Exception as error:
        raise _lost_keys(t, error) from None
    return t.wrap(value, DictItemSource(d.source, key, item_owner(d.cls, dict)))


def _value_at(t: Space, d: DictTracker, index: int) -> VariableTracker:
    assert d.source is not None
    values = CallSource(values_in_order, d.source)
    return t.wrap(values_in_order(d.real)[index], ItemSource(values, index))


def refuse_user_key_order(t: Space, d: object) -> None:
    """Reject the order of an OrderedDict with keys of the program, which hashes its keys to
    iterate."""
    if isinstance(d, collections.OrderedDict) and (
        user_keys := [key for key in [*dict.keys(d)] if _is_hashed_in_python(key)]
    ):
        raise t.unsupported(
            "user-hash",
            f"a key of class {type(user_keys[0]).__name__} in an OrderedDict from outside",
        )


def _is_hashed_in_python(key: object) -> bool:
    if isinstance(type(key).__hash__, types.FunctionType):
        return True
    return isinstance(key, tuple | frozenset) and any(map(_is_hashed_in_python, key))


def _lost_keys(t: Space, error: Exception) -> Exception:
    """Return the refusal of a dict that does not find its own keys.

    The class of a key is inconsistent, or the order of an OrderedDict was bypassed.
    """
    return t.unsupported("user-hash", f"a dict that does not find its own keys: {error!r}")


def _was_added(t: Space, d: DictTracker, hashed: object) -> bool:
    key = key_with_identities(t, hashed)
    return key is MISSING or value_under(d.real, key_made(t, key)[0]) is MISSING


def _was_written(d: DictTracker, hashed: object) -> bool:
    return any(entry[1] == hashed for entry in d.log)


def items(t: Space, d: DictTracker) -> list[tuple[Any, Any]]:
    """(key, value) trackers in order. Of what is complete none is DELETED."""
    complete(t, d)
    return [*d.entries.values()]


def clear(t: Space, d: DictTracker) -> None:
    complete(t, d)
    for hashed in list(d.entries):
        remove(t, d, hashed)


def set_name(t: Space, d: DictTracker, name: str, value: VariableTracker) -> None:
    store_hashed(t, d, name, ConstantTracker(name), value)


def new_map(t: Space, keys: list[Any], values: list[Any]) -> DictTracker:
    made = DictTracker(dict, complete=True)
    for key, value in zip(keys, values, strict=True):
        hashed = t.key_of(key)
        tell_apart(t, key, hashed)
        made.entries[hashed] = (made.entries[hashed][0] if hashed in made.entries else key, value)
    return made


@builders.by_base.handles(dict)
@of_instances
def build_dict(t: Space, real: object, source: Source) -> VariableTracker:
    tracker = DictTracker(type(real), complete=False)
    if issubclass(type(real), collections.defaultdict):
        tracker.default_factory = field(t, real, "default_factory", source)
    return tracker
