"""Class attribute lookup (`_PyType_Lookup`): through the MRO, each result guarded where it was
read."""

import types
from typing import Any

import attrs
from stator_guards import (
    CapturedSource,
    DictItemSource,
    InstanceDictSource,
    Is,
    KeyAbsent,
    KeyPresent,
    SlotSource,
    Source,
    TypeIs,
)

from stator_variables._runtime._contents import may_override
from stator_variables._space import Space
from stator_variables._trace._capture_state import Notes
from stator_variables._tracker import MISSING, VariableTracker

_get_dict = type.__dict__["__dict__"].__get__


@attrs.define(eq=False)
class GuardedLookups(Notes):
    """The attributes of classes that were looked up, with guards."""

    found: dict[Any, Any] = attrs.Factory(dict)

    def release(self) -> None:
        self.found.clear()


def type_lookup(t: Space, cls: type, name: str) -> tuple[Any, Source | None]:
    """`(raw attribute, source)` as found in the MRO of `cls`, or `(MISSING, None)`.

    The binding is not done.
    """
    # By identity: a metaclass may define how classes are hashed.
    lookups = t.state(GuardedLookups).found
    known: tuple[Any, Source | None] | None = lookups.get((id(cls), name))
    if known is None:
        t.heap.alive.append(cls)
        known = lookups[id(cls), name] = mro_lookup(t, mro_of(t, cls), name)
    return known


def mro_of(t: Space, cls: type) -> tuple[type, ...]:
    """The classes that are looked through, which change when `__bases__` is assigned."""
    if may_override(cls) and len(cls.__mro__) > 2:
        t.guard(SlotSource(CapturedSource(cls.__qualname__, cls), type, "__mro__"), Is(cls.__mro__))
    return cls.__mro__


def guarded_lookup(t: Space, cls: type, name: str) -> Any:
    """The raw class attribute or MISSING, relied on."""
    return type_lookup(t, cls, name)[0]


def rely_on_method(t: Space, cls: type, name: str) -> None:
    """Guard that C finds the very method that it found, which nothing here reads."""
    raw, source = type_lookup(t, cls, name)
    if type(source) is DictItemSource:
        t.guard(source, Is(raw))


def mro_lookup(t: Space, mro: tuple[type, ...], name: str) -> tuple[Any, Source | None]:
    key = (*map(id, mro), name)
    lookups = t.state(GuardedLookups).found
    if (known := lookups.get(key)) is None:
        t.heap.alive.append(mro)
        known = lookups[key] = _search(t, mro, name)
    return known


def _search(t: Space, mro: tuple[type, ...], name: str) -> tuple[Any, Source | None]:
    for cls in mro:
        written = t.shared.get(("written class", id(cls)))
        if written is not None and name in written.names:
            if written.names[name] is None:
                continue
            real = written.names[name][1]
            return real, CapturedSource(name, real)

        namespace = _get_dict(cls)
        frozen = not may_override(cls) or is_app_level(cls)
        try:
            value = namespace.get(name, MISSING)
        except Exception as error:  # raised by the `__eq__` of a key of the program's
            raise t.unsupported(
                "user-hash", f"a look into a class whose names raise {error!r}"
            ) from None

        if value is not MISSING:
            source = DictItemSource(namespace_source(t, cls), name)
            if frozen:
                return value, CapturedSource(source.name, value)
            _rely_on_binding(t, value, source)
            return value, source
        if not frozen:
            t.guard(namespace_source(t, cls), KeyAbsent(name))

    return MISSING, None


def is_app_level(cls: type) -> bool:
    """Return True if a class is app-level code."""
    module = _get_dict(cls).get("__module__")
    return type(module) is str and module.startswith("stator_variables._applevel.")


def rely_on_presence(t: Space, cls: type, name: str) -> bool:
    """Return True if the dictionary of the class itself had the name at the start, with a guard."""
    found = name in _get_dict(cls)
    t.guard(namespace_source(t, cls), KeyPresent(name) if found else KeyAbsent(name))
    return found


def _rely_on_binding(t: Space, raw: object, source: Source) -> None:
    """Guard the kind of a descriptor. The function that it binds is read out of it and guarded
    there."""
    if type(raw) in (staticmethod, classmethod, property):
        t.guard(source, TypeIs(type(raw)))
    elif raw is None or type(raw) in _OF_C:
        t.guard(source, Is(raw))


_OF_C = (
    *(types.MemberDescriptorType, types.GetSetDescriptorType, types.MethodDescriptorType),
    *(types.WrapperDescriptorType, types.ClassMethodDescriptorType),
)


def namespace_source(t: Space, cls: type) -> Source:
    """One per class and trace: comparing sources that are the same object takes no time."""
    key = ("class namespace", id(cls))
    found: Source | None = t.shared.get(key)
    if found is None:
        found = t.shared[key] = InstanceDictSource(CapturedSource(cls.__qualname__, cls))
    return found


def defines(t: Space, cls: type, *names: str) -> bool:
    """Return True if `cls` has one of these attributes, with a guard."""
    for name in names:
        _, source = type_lookup(t, cls, name)
        if type(source) is DictItemSource:
            t.guard(source.base, KeyPresent(name))
        if source is not None:
            return True
    return False


def overrides(t: Space, cls: type, *names: str) -> bool:
    """Return True if the class overrides one of these methods of C, with a guard."""
    return any(
        defines(t, cls, name) and type(guarded_lookup(t, cls, name)) not in _OF_C for name in names
    )


def refuse_overridden(t: Space, vt: VariableTracker, *names: str) -> None:
    """Reject containers that override these methods, where C itself calls them."""
    for name in names:
        if overrides(t, vt.cls, name):
            raise t.unsupported(
                "container-subclass", f"a {vt.cls.__name__}, of which C calls {name}"
            )


def is_subtype(cls: type, base: type) -> bool:
    """Implement `PyType_IsSubtype`, without methods of the metaclass."""
    return type.__subclasscheck__(base, cls)


def is_data_descriptor(t: Space, raw: Any) -> bool:
    return defines(t, type(raw), "__set__", "__delete__")
