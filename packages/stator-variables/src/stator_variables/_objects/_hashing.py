"""Hashing of trackers: the Python value itself for constants, the identity for the rest.

Equal constants of different types (1, True, 1.0) are one key, as in Python; the dict determines
which key object stays. Objects whose class hashes in Python are keys by the result of their
`__hash__`, and `dict` itself, which holds the hashed keys, calls `__eq__` where CPython does: see
`_hash_results`.
"""

import operator
import types
import weakref
from typing import Any

from attrs import Factory, define
from stator_guards import (
    CallSource,
    CapturedSource,
    DictItemSource,
    Equals,
    Is,
    ItemSource,
    ParameterSource,
    Source,
    Truth,
    shown_as,
)

from stator_variables._hash_key import (
    OF_IDENTITY,
    WITH_IDENTITY,
    HandleKey,
    Identity,
    IdOf,
    RefTo,
    type_hashes_by_identity,
)
from stator_variables._objects._hash_results import (
    AS_ELEMENT,
    AS_KEY,
    complain_of_no_hash,
    user_hash,
)
from stator_variables._objects._identity_number import HandleKeyTracker, IdTracker
from stator_variables._objects._keys import ProgramKey, rely_on_hash, runs_user_code
from stator_variables._objects._lookup import guarded_lookup, overrides
from stator_variables._objects._plain_value import plain_value
from stator_variables._objects._set import SetTracker
from stator_variables._objects._tuple import TupleTracker
from stator_variables._objects._weakrefs import WeakrefTracker
from stator_variables._runtime._contents import set_base
from stator_variables._space import Space
from stator_variables._trace._capture_state import Notes
from stator_variables._tracker import MISSING, VariableTracker, is_a, made_of, source_of
from stator_variables._trackers import (
    ConstantTracker,
)


def key_of(t: Space, vt: VariableTracker, use: str = AS_KEY) -> object:
    """A hashable substitute for a tracker.

    Raises Unsupported for objects whose class defines its own hash in Python.
    """
    hashed = _hashed(t, vt, (vt.cls, use))
    if type(hashed) in (int, IdOf, tuple, frozenset):
        _note_numbers(t, hashed, ())
    return hashed


def key_of_value(t: Space, value: object) -> object:
    """The substitute for an existing value that C compares, without a tracker."""
    hashed = _hashed_value(value)
    if type(hashed) in (int, tuple, frozenset):
        _note_numbers(t, hashed, ())
    return hashed


def _hashed_value(value: object) -> object:
    if isinstance(value, tuple):
        return tuple(map(_hashed_value, value))
    if isinstance(value, frozenset):
        return frozenset(map(_hashed_value, value))
    return Identity(value) if isinstance(value, type) else value


@define(eq=False)
class KeyNumbers(Notes):
    """The numbers in keys, and the identities."""

    known: dict[Any, dict[Any, None]] = Factory(dict)
    """Numbers and identities, by their positions in the keys."""


_ADDRESSES, _MANY = 1 << 20, 16
"""Numbers from the first on may be identities; among so many keys in one position their difference
is irrelevant."""


def _note_numbers(t: Space, hashed: object, place: tuple[Any, ...]) -> None:
    """Record the numbers in positions of keys, so that an identity is compared with them for this
    call, and guarded."""
    if type(hashed) is tuple:
        for index, part in enumerate(hashed):
            _note_numbers(t, part, (*place, len(hashed), index))
    elif type(hashed) is frozenset:
        for part in hashed:
            _note_numbers(t, part, (*place, None))
    elif type(hashed) is IdOf or (type(hashed) is int and hashed >= _ADDRESSES):
        _rely_on_differences(t, hashed, t.state(KeyNumbers).known.setdefault(place, {}))


def _rely_on_differences(t: Space, hashed: object, known: dict[Any, None]) -> None:
    if hashed in known:
        return
    others = [other for other in known if type(other) is not type(hashed)]
    known[hashed] = None
    pairs = [(hashed, other) if type(hashed) is IdOf else (other, hashed) for other in others]
    for identity, number in pairs:
        if (key := key_with_identities(t, identity)) is MISSING:
            continue
        now, origin = key_made(t, key)
        if now == number or len(known) > _MANY:
            detail = "an identity and a number that may be one, both as keys"
            raise t.unsupported("identity-number", detail)
        t.guard(CallSource(operator.ne, origin, CapturedSource("number", number)), Truth(True))


