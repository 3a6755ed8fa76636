"""`torch.nn.Module.__getattr__` in one step: half of all interpreted instructions were its own.

Only what it does with plain dicts is done here, by the same reads and so with the same guards; all else is interpreted.
"""

import types
from typing import Any

import torch
from stator_bytecode import HandlerTable

from stator_variables import _kinds as k
from stator_variables._model import _attributes, _dictionary
from stator_variables._model._lookup import plain_lookup
from stator_variables._tracing import Tracing
from stator_variables._tracker import MISSING

handlers: HandlerTable[Any, Any] = HandlerTable("module attribute")

_FUNCTION: Any = torch.nn.Module.__getattr__
_CODE = _FUNCTION.__code__
_TABLES = ("_parameters", "_buffers", "_modules")
_KNOWN = tuple(const for const in _CODE.co_consts if isinstance(const, str) and const.startswith("_")) == _TABLES
"""Whether this version of torch looks into the tables that are looked into here, in this order."""


@handlers.handles(_FUNCTION)
def module_getattr(t: Tracing, args: list[Any], kwargs: dict[str, Any]) -> Any:
    """MISSING: to be interpreted."""
    if len(args) != 2 or kwargs or not _KNOWN or _FUNCTION.__code__ is not _CODE:
        return MISSING
    module, name = args[0], args[1].constant()
    if type(name) is not str or isinstance(plain_lookup(module.cls, "__getattribute__"), types.FunctionType):
        return MISSING
    own = _attributes.generic_get(t, module, "__dict__")
    return _found_in(t, own, name) if own is module.namespace else MISSING


def _found_in(t: Tracing, own: Any, name: str) -> Any:
    """The first of the tables that has `name` gives it."""
    if not isinstance(own, k.DictTracker):
        return MISSING
    for table_name in _TABLES:
        table = _dictionary.get_name(t, own, table_name)
        if table is MISSING:
            continue
        if not isinstance(table, k.DictTracker) or table.cls is not dict:
            return MISSING
        found = _dictionary.get_name(t, table, name)
        if found is not MISSING:
            return found
    return MISSING
