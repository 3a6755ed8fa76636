"""The words of memory that a set of facts stands on, collected while the objects they belong to are
at hand.

Each method returns whether the fact can be watched; False leaves it to be read on every call. A
word is recorded before anything is read that it proves, so that a word which still has its recorded
value proves it from then on. `Cells` holds every object it points into, so no word is read from
freed memory.
"""

from __future__ import annotations

import gc
from collections import OrderedDict, defaultdict
from collections.abc import Mapping, Sequence
from types import FunctionType, MappingProxyType, ModuleType, NoneType

from attrs import Factory, define, frozen

from stator_guards._memory import (
    HEAP_TYPE,
    MANAGED_DICT,
    ObjectLayout,
    detach,
    give_dict_version,
    give_version,
    has_inline_values,
    unshare,
    word,
)

_SAFE_KEYS = frozenset(map(id, (str, int, bool, float, bytes, NoneType, type, FunctionType)))
"""Types of keys whose hash and equality run no user code; with others a lookup may change while the
dict does not. By their ids, as a metaclass may have a hash of its own."""
_PLAIN_LOOKUP = (object.__getattribute__, ModuleType.__getattribute__)
_MISSING = object()


@define(eq=False)
class Cells:
    """Addresses of words, what each held when it was recorded, and the facts that stand on it."""

    layout: ObjectLayout
    words: dict[int, int] = Factory(dict)
    facts: dict[int, list[object]] = Factory(dict)
    owners: dict[int, object] = Factory(dict)
    """The object that each address lies in."""
    targets: dict[int, object] = Factory(dict)
    """The objects that pointer words point at: while one is held, no other object has its
    address."""
    _fact: object = None
    _added: list[int] = Factory(list)
    _classes: dict[int, tuple[type, ...] | None] = Factory(dict)

    def begin(self, fact: object) -> None:
        """Record further words for `fact`."""
        self._fact = fact
        self._added.clear()

    def rollback(self) -> None:
        """Discard what was recorded for the current fact."""
        for address in self._added:
            self.facts[address].pop()
            if not self.facts[address]:
                del self.facts[address], self.words[address], self.owners[address]
                self.targets.pop(address, None)
                self._classes.clear()  # which has objects by their ids
        self._added.clear()

    def _add(self, obj: object, offset: int) -> bool:
        return self.add(id(obj) + offset, obj)

    def add(self, address: int, holder: object) -> bool:
        """Watch a word in memory that lives as long as `holder`."""
        if address in self.words:
            self.facts[address].append(self._fact)
        else:
            self.words[address] = word(address)
            self.facts[address] = [self._fact]
            self.owners[address] = holder
        self._added.append(address)
        return True

    def are_known(self, addresses: Mapping[int, int], held: bytes) -> bool:
        """Return False if a word among these was recorded with another value than it has in `held`,
        at the index of its address."""
        values = memoryview(held).cast("Q")
        return all(
            self.words.get(address, values[i]) == values[i] for address, i in addresses.items()
        )

    def add_all(self, fact: object, words: Words, held: bytes) -> None:
        """Add words that were recorded for `fact`, with their values."""
        values = memoryview(held).cast("Q")
        alone = [fact]  # one for all words: what is added to one of them is checked with all
        for address, i in words.indices.items():
            if address in self.words:
                self.facts[address] = [*self.facts[address], fact]
            else:
                self.words[address] = values[i]
                self.facts[address] = alone
        for address, holder in words.owners.items():
            self.owners.setdefault(address, holder)
        self.targets.update(words.targets)

    def pointer(self, obj: object, offset: int, target: object) -> bool:
        """Watch that a word inside `obj` keeps pointing at `target`."""
        address = id(obj) + offset
        if not self._add(obj, offset) or self.words[address] != id(target):
            return False
        self.targets[address] = target
        return True

    def function_part(self, fn: object, part: str, value: object) -> bool:
        """Watch a word of a plain Python function; its closure stays what it is."""
        if type(fn) is not FunctionType or part == "closure":
            return type(fn) is FunctionType
        offset = getattr(self.layout, f"function_{part}")
        if value is None:  # no object
            return self._add(fn, offset) and self.words[id(fn) + offset] == 0
        return self.pointer(fn, offset, value)

    def type_of(self, obj: object) -> bool:
        """Watch `type(obj)`: only instances of heap classes and modules can change it."""
        cls = type(obj)
        if not cls.__flags__ & HEAP_TYPE and not issubclass(cls, ModuleType):
            return True
        return self.pointer(obj, self.layout.type, cls)

    def type_version(self, cls: type) -> bool:
        """Watch everything an attribute lookup reads of `cls` and its bases."""
        if not cls.__flags__ & HEAP_TYPE:
            return True
        address = id(cls) + self.layout.type_version
        if address not in self.words:
            give_version(cls)
        return self._add(cls, self.layout.type_version) and bool(self.words[address])

    def mapping(self, mapping: object) -> bool:
        """Watch all keys and values of a dict, or of the dict behind a class."""
        if type(mapping) is MappingProxyType:
            (mapping,) = gc.get_referents(mapping)
        if type(mapping) not in _DICTS or not isinstance(mapping, dict):
            return False
        if has_inline_values(self.layout, mapping):
            return False
        give_dict_version(self.layout, mapping)
        self._add(mapping, self.layout.dict_version)
        if id(mapping) not in self._classes:
            # in one step, as other threads may add keys; held by now, so its address stays its own
            self._classes[id(mapping)] = classes_of_keys([*mapping])
        return self._keep_hashing(self._classes[id(mapping)])

    def lookup(self, mapping: object, key: object) -> bool:
        """Watch what a dict has under a key, or that it has no such key."""
        return self._keep_hashing(classes_of_keys([key])) and self.mapping(mapping)

    def _keep_hashing(self, classes: tuple[type, ...] | None) -> bool:
        return classes is not None and all(map(self.type_version, classes))

    def order(self, mapping: object) -> bool:
        """Watch the order of keys too. An OrderedDict keeps it elsewhere, and moves keys without a
        new version."""
        return self.mapping(mapping) and (type(mapping) is not OrderedDict or len(mapping) <= 1)

    def instance_dict(self, obj: object, attributes: object) -> bool:
        """Watch which dict holds the attributes of `obj`."""
        if isinstance(obj, type):
            return True
        cls = type(obj)
        managed = cls.__flags__ & MANAGED_DICT
        offset = self.layout.managed_dict if managed else cls.__dictoffset__
        own = (managed or offset > 0) and self.pointer(obj, offset, attributes)
        if own and isinstance(attributes, dict) and has_inline_values(self.layout, attributes):
            detach(obj)
            unshare(attributes)
            own = not has_inline_values(self.layout, attributes)
        return bool(own) and self.type_of(obj)

    def own_attributes(self, obj: object) -> bool:
        """Watch what the instance `__dict__` of an object holds."""
        attributes = attributes_of(obj)
        if attributes is None or isinstance(obj, type):
            return False
        return self.instance_dict(obj, attributes) and self.mapping(attributes)

    def attribute(self, obj: object, name: str, value: object) -> bool:
        """Watch that plain lookup of `name` gives `value`, which is no fresh object made by a
        descriptor."""
        if isinstance(obj, type):
            return self._class_attribute(obj, name, value)
        if not self._plain(obj):
            return False
        found = _lookup(type(obj), name)
        if not self._stays_what_it_is(found) or _is_data(found):
            return False
        if (attributes := attributes_of(obj)) is not None and name in attributes:
            return attributes[name] is value
        return found is value and not hasattr(type(found), "__get__")

    def no_attribute(self, obj: object, name: str) -> bool:
        """Watch that plain lookup of `name` finds nothing, nor a `__getattr__`."""
        if isinstance(obj, type | ModuleType) or not self._plain(obj):
            return False
        cls = type(obj)
        return _lookup(cls, "__getattr__") is _MISSING and _lookup(cls, name) is _MISSING

    def _plain(self, obj: object) -> bool:
        """Watch class, class attributes and instance attributes of an object with the standard
        lookup."""
        if not self.type_of(obj):
            return False
        cls = type(obj)  # as recorded
        attributes = attributes_of(obj)
        return (
            self.type_version(cls)
            and _lookup(cls, "__getattribute__") in _PLAIN_LOOKUP
            and (
                attributes is None
                or (self.instance_dict(obj, attributes) and self.mapping(attributes))
            )
        )

    def _stays_what_it_is(self, found: object) -> bool:
        """Watch that a class attribute does not become a descriptor because its own class gains
        `__get__`."""
        return self.type_of(found) and self.type_version(type(found))

    def _class_attribute(self, cls: type, name: str, value: object) -> bool:
        meta = type(cls)
        if not (self.type_of(cls) and self.type_version(meta) and self.type_version(cls)):
            return False
        found = _lookup(cls, name)
        return (
            self._stays_what_it_is(found)
            and found is value
            and (isinstance(found, FunctionType) or not hasattr(type(found), "__get__"))
            and _lookup(meta, "__getattribute__") is type.__getattribute__
            and not _is_data(_lookup(meta, name))
        )


