"""What binds and refers, called by name: `__get__`, `type.__call__`, methods compared, unions, context variables."""

import contextvars
import operator
import types
from typing import Any

from stator_bytecode import HandlerTable
from stator_guards import CallSource, CapturedSource

from stator_variables import _kinds as k
from stator_variables._build import wrap
from stator_variables._builtin._arity import Args, Kwargs
from stator_variables._model import _attributes, _calls, _operators
from stator_variables._tracing import Tracing
from stator_variables._tracker import MISSING

handlers: HandlerTable[Any, Any] = HandlerTable("binding")
_BOUND = {
    types.FunctionType: types.MethodType,
    types.WrapperDescriptorType: types.MethodWrapperType,
    types.MethodDescriptorType: types.BuiltinFunctionType,
}
"""The class of a descriptor, and that of what its `__get__` gives for an instance."""


@handlers.handles(*(vars(cls)["__get__"] for cls in _BOUND))
def bind(t: Tracing, args: Args, kwargs: Kwargs) -> Any:
    if kwargs or not 2 <= len(args) <= 3 or (k.is_none(args[1]) and (len(args) < 3 or k.is_none(args[2]))):
        raise t.unsupported("bad-arguments", "a call of __get__ that it does not accept")
    function, receiver = args[:2]
    if not (k.is_none(receiver) or _attributes.fits(function.real, receiver)):
        raise t.unsupported("bad-arguments", "binding a descriptor of C to an instance of another class")
    return function if k.is_none(receiver) else k.MethodTracker(function, receiver, _BOUND[function.cls])


@handlers.handles(type.__call__)
def call_class(t: Tracing, args: Args, kwargs: Kwargs) -> Any:
    """What a metaclass reaches with `super().__call__`."""
    cls, *rest = args
    if not isinstance(cls, k.ClassTracker) or cls.value is type:
        raise t.unsupported("bad-arguments", "a call of type.__call__ that it does not accept")
    return _calls.instantiate(t, cls, rest, kwargs)


_UNIONS = (vars(cls)[name] for cls in (type, types.UnionType) for name in ("__or__", "__ror__"))


@handlers.handles_each(_UNIONS)
def union(t: Tracing, args: Args, kwargs: Kwargs, of: Any) -> Any:
    """`int | None`."""
    args = args if of.__name__ == "__or__" else args[::-1]
    sides = [vt.value if isinstance(vt, k.ClassTracker) else vt.constant() for vt in args]
    sides = [vt.real if side is MISSING else side for vt, side in zip(args, sides, strict=True)]
    if any(id(side) in t.made for side in sides) or not all(
        side is None or isinstance(side, type | types.UnionType | types.GenericAlias) for side in sides
    ):
        raise t.unsupported("bad-arguments", "a union of what is not known as a class")
    made = operator.or_(*sides)
    return wrap(t, made, CapturedSource("union", made))


@handlers.handles_each({types.MethodType.__eq__: True, types.MethodType.__ne__: False})
def compare(t: Tracing, args: Args, kwargs: Kwargs, of: bool) -> Any:
    """Two methods are equal when the receiver is one object and the functions are equal."""
    left, right = args
    if not isinstance(right, k.MethodTracker):
        return k.NOT_IMPLEMENTED
    if not all(isinstance(vt.function, k.FunctionTracker) for vt in args):
        raise t.unsupported("builtin", "a comparison of methods of other callables")
    parts = ((left.receiver, right.receiver), (left.function, right.function))
    return k.ConstantTracker(all(_operators.same_object(t, *pair) for pair in parts) is of)


# -- contexts ---------------------------------------------------------------------------------------------------------
def context_value(variable: Any) -> Any:
    """What a context variable holds, or `MISSING`."""
    return variable.get(MISSING)


@handlers.handles(contextvars.ContextVar.get)
def get_context(t: Tracing, args: Args, kwargs: Kwargs) -> Any:
    vt = args[0]
    value = MISSING if vt.source is None or kwargs else context_value(vt.real)
    if value is MISSING:  # its default decides: CPython's own
        raise t.unsupported("builtin", "reading a context variable that is not set")
    return wrap(t, value, CallSource(context_value, vt.source))