def _hashed(t: Space, vt: Any, whole: tuple[type, str]) -> object:
    """Return the substitute for a part of `whole`, which is the class of the key and its use."""
    if getattr(vt.cls, "__hash__", None) is None:
        guarded_lookup(t, vt.cls, "__hash__")
        complain_of_no_hash(t, vt.cls, *whole)
    key = vt.hash_key(t, lambda item: _hashed(t, item, whole))
    if key is not MISSING:
        return key
    if type_hashes_by_identity(vt.cls):
        rely_on_hash(t, vt.cls)
        return Identity(vt.real if vt.real is not MISSING else vt)
    if isinstance(vt.cls.__hash__, types.FunctionType):
        return UserKey(t, vt, user_hash(t, vt))

    is_plain = not overrides(t, vt.cls, "__hash__", "__eq__")
    if is_plain and (plain := plain_value(t, vt)) is not vt:
        return _hashed(t, plain, whole)
    raise t.unsupported("user-hash", f"a key of class {vt.cls.__name__}, which hashes in C")


def element_of(t: Space, vt: VariableTracker, of: SetTracker, use: str = AS_ELEMENT) -> object:
    """Return the substitute for an element of a set. An existing set may hold identities, as
    numbers whose objects are unknown."""
    hashed = key_of(t, vt, use)
    if (
        of.real is not MISSING
        and has_identity(hashed)
        and (key := key_with_identities(t, hashed)) is not MISSING
    ):
        _rely_on_absence(t, of, *key_made(t, key))
    if type(hashed) in COMPOSED:
        rely_on_objects(t, hashed, in_existing=False)
    return hashed


def _rely_on_absence(t: Space, of: Any, key: object, origin: Source) -> None:
    has = set_base(of.real).__contains__
    if has(of.real, key):
        raise t.unsupported("identity-number", "an identity that is in a set from before")
    t.guard(CallSource(has, of.source, origin), Truth(False))


class UserKey(ProgramKey):
    """The key of an object whose class defines its hash; `number` is what that was."""

    __slots__ = ("number", "t", "thing")

    def __init__(self, t: Space, thing: VariableTracker, number: int) -> None:
        self.t, self.thing, self.number = t, thing, number

    def __hash__(self) -> int:
        return self.number

    def __eq__(self, other: object) -> bool:
        """Compare as a dict does: by identity, then by the hash, then by `__eq__`."""
        if type(other) is not UserKey:
            if self.number == hash(other):
                raise self.t.unsupported("user-hash", f"an object with the hash of {other!r}")
            return False
        if other.thing is self.thing or self.number != other.number:
            return other.thing is self.thing
        return bool(user_hash(self.t, self.thing, other.thing))


def is_known(hashed: Any) -> bool:
    """Return True if the number of a hashed key is that of the object as well."""
    if type(hashed) in (tuple, frozenset):
        return all(map(is_known, hashed))
    return type(hashed) not in (Identity, *WITH_IDENTITY)


def rely_on_kept_hashes(t: Space, source: Source, real: object, of: dict[Any, Any]) -> None:
    """Rely on the hashes that a dict or set keeps of its keys (`of`, by hashed key): those that the
    program computes may be others by now."""
    plain = type(real) in (dict, set, frozenset)
    if not plain or not any(map(runs_user_code, of)) or len({*map(hash, of)}) < len(of):
        return
    kept = hash(frozenset(hashed if is_known(hashed) else key for hashed, key in of.items()))
    if kept != kept_hashes(real):
        raise t.unsupported(
            "user-hash", "a key whose hash is not what it was when it was put into its container"
        )
    t.guard(CallSource(kept_hashes, source), Equals(kept))


@shown_as("the hashes that {0} has stored")
def kept_hashes(container: Any) -> int:
    """Return a hash of the hashes of all keys, without calling the keys: `set_update_internal` in
    CPython's Objects/setobject.c."""
    return hash(frozenset(container))


