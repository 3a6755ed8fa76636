"""mappingproxy: a read-only view of a dict, answered by the dict's own methods."""

from __future__ import annotations

import types
from typing import Any

from stator_bytecode import HandlerTable

from stator_variables import _kinds as k
from stator_variables._model import _calls
from stator_variables._tracing import Tracing

handlers: HandlerTable[Any, Any] = HandlerTable("mappingproxy")
_SHARED = ("__getitem__", "__len__", "__contains__", "__iter__", "get", "keys", "values", "items", "copy", "__or__")


def _as_dict_method(name: str) -> None:
    @handlers.handles(getattr(types.MappingProxyType, name))
    def run(t: Tracing, args: list[Any], kwargs: dict[str, Any]) -> Any:
        return _calls.call(t, k.BuiltinTracker(getattr(dict, name)), [args[0].mapping, *args[1:]], kwargs)


for _name in _SHARED:
    _as_dict_method(_name)


@handlers.handles(types.MappingProxyType)
def make(t: Tracing, args: list[Any], kwargs: dict[str, Any]) -> Any:
    if not isinstance(args[0], k.DictTracker):
        raise t.unsupported("construction", f"a mappingproxy of a {args[0].cls.__name__}")
    return k.ProxyTracker(args[0])
