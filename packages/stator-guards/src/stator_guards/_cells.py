"""The words of memory that a set of facts stands on, collected while the objects they belong to are at hand.

Each method returns whether the fact can be watched; False leaves it to be read on every call. `Cells` holds every
object it points into, so no word is read from freed memory.
"""

import gc
from collections import OrderedDict
from types import FunctionType, MappingProxyType, ModuleType, NoneType
from typing import Any

import attrs

from stator_guards._memory import HEAP_TYPE, MANAGED_DICT, Layout, detach, give_version, has_inline_values, word

SAFE_KEYS = (str, int, bool, float, bytes, NoneType, type, FunctionType)
"""Types of keys whose hash and equality run no user code; with others a lookup may change while the dict does not."""

_PLAIN_LOOKUP = (object.__getattribute__, ModuleType.__getattribute__)
_MISSING = object()


@attrs.define(eq=False)
class Cells:
    """Addresses with the object that each belongs to, and which sort of container asked for it."""

    layout: Layout
    origins: dict[int, object] = attrs.field(factory=dict)
    held: list[object] = attrs.field(factory=list)
    origin: object = None
    """What is being watched right now; a word that changes too often is blamed on it."""
    root: object = None
    """Not held: it is alive whenever the words are read, and must not be kept alive in between."""

    def mark(self) -> tuple[int, int]:
        return len(self.origins), len(self.held)

    def rollback(self, mark: tuple[int, int]) -> None:
        """Forget what was added since `mark`."""
        while len(self.origins) > mark[0]:
            self.origins.popitem()
        del self.held[mark[1] :]

    def _add(self, obj: object, offset: int) -> bool:
        self.origins.setdefault(id(obj) + offset, self.origin)
        self.held.append(obj)
        return True

    def let_go(self) -> None:
        """Hold no objects any longer; the addresses are then only good for counting."""
        self.root = None
        self.held.clear()

    def pointer(self, obj: object, offset: int, target: object) -> bool:
        """Watch that a word inside `obj` keeps pointing at `target`."""
        self.held.append(target)
        return word(id(obj) + offset) == id(target) and self._add(obj, offset)

    def function_part(self, fn: object, part: str, value: object) -> bool:
        """Watch a word of a plain Python function; its closure stays what it is."""
        offset = getattr(self.layout, f"function_{part}", 0)
        return type(fn) is FunctionType and (part == "closure" or self.pointer(fn, offset, value))

    def type_of(self, obj: object) -> bool:
        """Watch `type(obj)`: only instances of heap classes and modules can change it."""
        fixed = not _is_heap(type(obj)) and not isinstance(obj, ModuleType)
        return fixed or self.pointer(obj, self.layout.type, type(obj))

    def type_version(self, cls: type) -> bool:
        """Watch everything an attribute lookup reads of `cls` and its bases."""
        if not _is_heap(cls):
            return True
        give_version(cls)
        return bool(word(id(cls) + self.layout.type_version)) and self._add(cls, self.layout.type_version)

    def mapping(self, mapping: object) -> bool:
        """Watch all keys and values of a dict, or of the dict behind a class."""
        if type(mapping) is MappingProxyType:
            (mapping,) = gc.get_referents(mapping)
        if not isinstance(mapping, dict) or type(mapping) not in (dict, OrderedDict):
            return False
        safe = all(type(key) in SAFE_KEYS for key in [*mapping])  # in one step: other threads may add keys
        return safe and not has_inline_values(self.layout, mapping) and self._add(mapping, self.layout.dict_version)

    def order(self, mapping: object) -> bool:
        """Watch the order of keys too. An OrderedDict keeps it elsewhere, and moves keys without a new version."""
        return (type(mapping) is not OrderedDict or len(mapping) <= 1) and self.mapping(mapping)

    def instance_dict(self, obj: Any, attributes: object) -> bool:
        """Watch which dict holds the attributes of `obj`."""
        if isinstance(obj, type):
            return True
        cls = type(obj)
        managed = cls.__flags__ & MANAGED_DICT
        offset = self.layout.managed_dict if managed else cls.__dictoffset__
        own = (managed or offset > 0) and self.pointer(obj, offset, attributes)
        if own and isinstance(attributes, dict) and has_inline_values(self.layout, attributes):
            detach(obj)
            own = not has_inline_values(self.layout, attributes)
        return bool(own) and self.type_of(obj)

    def attribute(self, obj: Any, name: str, value: object) -> bool:
        """Watch that plain lookup of `name` gives `value`, which is no fresh object made by a descriptor."""
        if isinstance(obj, type):
            return self._class_attribute(obj, name, value)
        found = _lookup(type(obj), name)
        if _is_data(found) or not self._plain(obj) or not self._stays_what_it_is(found):
            return False
        if (attributes := _attributes(obj)) is not None and name in attributes:
            return attributes[name] is value
        return found is value and not hasattr(type(found), "__get__")

    def no_attribute(self, obj: Any, name: str) -> bool:
        """Watch that plain lookup of `name` finds nothing and asks no `__getattr__`."""
        if isinstance(obj, type) or _lookup(type(obj), "__getattr__") is not _MISSING or isinstance(obj, ModuleType):
            return False
        return _lookup(type(obj), name) is _MISSING and self._plain(obj)

    def _plain(self, obj: Any) -> bool:
        """Watch class, class attributes and instance attributes of an object with the standard lookup."""
        cls = type(obj)
        attributes = _attributes(obj)
        return (
            _lookup(cls, "__getattribute__") in _PLAIN_LOOKUP
            and self.type_of(obj)
            and self.type_version(cls)
            and (attributes is None or (self.instance_dict(obj, attributes) and self.mapping(attributes)))
        )

    def _stays_what_it_is(self, found: object) -> bool:
        """Watch that a class attribute does not become a descriptor because its own class gains `__get__`."""
        return self.type_of(found) and self.type_version(type(found))

    def _class_attribute(self, cls: type, name: str, value: object) -> bool:
        meta = type(cls)
        found = _lookup(cls, name)
        static = isinstance(found, FunctionType) or not hasattr(type(found), "__get__")
        return (
            _lookup(meta, "__getattribute__") is type.__getattribute__
            and not _is_data(_lookup(meta, name))
            and static
            and found is value
            and self._stays_what_it_is(found)
            and self.type_of(cls)
            and self.type_version(meta)
            and self.type_version(cls)
        )


def _is_heap(cls: type) -> bool:
    return bool(cls.__flags__ & HEAP_TYPE)


def _lookup(cls: type, name: str) -> Any:
    """What the classes of the MRO hold under `name`, no descriptor asked."""
    return next((base.__dict__[name] for base in cls.__mro__ if name in base.__dict__), _MISSING)


def _is_data(found: object) -> bool:
    return hasattr(type(found), "__set__") or hasattr(type(found), "__delete__")


def _attributes(obj: object) -> dict[str, object] | None:
    try:
        found = object.__getattribute__(obj, "__dict__")
    except AttributeError:
        return None
    return found if isinstance(found, dict) else None