@frozen(eq=False)
class Words:
    """The recorded words of one root object, in the order in which they are read."""

    indices: dict[int, int]
    """The index of each address."""
    facts: list[list[object]]
    """The sources and guards that depend on each word."""
    owners: dict[int, object]
    """Keeps the memory alive that is read; the root object, which is alive whenever that happens,
    is not among them."""
    targets: dict[int, object]

    @classmethod
    def of(cls, cells: Cells, root: object) -> Words:
        owners = {address: obj for address, obj in cells.owners.items() if obj is not root}
        indices = {address: i for i, address in enumerate(cells.words)}
        return cls(indices, [*cells.facts.values()], owners, cells.targets)

    def without(self, facts: frozenset[int]) -> Words:
        """The words that other facts than those with these ids stand on."""
        kept: dict[int, list[object]] = {}
        for address, standing in zip(self.indices, self.facts, strict=True):
            if facts.isdisjoint(map(id, standing)):
                kept[address] = standing
            elif left := [fact for fact in standing if id(fact) not in facts]:
                kept[address] = left
        return Words(
            {address: i for i, address in enumerate(kept)},
            [*kept.values()],
            {address: obj for address, obj in self.owners.items() if address in kept},
            {address: obj for address, obj in self.targets.items() if address in kept},
        )

    def holds(self, obj: object) -> bool:
        """Return whether a word lies in an object or points at it."""
        return any(each is obj for each in (*self.owners.values(), *self.targets.values()))

    def matches(self, cells: Cells, now: bytes) -> bool:
        """Return whether facts were recorded again on words that are known, and with the values
        that `now` has.

        A class gets a new version only when one is recorded: then `now` holds none, which is no
        version to compare.
        """
        words = memoryview(now).cast("Q")
        for address, value in cells.words.items():
            if address not in self.indices or words[self.indices[address]] != value:
                return False
        return all(self.targets.get(address) is target for address, target in cells.targets.items())


