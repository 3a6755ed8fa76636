"""Class attribute lookup (`_PyType_Lookup`): through the MRO, each answer guarded where it was read."""

from __future__ import annotations

from typing import Any

from stator_guards import CapturedSource, DictItemSource, InstanceDictSource, KeyAbsent, Source

from stator_variables._build import wrap
from stator_variables._tracing import Tracing
from stator_variables._tracker import MISSING

_IMMUTABLE = 1 << 8  # Py_TPFLAGS_IMMUTABLETYPE: its dictionary never changes
_get_dict = type.__dict__["__dict__"].__get__


def type_lookup(t: Tracing, cls: type, name: str) -> tuple[Any, Source | None]:
    """`(raw attribute, source)` as found in the MRO of `cls`, or `(MISSING, None)`. The binding is not done."""
    return mro_lookup(t, cls.__mro__, name)


def mro_lookup(t: Tracing, mro: tuple[type, ...], name: str) -> tuple[Any, Source | None]:
    known = t.lookups.get((mro, name))
    if known is None:
        known = t.lookups[mro, name] = _search(t, mro, name)
    return known


def _search(t: Tracing, mro: tuple[type, ...], name: str) -> tuple[Any, Source | None]:
    for cls in mro:
        namespace = _get_dict(cls)
        frozen = bool(cls.__flags__ & _IMMUTABLE)
        if name in namespace:
            value = namespace[name]
            source = class_dict_source(cls, name)
            return value, CapturedSource(source.name, value) if frozen else source
        if not frozen:
            t.guard(_namespace_source(cls), KeyAbsent(name))
    return MISSING, None


def _namespace_source(cls: type) -> Source:
    return InstanceDictSource(CapturedSource(cls.__qualname__, cls))


def class_dict_source(cls: type, name: str) -> DictItemSource:
    return DictItemSource(_namespace_source(cls), name)


def class_attribute(t: Tracing, cls: type, name: str) -> Any:
    """The tracker of a raw class attribute (unbound), or MISSING."""
    value, source = type_lookup(t, cls, name)
    return MISSING if source is None else wrap(t, value, source)


def plain_lookup(cls: type, name: str) -> Any:
    """The raw class attribute without guards: for deciding what needs a guarded look."""
    for base in cls.__mro__:
        namespace = _get_dict(base)
        if name in namespace:
            return namespace[name]
    return MISSING
