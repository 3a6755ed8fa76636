"""Functions about classes: `type`, `isinstance`, `issubclass`, `callable`, `super`."""

import abc
import functools
import weakref
from typing import Any

from stator_bytecode import NULL, OperationSteps, Result, operation
from stator_guards import CallSource, CapturedSource, Custom

from stator_variables._objects._list import ListTracker
from stator_variables._objects._lookup import defines, is_subtype, mro_of
from stator_variables._objects._method_table import as_constant
from stator_variables._objects._program_error import throw
from stator_variables._objects._super import SuperTracker
from stator_variables._protocols import _calls
from stator_variables._protocols._instances import (
    call_hook,
    call_hook_of,
    claimed_class,
    class_list,
    has_hook,
    has_instance_hook,
    is_abc_subclass,
    is_instance,
)
from stator_variables._space import Space
from stator_variables._tracker import Args, FunctionTable, Kwargs
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


@handlers.handles(abc._abc_instancecheck)  # type: ignore[attr-defined]
@operation
def abc_instance_check(t: Space, args: Args, kwargs: Kwargs) -> OperationSteps:
    """Implement `super().__instancecheck__` of a metaclass of abstract classes."""
    cls, vt = args
    claimed = yield from claimed_class(t, vt)
    return ConstantTracker(
        is_abc_subclass(t, claimed, cls.value) or is_abc_subclass(t, vt.cls, cls.value)
    )


@handlers.handles(type.__instancecheck__)
@operation
def type_instance_check(t: Space, args: Args, kwargs: Kwargs) -> OperationSteps:
    """Implement `super().__instancecheck__` of a metaclass of plain classes
    (`object_isinstance` in Objects/abstract.c)."""
    cls, vt = args
    mro_of(t, vt.cls)
    claimed = yield from claimed_class(t, vt)
    return ConstantTracker(issubclass(vt.cls, cls.value) or issubclass(claimed, cls.value))


@handlers.handles(issubclass)
def handle_issubclass(t: Space, args: Args, kwargs: Kwargs) -> Result:
    if args[0].base is not type:
        raise t.unsupported("bad-arguments", f"issubclass() of a {args[0].cls.__name__}")
    if has_instance_hook(t, args[1], "__subclasscheck__"):
        return as_constant(call_hook(t, args[1], "__subclasscheck__", args[0]))
    return as_constant(_is_subclass(t, args[0], class_list(t, args[1])))


@operation
def _is_subclass(t: Space, vt: Any, classes: list[type]) -> OperationSteps:
    mro_of(t, vt.value)
    for cls in classes:
        if not has_hook(t, cls, "__subclasscheck__"):
            if issubclass(vt.value, cls):
                return True
        elif (yield from call_hook_of(t, vt, cls, "__subclasscheck__")):
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
