"""Aliases such as `list[int]`, which a function makes wherever it defines another one with
annotations: made while tracing, of classes, constants and existing objects."""

import types
from typing import Any

from stator_bytecode import Result
from stator_guards import CapturedSource, Is

from stator_variables._objects._arity import GENERIC
from stator_variables._objects._tuple import TupleTracker
from stator_variables._space import Space
from stator_variables._tracker import MISSING, Args, FunctionTable, Kwargs, VariableTracker, is_a
from stator_variables._trackers import ClassTracker, NewClassTracker

handlers = FunctionTable("generic alias")


@handlers.handles(*(vars(cls)["__class_getitem__"] for cls in GENERIC))
def of_class(t: Space, args: Args, kwargs: Kwargs) -> VariableTracker:
    """`list[int]`."""
    return _made(t, ClassTracker(types.GenericAlias), args)


@handlers.handles(types.GenericAlias)
def of_origin(t: Space, args: Args, kwargs: Kwargs) -> VariableTracker:
    """`collections.abc.Sequence[int]`."""
    return _made(t, ClassTracker(types.GenericAlias), args, kwargs)


@handlers.handles(types.GenericAlias.__new__)
def of_subclass(t: Space, args: Args, kwargs: Kwargs) -> VariableTracker:
    """`collections.abc.Callable[[int], str]`."""
    cls, *rest = args
    if not is_a(cls, ClassTracker):
        raise t.unsupported("bad-arguments", "a generic alias of a class that was made here")
    return _made(t, cls, rest, kwargs)


def _made(t: Space, cls: ClassTracker, args: Args, kwargs: Kwargs | None = None) -> VariableTracker:
    if len(args) != 2 or kwargs:
        raise t.unsupported("bad-arguments", "a generic alias with arguments of another form")
    origin, given = args
    parts = given.items if is_a(given, TupleTracker) else [given]
    value, *values = [_in_alias(t, vt) for vt in (origin, *parts)]
    is_new = any(is_a(vt, NewClassTracker) for vt in (cls, origin, *parts))
    if value is MISSING or MISSING in values or is_new:
        raise t.unsupported(
            "builtin", "a generic alias of new objects, or of a class that was made here"
        )
    inside = tuple(values) if is_a(given, TupleTracker) else values[0]
    alias: Any = types.GenericAlias.__new__(cls.value, value, inside)
    return t.wrap(alias, CapturedSource("alias", alias))


def _in_alias(t: Space, vt: VariableTracker) -> Any:
    """Return the value of a part of an alias; MISSING for a new object."""
    if is_a(vt, ClassTracker):
        return vt.value
    if (value := vt.constant()) is not MISSING or vt.source is None:
        return value
    t.guard(vt.source, Is(vt.real))
    return vt.real


@handlers.handles(types.GenericAlias.__call__)
def call_alias(t: Space, args: Args, kwargs: Kwargs) -> Result:
    """Call the class; an instance that can hold attributes gets `__orig_class__`, which builtin
    ones cannot."""
    origin = args[0].real.__origin__ if args[0].real is not MISSING else None
    if origin not in (list, dict, tuple, set, frozenset):
        raise t.unsupported("builtin", "a call of a generic alias")
    return t.call(ClassTracker(origin), args[1:], kwargs)
