"""Setting and deleting attributes: `PyObject_SetAttr`, `PyObject_GenericSetAttr` (Objects/object.c)
over trackers."""

import builtins
import contextlib
import sys
import threading
import types
from typing import Any, NoReturn

import torch
from stator_bytecode import NULL, Raised, Result
from stator_guards import AttrSource, Source

from stator_variables import _trackers as k
from stator_variables._objects import _classes, _dict_entries, _exceptions, _lookup
from stator_variables._objects._program_error import complain, throw
from stator_variables._protocols import _attributes, _c_fields
from stator_variables._runtime._contents import plain_lookup
from stator_variables._space import Space
from stator_variables._tensors import _tensor_attributes
from stator_variables._trace._overrides import Overrides
from stator_variables._tracker import DELETED, MISSING, VariableTracker, is_a


def set_attribute(t: Space, vt: VariableTracker, name: str, value: Any) -> object:
    """`value` MISSING deletes."""
    method = "__delattr__" if value is MISSING else "__setattr__"
    hook = _lookup.guarded_lookup(t, vt.cls, method)
    if _attributes.is_hook(hook, method) and vt.base is not torch.Tensor:
        given = [k.ConstantTracker(name), *([] if value is MISSING else [value])]
        return t.call(t.special(vt, method), given)
    return generic_set(t, vt, name, value)


def generic_set(t: Space, vt: Any, name: str, value: Any) -> Any:
    """`object.__setattr__`; `value` MISSING deletes."""
    _attributes.refuse_proxy(t, vt, name)
    if vt.base is torch.Tensor:
        if t.state(Overrides).modes and hasattr(torch.Tensor, name):
            raise t.unsupported(
                "mode-value", f"setting {name} of a tensor under a mode for functions of torch"
            )
        return _tensor_attributes.write(t, vt, name, value)
    if name == "__dict__" and issubclass(vt.cls, threading.local):  # local_setattro
        complain(t, AttributeError, "'", vt.cls, "' object attribute '__dict__' is read-only")
    if vt.base is type and not _is_python_descriptor(_lookup.guarded_lookup(t, vt.cls, name)):
        return _classes.set_attribute(t, vt, name, value)

    _refuse_write(t, vt, name)
    if (
        vt.base is types.FunctionType
        and vt.source is None
        and value is not MISSING
        and name in k.WRITTEN_FIELDS
        and issubclass(value.cls, k.WRITTEN_FIELDS[name])
    ):
        return t.write(vt, fields=_with_field(vt.fields, name, value))

    raw, source = _lookup.type_lookup(t, vt.cls, name)
    if source is not None and _lookup.is_data_descriptor(t, raw):
        return _set_through(t, raw, source, vt, name, value)
    if vt.base is types.FunctionType and name in _attributes.FUNCTION_FIELDS:
        raise t.unsupported("function-attribute-write", f"setting {name} of a function")

    if vt.namespace is None:
        _complain_of_no_dict(t, vt, name, in_class=source is not None)
    if value is MISSING:
        if _dict_entries.remove(t, vt.namespace, name) is MISSING:
            complain(t, AttributeError, "'", vt.cls, f"' object has no attribute '{name}'")
        return None
    _dict_entries.set_name(t, vt.namespace, name, value)
    return None


_RESET = {"__annotations__": "__annotate__", "__annotate__": "__annotations__"}
"""Attributes of a function, each of which is forgotten when the other one is set (3.14)."""


def _with_field(fields: dict[str, Any], name: str, value: VariableTracker) -> dict[str, Any]:
    """Return the fields of a new function, one of which is set."""
    reset = None if name == "__annotate__" and k.is_none(value) else _RESET.get(name)
    others = {other: kept for other, kept in fields.items() if other not in (name, reset)}
    return {**others, name: value}


def _refuse_write(t: Space, vt: VariableTracker, name: str) -> None:
    """Refuse to set attributes of builtins and of classes' metatype, which tracing itself uses."""
    if vt.real is builtins and name not in REPLACEABLE:
        raise t.unsupported(
            "replaced-builtin", f"setting builtins.{name}, which tracing itself calls"
        )

    if vt.base is type or is_a(vt, k.BuiltinTracker):
        raise t.unsupported(
            "global-attribute-write",
            f"setting {name} on {vt.describe()}",
            "set it outside the region",
        )


