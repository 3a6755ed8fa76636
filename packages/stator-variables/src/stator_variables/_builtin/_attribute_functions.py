"""Handlers of what reads and writes attributes by name: `getattr`, `setattr`, `vars`, and the methods of object."""

from __future__ import annotations

import types
from typing import Any

from stator_bytecode import HandlerTable, Raised, operation, settle

from stator_variables import _kinds as k
from stator_variables._builtin._results import then
from stator_variables._model import _attributes, _calls
from stator_variables._model._lookup import plain_lookup
from stator_variables._model._raising import absent, throw, type_name
from stator_variables._tracing import Tracing
from stator_variables._tracker import MISSING

Args = list[Any]
Kwargs = dict[str, Any]
handlers: HandlerTable[Any, Any] = HandlerTable("builtin")


def _name(vt: Any, function: str) -> str:
    name = vt.constant()
    if not isinstance(name, str):
        throw(TypeError, f"attribute name must be string, not '{vt.cls.__name__}'")
    return name


@handlers.handles(getattr)
def handle_getattr(t: Tracing, args: Args, kwargs: Kwargs) -> Any:
    name = _name(args[1], "getattr")
    if len(args) == 2:
        return _attributes.get_attribute(t, args[0], name)
    return _getattr_default(t, args[0], name, args[2])


@operation
def _getattr_default(t: Tracing, vt: Any, name: str, default: Any) -> Any:
    try:
        return (yield from settle(_attributes.get_attribute(t, vt, name)))
    except Raised as raised:
        if not issubclass(raised.value.cls, AttributeError):
            raise
        return default


@handlers.handles(hasattr)
def handle_hasattr(t: Tracing, args: Args, kwargs: Kwargs) -> Any:
    return _hasattr(t, args[0], _name(args[1], "hasattr"))


@operation
def _hasattr(t: Tracing, vt: Any, name: str) -> Any:
    found = yield from settle(_getattr_default(t, vt, name, MISSING))
    return k.ConstantTracker(found is not MISSING)


@handlers.handles(setattr)
def handle_setattr(t: Tracing, args: Args, kwargs: Kwargs) -> Any:
    return then(_attributes.set_attribute(t, args[0], _name(args[1], "setattr"), args[2]))


@handlers.handles(delattr)
def handle_delattr(t: Tracing, args: Args, kwargs: Kwargs) -> Any:
    return then(_attributes.delete_attribute(t, args[0], _name(args[1], "delattr")))


@handlers.handles(object.__getattribute__, type.__getattribute__, types.ModuleType.__getattribute__)
def own_attribute(t: Tracing, args: Args, kwargs: Kwargs) -> Any:
    name = _name(args[1], "__getattribute__")
    found = _attributes.own_attribute(t, args[0], name)
    if found is MISSING:
        absent(args[0], name)
    return found


@handlers.handles(object.__setattr__)
def object_setattr(t: Tracing, args: Args, kwargs: Kwargs) -> Any:
    _refuse_class(t, args[0])
    return then(_attributes.generic_set(t, args[0], _name(args[1], "__setattr__"), args[2]))


@handlers.handles(object.__delattr__)
def object_delattr(t: Tracing, args: Args, kwargs: Kwargs) -> Any:
    _refuse_class(t, args[0])
    return then(_attributes.generic_set(t, args[0], _name(args[1], "__delattr__"), MISSING))


def _refuse_class(t: Tracing, vt: Any) -> None:
    if isinstance(vt, k.ClassTracker):
        raise t.unsupported("bad-arguments", "object's way to set attributes, of a class")


@handlers.handles(vars)
def handle_vars(t: Tracing, args: Args, kwargs: Kwargs) -> Any:
    if args and isinstance(args[0], k.ClassTracker):
        return _attributes.get_attribute(t, args[0], "__dict__")
    if not args or args[0].namespace is None:
        raise t.unsupported("vars", "vars() of something without a plain __dict__")
    return args[0].namespace


@handlers.handles(object.__new__)
def object_new(t: Tracing, args: Args, kwargs: Kwargs) -> Any:
    """What it takes besides the class, another `__init__` may want (object_new)."""
    if not args or not isinstance(args[0], k.ClassTracker):
        raise t.unsupported("bad-arguments", "object.__new__ of something that is no class")
    cls = args[0].value
    if len(args) > 1 or kwargs:
        if plain_lookup(cls, "__new__") is not object.__new__:
            throw(TypeError, "object.__new__() takes exactly one argument (the type to instantiate)")
        if plain_lookup(cls, "__init__") is object.__init__:
            throw(TypeError, f"{type_name(cls)}() takes no arguments")
    return _calls.allocate(t, args[0], object.__new__, [], {})


@handlers.handles(object.__init__)
def object_init(t: Tracing, args: Args, kwargs: Kwargs) -> Any:
    """What it takes besides the instance, another `__new__` may have wanted (object_init)."""
    if len(args) > 1 or kwargs:
        cls = args[0].cls
        if plain_lookup(cls, "__init__") is not object.__init__:
            throw(TypeError, "object.__init__() takes exactly one argument (the instance to initialize)")
        if plain_lookup(cls, "__new__") is object.__new__:
            throw(TypeError, f"{type_name(cls)}.__init__() takes exactly one argument (the instance to initialize)")
    return k.NONE


@handlers.handles(object.__init_subclass__, vars(object)["__init_subclass__"])
def init_subclass(t: Tracing, args: Args, kwargs: Kwargs) -> Any:
    return k.NONE