_DICTS = (dict, OrderedDict, defaultdict)


def classes_of_keys(keys: Sequence[object]) -> tuple[type, ...] | None:
    """Return the classes of those keys that are hashed by their address, like tensors, which the
    class decides; None if other user code hashes or compares one. Runs none of it."""
    classes = {id(cls): cls for cls in map(type, keys) if id(cls) not in _SAFE_KEYS}
    return tuple(classes.values()) if all(map(_hashes_address, classes.values())) else None


def _address(key: object) -> int:
    return id(key)


def _hashes_address(cls: type) -> bool:
    """Return True for the hash of `object` and for a method that is `return id(self)`."""
    hashing: object = cls.__hash__
    if not isinstance(hashing, FunctionType):
        return hashing is object.__hash__
    code, known = hashing.__code__, _address.__code__
    is_same = (code.co_code, code.co_names) == (known.co_code, known.co_names)
    return is_same and "id" not in hashing.__globals__


def _lookup(cls: type, name: str) -> object:
    """Return what the classes of the MRO hold under `name`, past descriptors."""
    return next((base.__dict__[name] for base in cls.__mro__ if name in base.__dict__), _MISSING)


def _is_data(found: object) -> bool:
    return hasattr(type(found), "__set__") or hasattr(type(found), "__delete__")


def attributes_of(obj: object) -> dict[str, object] | None:
    try:
        found = object.__getattribute__(obj, "__dict__")
    except AttributeError:
        return None
    return found if isinstance(found, dict) else None
