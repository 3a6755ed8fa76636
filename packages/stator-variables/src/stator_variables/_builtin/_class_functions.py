"""Functions in and around class bodies: `property` and its kin, library functions that make or
change classes; and binding.

Those of DECORATORS read names and annotations alone: they are run on the substitute at once, and
again by the entry.
"""

import abc
import collections
import contextvars
import dataclasses
import enum
import functools
import operator
import types
import typing
from typing import Any

import torch
from stator_bytecode import Result
from stator_guards import CallSource, CapturedSource, Is, shown_as

from stator_variables._objects import _new_values
from stator_variables._objects._classes import here, make, run, step, track_class
from stator_variables._objects._method import MethodTracker
from stator_variables._objects._program_error import throw
from stator_variables._objects._recipe import RecipeTracker
from stator_variables._objects._wrap import wrap_present
from stator_variables._protocols import _attributes, _calls, _same_object
from stator_variables._runtime._support import new_named_tuple
from stator_variables._space import Space
from stator_variables._tracker import MISSING, Args, FunctionTable, Kwargs, VariableTracker, is_a
from stator_variables._trackers import (
    NONE,
    NOT_IMPLEMENTED,
    BuiltinTracker,
    ConstantTracker,
    FunctionTracker,
    NewClassTracker,
    ObjectTracker,
    is_none,
)

handlers = FunctionTable("class function")
DECORATORS: tuple[Any, ...] = (
    *(
        functools.total_ordering,
        enum.unique,
        typing.final,
        typing.runtime_checkable,
        abc.update_abstractmethods,
    ),
    *(dataclasses._process_class, abc._abc_init, torch.autograd.function.FunctionMeta.__init__),  # type: ignore[attr-defined]
)
_PARTS_OF_PROPERTY = ("fget", "fset", "fdel", "doc")


@handlers.handles_each((property, classmethod, staticmethod))
def describe(t: Space, args: Args, kwargs: Kwargs, of: type) -> RecipeTracker:
    return RecipeTracker(of, args, kwargs)


@handlers.handles(property.__init__)
def initialise(t: Space, args: Args, kwargs: Kwargs) -> Result:
    if type(args[0]) is not ObjectTracker or args[0].real is not MISSING:
        raise t.unsupported("construction", "a property that is initialised again")
    return NONE


@handlers.handles_each({property.getter: "fget", property.setter: "fset", property.deleter: "fdel"})
def replace(t: Space, args: Args, kwargs: Kwargs, of: str) -> RecipeTracker:
    """`@value.setter`: a property like this one, with another function."""
    known, function = args
    if not is_a(known, RecipeTracker) or known.cls is not property:
        raise t.unsupported("construction", "a property made of one from outside")
    parts = {**dict(zip(_PARTS_OF_PROPERTY, known.args, strict=False)), **known.kwargs}
    return RecipeTracker(property, [], {**parts, of: function})


@handlers.handles_each(DECORATORS)
def decorate(t: Space, args: Args, kwargs: Kwargs, of: Any) -> VariableTracker:
    made, *rest = args
    if not is_a(made, NewClassTracker) or kwargs:
        raise t.unsupported("class-definition", f"{of.__qualname__}() of a class from outside")
    for value in vars(made.value).values():
        if type(value) is dataclasses.Field:  # what is done to it here, its tracker does not see
            t.heap.trackers.pop(id(value), None)
    if not isinstance(result := run(t, of, args), type) or result is made.value:
        step(t, made, of, rest)
        return NONE if result is None else made
    return track_class(t, result, of, args)


_GENERIC = {
    "__class_getitem__": "_generic_class_getitem",
    "__init_subclass__": "_generic_init_subclass",
}
_IN_C = {
    vars(typing.Generic)[name]: other for name, other in _GENERIC.items() if hasattr(typing, other)
}


@handlers.handles_each(_IN_C)
def call_of_typing(t: Space, args: Args, kwargs: Kwargs, of: str) -> Result:
    """Call the function of `typing` that `Generic` calls in C since 3.12."""
    function = getattr(typing, of)
    return t.call(t.wrap(function, CapturedSource(of, function)), args, kwargs)


@handlers.handles(collections.namedtuple)
def named_tuple(t: Space, args: Args, kwargs: Kwargs) -> Result:
    if len(args) != 2:
        raise t.unsupported("bad-arguments", "namedtuple() of other than a name and fields")
    return make(t, new_named_tuple, [*args, _new_values.new_dict({"module": here(t), **kwargs})])


