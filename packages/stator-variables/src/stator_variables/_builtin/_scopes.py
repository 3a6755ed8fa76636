"""Handlers of what lists names: `locals`, `globals`, `vars`, `dir`, and `__dir__` of objects,
classes and modules."""

import sys
import types
from typing import Any

from stator_bytecode import NULL, Frame, OperationSteps, Result, after, operation, settle

from stator_variables._objects import _dict_entries, _new_values
from stator_variables._objects._cell import CellTracker
from stator_variables._objects._class_dicts import names_in, names_of_class
from stator_variables._objects._list import ListTracker
from stator_variables._objects._lookup import guarded_lookup
from stator_variables._objects._method_table import MethodTable
from stator_variables._objects._program_error import attempt
from stator_variables._objects._wrap import captured_dict, instance_dict
from stator_variables._protocols import _attributes
from stator_variables._space import Space
from stator_variables._tracker import MISSING, VariableTracker, is_a
from stator_variables._trackers import BuiltinTracker, ConstantTracker

methods = MethodTable("scope")


def _frame_of_caller(t: Space) -> Frame:
    """The frame of the program: app-level code has none natively."""
    found: Frame = next(frame for frame in reversed(t.machine.frames) if not frame.hidden)
    return found


@methods.handles(globals, takes=0)
def handle_globals(t: Space) -> Result:
    return _frame_of_caller(t).globals


# -- local names -----------------------------------------------------------------------------------
@methods.handles(locals, takes=0)
def handle_locals(t: Space) -> Result:
    frame = _frame_of_caller(t)
    if frame.names is not None:  # of a class body
        return frame.names
    bound = _bound_names(frame)
    return _new_values.new_dict(bound) if sys.version_info >= (3, 13) else _kept(t, frame, bound)


def _bound_names(frame: Frame) -> dict[str, Any]:
    values = (
        vt.content if is_a(vt, CellTracker) and _is_cell(frame, name) else vt
        for name, vt in zip(frame.code.slots, frame.slots, strict=True)
    )
    pairs = zip(frame.code.slots, values, strict=True)
    return {name: vt for name, vt in pairs if vt is not NULL}


def _is_cell(frame: Frame, name: str) -> bool:
    raw = frame.code.raw
    return name in raw.co_cellvars or name in raw.co_freevars


def _kept(t: Space, frame: Frame, bound: dict[str, Any]) -> Any:
    """The one dict of a frame, brought up to date by each call (`PyFrame_FastToLocals`)."""
    key = ("locals", id(frame))
    if key not in t.shared:
        t.shared[key] = frame, _new_values.new_dict({})
    names = t.shared[key][1]
    for name in frame.code.slots:
        if name in bound:
            _dict_entries.set_name(t, names, name, bound[name])
        else:
            _dict_entries.remove(t, names, name)
    return names


@methods.handles(vars, takes=(0, 1))
def handle_vars(t: Space, vt: VariableTracker | None = None) -> Result:
    if vt is None:
        return handle_locals(t)
    if vt.base is not type and vt.namespace is None:
        raise t.unsupported("vars", "vars() of something without a plain __dict__")
    return t.get_attribute(vt, "__dict__")


# -- names of objects ------------------------------------------------------------------------------
@methods.handles(dir, takes=(0, 1))
def handle_dir(t: Space, vt: VariableTracker | None = None) -> Result:
    """The names in order (`PyObject_Dir`)."""
    if vt is None:
        found = handle_locals(t)
    else:
        found = t.call_slot(vt, "__dir__", [], "'{}' object does not provide __dir__")
    return after(found, lambda names: t.call(BuiltinTracker(sorted), [names]))


@methods.handles(object.__dir__)
@operation
def names_of_object(t: Space, vt: VariableTracker) -> OperationSteps:
    read = _attributes.get_attribute
    own = yield from attempt(t, AttributeError, MISSING, read, t, vt, "__dict__")
    claims = guarded_lookup(t, vt.cls, "__class__") is not vars(object)["__class__"]
    if claims or (own is not MISSING and own.base is not dict):
        raise t.unsupported("vars", f"the names of a {vt.cls.__name__} without a plain __dict__")
    names = dict.fromkeys([] if own is MISSING else names_in(t, own))
    names |= names_of_class(t, vt.cls)
    return _listed(names)


@methods.handles(type.__dir__)
def names_of_type(t: Space, vt: Any) -> Result:
    return _listed(names_of_class(t, vt.value))


@methods.handles(types.ModuleType.__dir__, takes=0)
@operation
def names_of_module(t: Space, vt: VariableTracker) -> OperationSteps:
    namespace = instance_dict(vt.value) if is_a(vt, BuiltinTracker) else None
    own = guarded_lookup(t, vt.cls, "__dict__") is not vars(types.ModuleType)["__dict__"]
    if namespace is None or own:
        raise t.unsupported("vars", "the names of a module without a plain __dict__")
    names = captured_dict(t, namespace, f"{namespace.get('__name__', '?')}.__dict__")
    if (hook := t.lookup(names, "__dir__")) is not MISSING:
        return (yield from settle(t.call(hook, [])))
    return _listed(dict.fromkeys(names_in(t, names)))


def _listed(names: dict[Any, None]) -> ListTracker:
    return ListTracker([ConstantTracker(name) for name in names])