def _complain_of_no_dict(t: Space, vt: VariableTracker, name: str, *, in_class: bool) -> NoReturn:
    """Raise what `object.__setattr__` raises for an instance without a dict."""
    if in_class:
        complain(t, AttributeError, "'", vt.cls, f"' object attribute '{name}' is read-only")

    generic = all(
        _lookup.guarded_lookup(t, vt.cls, method) is of_object
        for method, of_object in _GENERIC.items()
    )
    hint = _NO_DICT if generic else ""
    complain(t, AttributeError, "'", vt.cls, f"' object has no attribute '{name}'{hint}")


_GENERIC = {"__setattr__": object.__setattr__, "__delattr__": object.__delattr__}
_NO_DICT = " and no __dict__ for setting new attributes" if sys.version_info >= (3, 13) else ""

REPLACEABLE = frozenset("open print input breakpoint exit quit help __import__".split())
"""Builtins without which code of ours can be run; programs replace them."""


def _is_python_descriptor(raw: Any) -> bool:
    return isinstance(raw, property) or isinstance(
        plain_lookup(type(raw), "__set__"), types.FunctionType
    )


def _set_through(
    t: Space, raw: Any, source: Source, vt: VariableTracker, name: str, value: Any
) -> Result:
    field, method, args = ("fset", "__set__", [vt, value])
    if value is MISSING:
        field, method, args = ("fdel", "__delete__", [vt])
    if _lookup.overrides(t, type(raw), method):
        return _attributes.call_raw(t, t.wrap(raw, source), method, args)
    kind = _attributes.descriptor_kind(t, raw)
    if kind is property:
        if (function := getattr(raw, field)) is None:
            _attributes.refuse_access(t, raw, source, getattr(property, method), vt, *args[1:])
        return t.call(t.wrap(function, AttrSource(source, field)), args)
    # C's may be read-only
    is_slot = kind is types.MemberDescriptorType and "__slots__" in vars(raw.__objclass__)
    if is_slot and getattr(vt, "members", None) is not None:
        return _set_member(t, raw, vt, name, value)
    if kind is types.GetSetDescriptorType and name in ("__cause__", "__context__", "__traceback__"):
        return _set_exception_field(t, vt, name, value)
    if name == "__dict__" and _may_be_namespace(vt, value):
        return _set_namespace(t, vt, value)
    if vt.cls is types.CellType and name == "cell_contents":
        return t.write(vt, content=NULL if value is MISSING else value)
    raise t.unsupported("c-attribute-write", f"setting {name} of {vt.cls.__qualname__}")


def _may_be_namespace(vt: VariableTracker, value: Any) -> bool:
    """Return True for a new object that gets a new dict of names, which nothing else is the
    `__dict__` of."""
    if not hasattr(vt, "members") or vt.source is not None or vt.namespace is None:
        return False
    if value is MISSING or value.source is not None or value.cls is not dict:
        return False
    return value.owner is None and all(type(hashed) is str for hashed in value.entries)


def _set_namespace(t: Space, vt: VariableTracker, value: VariableTracker) -> None:
    t.journal.assign(vt.namespace, owner=None)  # a dict like any other from here on
    t.journal.assign(value, owner=vt)
    t.journal.assign(vt, namespace=value)


def _set_member(t: Space, raw: object, vt: Any, name: str, value: Any) -> None:
    before = vt.members.get(raw, MISSING)
    if value is MISSING and (
        before is DELETED or (before is MISSING and not _has_member(t, raw, vt, name))
    ):
        throw(AttributeError, name)
    if before is MISSING and vt.real is not MISSING:
        t.lifetimes.note_release_unread(_in_slot, vt, raw)
    t.write(vt, members={**vt.members, raw: DELETED if value is MISSING else value})


def _in_slot(real: object, slot: Any) -> Any:
    """None also where it is empty."""
    with contextlib.suppress(AttributeError):
        return slot.__get__(real)


def _has_member(t: Space, raw: object, vt: VariableTracker, name: str) -> bool:
    """Return True if a slot of an existing object, not accessed yet, is filled."""
    if vt.real is MISSING:
        return False
    try:
        _c_fields.read_existing_field(t, raw, vt, name)
    except Raised:
        return False
    return True


def _set_exception_field(t: Space, vt: VariableTracker, name: str, value: VariableTracker) -> None:
    if name == "__traceback__":
        _exceptions.set_traceback(t, vt, value)
        return
    is_exception = value is not MISSING and issubclass(value.cls, BaseException | types.NoneType)
    if vt.source is not None or not is_exception:
        raise t.unsupported("exception-attribute-write", f"setting {name} of an exception")
    field = {name.strip("_"): None if k.is_none(value) else value}
    t.journal.assign(vt, **field)
    if name == "__cause__":
        t.journal.assign(vt, suppress_context=True)
