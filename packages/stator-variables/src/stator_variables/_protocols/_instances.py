"""Handlers of functions about classes: `type`, `isinstance`, `issubclass`, `callable`, `super`."""

import abc
import functools
import types
import weakref
from collections.abc import Callable
from typing import Any

import torch
from stator_bytecode import NULL, OperationSteps, Result, after, operation, settle
from stator_guards import CallSource, CapturedSource, Custom, Truth
from torch.nn import Parameter

from stator_variables._objects._list import ListTracker
from stator_variables._objects._lookup import defines, guarded_lookup, is_subtype, mro_of, overrides
from stator_variables._objects._method_table import as_constant
from stator_variables._objects._program_error import attempt, throw
from stator_variables._objects._super import SuperTracker
from stator_variables._protocols import _attributes, _calls
from stator_variables._space import Space
from stator_variables._tensors import _tensor_attributes
from stator_variables._tracker import MISSING, Args, FunctionTable, Kwargs, VariableTracker
from stator_variables._trackers import NONE, ClassTracker, ConstantTracker

handlers = FunctionTable("builtin")


@handlers.handles(type)
def type_of(t: Space, args: Args, kwargs: Kwargs) -> Result:
    if len(args) == 3:
        return _calls.instantiate(t, ClassTracker(type), list(args), kwargs)
    if len(args) != 1 or kwargs:
        raise t.unsupported("bad-arguments", "type() of two arguments")
    return t.class_of(args[0])


@handlers.handles(isinstance)
def handle_isinstance(t: Space, args: Args, kwargs: Kwargs) -> Result:
    return as_constant(is_instance(t, *args))


def is_instance(t: Space, vt: VariableTracker, classes: VariableTracker) -> Result:
    """A Python bool, or a suspended Result that ends in one."""
    if _has_instance_hook(t, classes, "__instancecheck__"):
        return _call_hook(t, classes, "__instancecheck__", vt)
    found = class_list(t, classes)
    checks = [_has_hook(t, cls, "__instancecheck__") for cls in found]
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


def _claimed(t: Space, vt: VariableTracker) -> OperationSteps:
    if not _claims_a_class(t, vt):
        return vt.cls
    found = yield from attempt(t, AttributeError, MISSING, t.get_attribute, vt, "__class__")
    return found.value if found is not MISSING and found.base is type else vt.cls


def _has_instance_hook(t: Space, vt: VariableTracker, name: str) -> bool:
    """Return True for an object that is no class, and overrides checks of instances (an alias of
    `typing`)."""
    return vt.base is not type and overrides(t, vt.cls, name)


def _call_hook(t: Space, subject: VariableTracker, name: str, about: VariableTracker) -> Result:
    result = t.call(t.special(subject, name), [about])
    return after(result, t.truth)


def _has_hook(t: Space, cls: type, name: str) -> bool:
    return any(cls is found for found in _TENSOR_TYPES) or overrides(t, type(cls), name)


@operation
def _is_instance_hooked(t: Space, vt: VariableTracker, classes: list[type]) -> OperationSteps:
    for cls in classes:
        if vt.cls is cls:
            return True
        if not _has_hook(t, cls, "__instancecheck__"):
            if issubclass(vt.cls, cls) or issubclass((yield from _claimed(t, vt)), cls):
                return True
        elif (yield from _call_hook_of(t, vt, cls, "__instancecheck__")):
            return True
    return False


def _call_hook_of(t: Space, vt: Any, cls: type, name: str) -> OperationSteps:
    if (known := _KNOWN_CHECKS.get(id(cls))) is not None:
        return known(t, vt)
    if guarded_lookup(t, type(cls), name) is getattr(abc.ABCMeta, name):
        if name == "__subclasscheck__":
            return _is_abc_subclass(t, vt.value, cls)
        return _is_abc_subclass(t, (yield from _claimed(t, vt)), cls) or _is_abc_subclass(
            t, vt.cls, cls
        )
    return (yield from settle(_call_hook(t, ClassTracker(cls), name, vt)))


def _is_abc_subclass(t: Space, cls: type, base: type) -> bool:
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
            classes = (
                CapturedSource(known.__qualname__, known),
                CapturedSource(base.__qualname__, base),
            )
            t.guard(CallSource(issubclass, *classes), Truth(issubclass(known, base)))
    return found


