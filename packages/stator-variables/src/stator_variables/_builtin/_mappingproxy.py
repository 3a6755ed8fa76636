"""mappingproxy: a read-only view, which asks the mapping below for everything (Objects/descrobject.c)."""

import types
from typing import Any

from stator_bytecode import HandlerTable, after

from stator_variables import _kinds as k
from stator_variables._model import _attributes, _calls, _operators
from stator_variables._model._lookup import defines
from stator_variables._tracing import Tracing
from stator_variables._tracker import MISSING

handlers: HandlerTable[Any, Any] = HandlerTable("mappingproxy")
_SLOTS = ("__getitem__", "__len__", "__contains__", "__iter__", "__reversed__")
_METHODS = ("get", "keys", "values", "items", "copy")


@handlers.handles_each({getattr(types.MappingProxyType, name): name for name in (*_SLOTS, *_METHODS)})
def ask_mapping(t: Tracing, args: list[Any], kwargs: dict[str, Any], of: str) -> Any:
    find = _attributes.special if of in _SLOTS else _attributes.get_attribute
    given = [_unwrapped(arg) for arg in args[1:]]
    return after(find(t, args[0].mapping, of), lambda method: _call(t, of, method, given, kwargs))


def _call(t: Tracing, name: str, method: Any, args: list[Any], kwargs: dict[str, Any]) -> Any:
    if method is MISSING:
        raise t.unsupported("mapping-proxy", f"{name} of a mapping without it")
    return _calls.call(t, method, args, kwargs)


def _unwrapped(vt: Any) -> Any:
    return vt.mapping if isinstance(vt, k.ProxyTracker) else vt


@handlers.handles(types.MappingProxyType.__or__)
def merge(t: Tracing, args: list[Any], kwargs: dict[str, Any]) -> Any:
    return _operators.binary(t, "|", *map(_unwrapped, args))


@handlers.handles(types.MappingProxyType.__ror__)
def merge_reflected(t: Tracing, args: list[Any], kwargs: dict[str, Any]) -> Any:
    return merge(t, args[::-1], kwargs)


@handlers.handles(types.MappingProxyType)
def make(t: Tracing, args: list[Any], kwargs: dict[str, Any]) -> Any:
    mapping = args[0]
    if isinstance(mapping, k.SequenceTracker | k.ConstantTracker) or not defines(t, mapping.cls, "__getitem__"):
        raise t.unsupported("construction", f"a mappingproxy of a {mapping.cls.__name__}")
    return k.ProxyTracker(mapping)
