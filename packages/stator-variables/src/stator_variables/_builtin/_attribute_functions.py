"""Handlers of what reads and writes attributes by name: `getattr`, `setattr`, `vars`, and the
methods of object."""

import types
from typing import Any

from stator_bytecode import OperationSteps, Result, operation, settle

from stator_variables import _trackers as k
from stator_variables._objects._arity import ANY_COUNT
from stator_variables._objects._method_table import MethodTable, then
from stator_variables._objects._program_error import absent, attempt, complain, throw
from stator_variables._protocols import _attribute_writes, _attributes, _calls
from stator_variables._runtime._contents import plain_lookup
from stator_variables._space import Space
from stator_variables._tracker import MISSING, VariableTracker

methods = MethodTable("builtin")


def _name(t: Space, vt: VariableTracker) -> str:
    if not isinstance(name := vt.constant(), str):
        if issubclass(vt.cls, str):
            raise t.unsupported(
                "bad-arguments", f"an object of class {vt.cls.__name__} as the name of an attribute"
            )
        complain(t, TypeError, "attribute name must be string, not '", vt.cls, "'")
    return name


@methods.handles(getattr, takes=(2, 3))
def handle_getattr(
    t: Space, vt: VariableTracker, name: VariableTracker, default: VariableTracker | None = None
) -> Result:
    if default is None:
        return t.get_attribute(vt, _name(t, name))
    return _getattr_default(t, vt, _name(t, name), default)


@operation
def _getattr_default(t: Space, vt: VariableTracker, name: str, default: Any) -> OperationSteps:
    return (yield from attempt(t, AttributeError, default, t.get_attribute, vt, name))


@methods.handles(hasattr)
@operation
def handle_hasattr(t: Space, vt: VariableTracker, name: VariableTracker) -> OperationSteps:
    found = yield from settle(_getattr_default(t, vt, _name(t, name), MISSING))
    return k.ConstantTracker(found is not MISSING)


@methods.handles(setattr, delattr)
def write(t: Space, vt: VariableTracker, name: VariableTracker, new: Any = MISSING) -> Any:
    return then(_attribute_writes.set_attribute(t, vt, _name(t, name), new))


@methods.handles(object.__getattribute__, type.__getattribute__, types.ModuleType.__getattribute__)
def own_attribute(t: Space, vt: VariableTracker, name: VariableTracker) -> Result:
    text = _name(t, name)
    if (found := _attributes.own_attribute(t, vt, text)) is MISSING:
        absent(t, vt, text)
    return found


@methods.handles(object.__setattr__, object.__delattr__)
def write_to_object(
    t: Space, vt: VariableTracker, name: VariableTracker, new: Any = MISSING
) -> Any:
    text = _name(t, name)
    if vt.base is type:
        raise t.unsupported("bad-arguments", "object's way to set attributes, of a class")
    return then(_attribute_writes.generic_set(t, vt, text, new))


@methods.handles(type.__setattr__, type.__delattr__)
def write_to_class(
    t: Space, vt: VariableTracker, name: VariableTracker, new: VariableTracker = MISSING
) -> Any:
    return then(_attribute_writes.generic_set(t, vt, _name(t, name), new))


# Py_TPFLAGS_DISALLOW_INSTANTIATION: such a class has no `tp_new`, `object`'s neither
_NO_INSTANCES = 1 << 7


@methods.handles(object.__new__, takes=(1, ANY_COUNT), named=None)
def object_new(t: Space, made_of: Any, /, *args: VariableTracker, **kwargs: VariableTracker) -> Any:
    """Make an object. Arguments besides the class may be those of another `__init__`
    (object_new)."""
    if made_of.base is not type:
        raise t.unsupported("bad-arguments", "object.__new__ of something that is no class")
    cls = made_of.value
    if args or kwargs:
        if plain_lookup(cls, "__new__") is not object.__new__:
            throw(
                TypeError, "object.__new__() takes exactly one argument (the type to instantiate)"
            )
        if plain_lookup(cls, "__init__") is object.__init__:
            complain(t, TypeError, cls, "() takes no arguments")
    return _calls.allocate(t, made_of, object.__new__, [], {})


@methods.handles(object.__init__, takes=(0, ANY_COUNT), named=None)
def object_init(
    t: Space, vt: VariableTracker, /, *args: VariableTracker, **kwargs: VariableTracker
) -> None:
    """Check the arguments. Those besides the instance may be those of another `__new__`
    (object_init)."""
    if args or kwargs:
        cls = vt.cls
        if plain_lookup(cls, "__init__") is not object.__init__:
            throw(
                TypeError,
                "object.__init__() takes exactly one argument (the instance to initialize)",
            )
        if plain_lookup(cls, "__new__") is object.__new__ and not cls.__flags__ & _NO_INSTANCES:
            complain(
                t,
                TypeError,
                cls,
                ".__init__() takes exactly one argument (the instance to initialize)",
            )


@methods.handles(object.__init_subclass__, vars(object)["__init_subclass__"], takes=(0, 1))
def init_subclass(t: Space, *cls: VariableTracker) -> k.ConstantTracker:
    return k.NONE
