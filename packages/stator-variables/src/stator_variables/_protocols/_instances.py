"""Tests of classes and instances, by `__instancecheck__` and `__subclasscheck__`."""

import abc
import types
from collections.abc import Callable
from typing import Any

import torch
from stator_bytecode import OperationSteps, Result, after, operation, settle
from stator_guards import CallSource, CapturedSource, Truth
from torch.nn import Parameter

from stator_variables._objects._lookup import guarded_lookup, mro_of, overrides
from stator_variables._objects._program_error import attempt
from stator_variables._protocols import _attributes
from stator_variables._space import Space
from stator_variables._tensors import _tensor_attributes
from stator_variables._tracker import MISSING, VariableTracker
from stator_variables._trackers import ClassTracker


def is_instance(t: Space, vt: VariableTracker, classes: VariableTracker) -> Result:
    """A Python bool, or a suspended Result that ends in one."""
    if has_instance_hook(t, classes, "__instancecheck__"):
        return call_hook(t, classes, "__instancecheck__", vt)
    found = class_list(t, classes)
    checks = [has_hook(t, cls, "__instancecheck__") for cls in found]
    mro_of(t, vt.cls)
    if not any(checks) and not _claims_a_class(t, vt):
        return issubclass(vt.cls, tuple(found))
    return _is_instance_hooked(t, vt, found)


def _claims_a_class(t: Space, vt: VariableTracker) -> bool:
    """Return True if `vt.__class__` may be another than `type(vt)`."""
    if vt.base in (torch.Tensor, type):
        return False
    own = overrides(t, vt.cls, "__getattribute__") or _attributes.is_proxy(vt)
    return own or guarded_lookup(t, vt.cls, "__class__") is not vars(object)["__class__"]


def claimed_class(t: Space, vt: VariableTracker) -> OperationSteps:
    if not _claims_a_class(t, vt):
        return vt.cls
    found = yield from attempt(t, AttributeError, MISSING, t.get_attribute, vt, "__class__")
    return found.value if found is not MISSING and found.base is type else vt.cls


def has_instance_hook(t: Space, vt: VariableTracker, name: str) -> bool:
    """Return True for an object that is no class, and overrides checks of instances (an alias of
    `typing`)."""
    return vt.base is not type and overrides(t, vt.cls, name)


def call_hook(t: Space, subject: VariableTracker, name: str, about: VariableTracker) -> Result:
    result = t.call(t.special(subject, name), [about])
    return after(result, t.truth)


def has_hook(t: Space, cls: type, name: str) -> bool:
    return any(cls is found for found in _TENSOR_TYPES) or overrides(t, type(cls), name)


@operation
def _is_instance_hooked(t: Space, vt: VariableTracker, classes: list[type]) -> OperationSteps:
    for cls in classes:
        if vt.cls is cls:
            return True
        if not has_hook(t, cls, "__instancecheck__"):
            if issubclass(vt.cls, cls) or issubclass((yield from claimed_class(t, vt)), cls):
                return True
        elif (yield from call_hook_of(t, vt, cls, "__instancecheck__")):
            return True
    return False


def call_hook_of(t: Space, vt: Any, cls: type, name: str) -> OperationSteps:
    if (known := _KNOWN_CHECKS.get(id(cls))) is not None:
        return known(t, vt)
    if guarded_lookup(t, type(cls), name) is getattr(abc.ABCMeta, name):
        if name == "__subclasscheck__":
            return is_abc_subclass(t, vt.value, cls)
        return is_abc_subclass(t, (yield from claimed_class(t, vt)), cls) or is_abc_subclass(
            t, vt.cls, cls
        )
    return (yield from settle(call_hook(t, ClassTracker(cls), name, vt)))


def is_abc_subclass(t: Space, cls: type, base: type) -> bool:
    """Return the check of an abstract base class, with which other classes can be registered at any
    time."""
    try:
        found = issubclass(cls, base)
    except Exception as error:  # raised by a `__subclasshook__` of the program
        raise t.unsupported(
            "builtin", f"issubclass() with {base.__qualname__}, which raises {error!r}"
        ) from None
    if id(base) in t.heap.made:
        if id(cls) not in t.heap.made and "_is_protocol" in vars(base):
            raise t.unsupported(
                "class-definition", f"whether a {cls.__qualname__} fits a protocol made here"
            )
        return found

    for known in (cls,) if id(cls) not in t.heap.made else cls.__mro__:
        if id(known) not in t.heap.made:
            derived = CapturedSource(known.__qualname__, known)
            abstract = CapturedSource(base.__qualname__, base)
            is_derived = CallSource(issubclass, derived, abstract)
            t.guard(is_derived, Truth(issubclass(known, base)))
    return found


def _is_tensor_of(cls: Any) -> Callable[[Space, Any], bool]:
    """Return a check of dtype, layout and device, which inputs are guarded on; the fake tensor
    itself is of no such type."""
    wanted = (cls.dtype, cls.layout, "cuda" if cls.is_cuda else "cpu")

    def check(t: Space, vt: Any) -> bool:
        found = vt.example if vt.base is torch.Tensor else None
        return found is not None and (found.dtype, found.layout, found.device.type) == wanted

    return check


def _is_marked(cls: type, mark: str) -> Callable[[Space, Any], bool]:
    """Return a check that accepts a tensor of another class with a mark, an attribute that is
    set."""

    def check(t: Space, vt: VariableTracker) -> bool:
        if issubclass(vt.cls, cls) or not issubclass(vt.cls, torch.Tensor):
            return issubclass(vt.cls, cls)
        marked = _tensor_attributes.own(t, vt, mark)
        return marked is not MISSING and bool(marked.constant())

    return check


_TENSOR_TYPES = [
    found for found in [*vars(torch).values()] if type(found) is type(torch.FloatTensor)
]
"""`torch.FloatTensor` and its kin, whose metaclass checks dtype and device."""

_KNOWN_CHECKS: dict[int, Callable[[Space, Any], bool]] = {
    id(Parameter): _is_marked(Parameter, "_is_param"),
    id(torch.nn.Buffer): _is_marked(torch.nn.Buffer, "_is_buffer"),
    **{id(cls): _is_tensor_of(cls) for cls in _TENSOR_TYPES},
}
"""The builders by identity: a metaclass may define how its classes compare and hash. The checks by
identity: a metaclass may define how its classes compare and hash."""


def class_list(t: Space, classes: Any) -> list[type]:
    """The classes named by the second argument of isinstance: a class, a union, or nested tuples of
    them."""
    if classes.base is type:
        return [classes.value]
    if classes.base is tuple:
        return [cls for item in classes.items for cls in class_list(t, item)]
    parts = classes.real.__args__ if isinstance(classes.real, types.UnionType) else ()
    # the `__class__` of an alias is `type`
    if parts and all(issubclass(type(part), type) for part in parts):
        return list(parts)
    raise t.unsupported("bad-arguments", f"isinstance() with a {classes.cls.__name__}")