# What binds and refers, called by name: `__get__`, `type.__call__`, methods compared, unions,
# context variables.

_BOUND = {
    types.FunctionType: types.MethodType,
    types.WrapperDescriptorType: types.MethodWrapperType,
    types.MethodDescriptorType: types.BuiltinFunctionType,
}
"""The class of a descriptor, and that of what its `__get__` gives for an instance."""


@handlers.handles(*(vars(cls)["__get__"] for cls in _BOUND))
def bind(t: Space, args: Args, kwargs: Kwargs) -> VariableTracker:
    if is_none(args[1]) and (len(args) < 3 or is_none(args[2])):
        raise t.unsupported("bad-arguments", "a call of __get__ that it does not accept")
    function, receiver = args[:2]
    if not (is_none(receiver) or _attributes.fits(function.real, receiver)):
        raise t.unsupported(
            "bad-arguments", "binding a descriptor of C to an instance of another class"
        )
    return (
        function if is_none(receiver) else MethodTracker(function, receiver, _BOUND[function.cls])
    )


@handlers.handles(type.__call__)
def call_class(t: Space, args: Args, kwargs: Kwargs) -> Result:
    """Implement `super().__call__` of a metaclass."""
    cls, *rest = args
    if cls.base is not type or cls.value is type:
        raise t.unsupported("bad-arguments", "a call of type.__call__ that it does not accept")
    return _calls.instantiate(t, cls, rest, kwargs)


_UNIONS = (vars(cls)[name] for cls in (type, types.UnionType) for name in ("__or__", "__ror__"))


@handlers.handles_each(_UNIONS)
def union(t: Space, args: Args, kwargs: Kwargs, of: Any) -> VariableTracker:
    """`int | None`."""
    args = args if of.__name__ == "__or__" else args[::-1]
    sides = [vt.value if vt.base is type else vt.constant() for vt in args]
    sides = [vt.real if side is MISSING else side for vt, side in zip(args, sides, strict=True)]
    if any(id(side) in t.heap.made for side in sides) or not all(
        side is None or isinstance(side, type | types.UnionType | types.GenericAlias)
        for side in sides
    ):
        raise t.unsupported("bad-arguments", "a union of what is not known as a class")
    made = operator.or_(*sides)
    return t.wrap(made, CapturedSource("union", made))


_CALLABLE = (types.MethodType, types.BuiltinFunctionType, types.MethodWrapperType)


@handlers.handles_each(
    {**{cls.__eq__: True for cls in _CALLABLE}, **{cls.__ne__: False for cls in _CALLABLE}}
)
def compare(t: Space, args: Args, kwargs: Kwargs, of: bool) -> ConstantTracker:
    """Two methods are equal when the receiver is one object and the functions are equal."""
    left, right = args
    if left.cls is not right.cls:
        return NOT_IMPLEMENTED
    if all(is_a(vt, BuiltinTracker) for vt in args):
        return ConstantTracker((left.real == right.real) is of)
    known = (FunctionTracker, BuiltinTracker)
    if not all(is_a(vt, MethodTracker) and is_a(vt.function, known) for vt in args):
        raise t.unsupported("builtin", "a comparison of methods of other callables")
    parts = ((left.receiver, right.receiver), (left.function, right.function))
    return ConstantTracker(all(_same_object.same_object(t, *pair) for pair in parts) is of)


# -- contexts --------------------------------------------------------------------------------------
@shown_as("the value of {0}")
def context_value(variable: Any) -> Any:
    """Return the value of a context variable, or `MISSING`."""
    return variable.get(MISSING)


@shown_as("the default of {0}")
def own_default(variable: Any) -> Any:
    """Return what a context variable gives where it is not set, or `MISSING`."""
    try:
        return contextvars.Context().run(variable.get)
    except LookupError:
        return MISSING


@handlers.handles(contextvars.ContextVar.get)
def get_context(t: Space, args: Args, kwargs: Kwargs) -> Result:
    vt, *default = args
    if vt.source is None or kwargs or len(default) > 1:
        raise t.unsupported("builtin", "reading a context variable that was made here")
    source = CallSource(context_value, vt.source)
    if (value := context_value(vt.real)) is not MISSING:
        return wrap_present(t, value, source)

    t.guard(source, Is(MISSING))
    if default:
        return default[0]
    source = CallSource(own_default, vt.source)
    if (value := own_default(vt.real)) is not MISSING:
        return wrap_present(t, value, source)
    t.guard(source, Is(MISSING))
    throw(LookupError, vt)