@handlers.handles(abc._abc_instancecheck)  # type: ignore[attr-defined]
@operation
def abc_instance_check(t: Space, args: Args, kwargs: Kwargs) -> OperationSteps:
    """Implement `super().__instancecheck__` of a metaclass of abstract classes."""
    cls, vt = args
    claimed = yield from _claimed(t, vt)
    return ConstantTracker(
        _is_abc_subclass(t, claimed, cls.value) or _is_abc_subclass(t, vt.cls, cls.value)
    )


@handlers.handles(type.__instancecheck__)
@operation
def type_instance_check(t: Space, args: Args, kwargs: Kwargs) -> OperationSteps:
    """Implement `super().__instancecheck__` of a metaclass of plain classes
    (`object_isinstance` in Objects/abstract.c)."""
    cls, vt = args
    mro_of(t, vt.cls)
    is_one = issubclass(vt.cls, cls.value) or issubclass((yield from _claimed(t, vt)), cls.value)
    return ConstantTracker(is_one)


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


@handlers.handles(issubclass)
def handle_issubclass(t: Space, args: Args, kwargs: Kwargs) -> Result:
    if args[0].base is not type:
        raise t.unsupported("bad-arguments", f"issubclass() of a {args[0].cls.__name__}")
    if _has_instance_hook(t, args[1], "__subclasscheck__"):
        return as_constant(_call_hook(t, args[1], "__subclasscheck__", args[0]))
    return as_constant(_is_subclass(t, args[0], class_list(t, args[1])))


@operation
def _is_subclass(t: Space, vt: Any, classes: list[type]) -> OperationSteps:
    mro_of(t, vt.value)
    for cls in classes:
        if not _has_hook(t, cls, "__subclasscheck__"):
            if issubclass(vt.value, cls):
                return True
        elif (yield from _call_hook_of(t, vt, cls, "__subclasscheck__")):
            return True
    return False


@handlers.handles(type.__subclasses__)
def subclasses(t: Space, args: Args, kwargs: Kwargs) -> Result:
    cls = args[0].value
    if t.heap.made:  # what represents a class made here is a subclass, too, while tracing
        raise t.unsupported(
            "class-definition", "the subclasses of a class, some of which were made here"
        )
    found = type.__subclasses__(cls)
    known = [weakref.ref(sub) for sub in found]
    source = CallSource(type.__subclasses__, CapturedSource(cls.__qualname__, cls))
    t.guard(source, Custom("{fn}({value})", functools.partial(_are_these, known), f"{found!r}"))
    return ListTracker([ClassTracker(sub) for sub in found])


def _are_these(known: list[Any], classes: list[type]) -> bool:
    return len(known) == len(classes) and all(
        ref() is cls for ref, cls in zip(known, classes, strict=True)
    )


@handlers.handles(callable)
def handle_callable(t: Space, args: Args, kwargs: Kwargs) -> ConstantTracker:
    return ConstantTracker(defines(t, args[0].cls, "__call__"))


@handlers.handles(super)
def make_super(t: Space, args: Args, kwargs: Kwargs) -> SuperTracker:
    if args:
        return _super(t, *args, *[NONE] * (2 - len(args)))
    frame = t.frame
    assert frame is not None
    if not (raw := frame.code.raw).co_argcount:  # not left to a stub, which takes arguments
        throw(RuntimeError, "super(): no arguments")
    if "__class__" not in frame.code.slots:
        throw(RuntimeError, "super(): __class__ cell not found")
    first, cell = frame.slots[0], frame.slots[frame.code.slots.index("__class__")]
    receiver = (
        first.content if raw.co_varnames[:1] in [(name,) for name in raw.co_cellvars] else first
    )
    if receiver is NULL or cell is NULL or cell.content is NULL:
        raise t.unsupported("bad-arguments", "super() without an argument, or without a class")
    return _super(t, cell.content, receiver)


def _super(t: Space, start: Any, receiver: Any) -> SuperTracker:
    """Make a `super`, where `supercheck` allows it; its errors are C's own."""
    below = (receiver.cls, *([receiver.value] if receiver.base is type else []))
    if start.base is not type or not any(is_subtype(cls, start.value) for cls in below):
        raise t.unsupported(
            "bad-arguments", "super() of an object that is no instance of the class"
        )
    return SuperTracker(start, receiver)