def tell_apart(t: Space, vt: VariableTracker, hashed: object) -> None:
    """Two objects from outside that are keys of one container must not turn out to be one object on
    a later call."""
    if type(hashed) in (tuple, frozenset, *OF_IDENTITY):
        rely_on_objects(t, hashed, in_existing=False)
    if type(hashed) is Identity and vt.source is not None and type(vt.source) is not CapturedSource:
        t.heap.assumed_distinct.setdefault(id(vt.real), vt)


COMPOSED = (Identity, *OF_IDENTITY, tuple, frozenset)
"""Hashed keys in which objects are known by their identity."""


def rely_on_objects(t: Space, hashed: Any, in_existing: bool) -> None:
    """A look-up holds for distinct objects; among what existed before for the very ones of the
    key."""
    if type(hashed) in (tuple, frozenset):
        for part in hashed:
            rely_on_objects(t, part, in_existing)
    elif type(hashed) in OF_IDENTITY:  # it is looked up in an existing dict with the object at hand
        rely_on_objects(t, hashed.identity, in_existing=False)
    elif type(hashed) is Identity and (found := t.heap.trackers.get(id(hashed.thing))) is not None:
        if in_existing:
            t.guard(source_of(found), Is(hashed.thing))
        tell_apart(t, found, hashed)


def real_key(hashed: Any) -> Any:
    """The real dict key that a hashed key represents, or MISSING when it is a new object's or holds
    one."""
    if type(hashed) is Identity:
        thing = hashed.thing
        return MISSING if is_a(thing, VariableTracker) else thing
    if type(hashed) in (*WITH_IDENTITY, UserKey):
        return MISSING
    if type(hashed) in (tuple, frozenset):
        return made_of(type(hashed), map(real_key, hashed))
    return hashed


# -- keys of existing dicts that are identities, or hold some --------------------------------------
def has_identity(hashed: Any) -> bool:
    return type(hashed) in WITH_IDENTITY or (
        type(hashed) in (tuple, frozenset) and any(map(has_identity, hashed))
    )


def is_handed_in(t: Space, hashed: object) -> bool:
    """Return whether a key is, or holds, an object that is an argument, or an item of one."""
    if type(hashed) is tuple:
        return any(is_handed_in(t, part) for part in hashed)
    if type(hashed) is not Identity or (found := t.heap.trackers.get(id(hashed.thing))) is None:
        return False
    step: Source | None = source_of(found)
    while isinstance(step, ItemSource | DictItemSource):
        step = step.base
    return isinstance(step, ParameterSource)


def key_with_identities(t: Space, hashed: Any) -> Any:
    """Return a tracker of the key; MISSING when it holds a new object, which no existing dict can
    contain."""
    if type(hashed) is tuple:
        return made_of(TupleTracker, (key_with_identities(t, part) for part in hashed))
    if type(hashed) is HandleKey:
        return hashed.tracker
    if type(hashed) in (frozenset, UserKey):
        raise t.unsupported("identity-number", "a key with an identity in a dict from before")
    has_thing = type(hashed) in WITH_IDENTITY
    thing = real_key(hashed.identity if has_thing else hashed)
    if thing is MISSING:
        return MISSING
    is_known = has_thing or type(hashed) is Identity
    found = (is_known and t.heap.trackers.get(id(thing))) or ConstantTracker(thing)
    if type(hashed) is RefTo:
        return WeakrefTracker(found)
    return IdTracker(found) if has_thing else found


def key_made(t: Space, key: VariableTracker) -> tuple[Any, Source]:
    """Such a key as it is now, and where it comes from on each call."""
    if is_a(key, TupleTracker):
        made = [key_made(t, item) for item in key.items]
        sources = [source for _, source in made]
        return tuple(value for value, _ in made), CallSource(tuple_of, *sources)
    if is_a(key, HandleKeyTracker):
        assert key.source is not None
        return key.number, key.source

    if is_a(key, IdTracker):
        thing, source = key_made(t, key.thing)
        return id(thing), CallSource(id, source)
    if is_a(key, WeakrefTracker):
        thing, source = key_made(t, key.target)
        return weakref.ref(thing), CallSource(weakref.ref, source)
    value = key.value if is_a(key, ConstantTracker) else key.real
    return value, CapturedSource("constant", value) if key.source is None else source_of(key)


def tuple_of(*parts: object) -> tuple[Any, ...]:
    return parts
