"""What stands in and around class bodies: `property` and its kin, library functions that make or change classes.

Those of DECORATORS look at names and annotations alone: they are run on the stand-in at once, and again by the entry.
"""

import abc
import collections
import dataclasses
import enum
import functools
import typing
from typing import Any

import torch
from stator_bytecode import HandlerTable
from stator_guards import CapturedSource

from stator_variables import _kinds as k
from stator_variables._build import wrap
from stator_variables._builtin._arity import Args, Kwargs
from stator_variables._model import _calls
from stator_variables._model._classes import adopt, here, make, run, step
from stator_variables._runtime import new_named_tuple
from stator_variables._tracing import Tracing
from stator_variables._tracker import MISSING

handlers: HandlerTable[Any, Any] = HandlerTable("class function")
DECORATORS: tuple[Any, ...] = (
    *(functools.total_ordering, enum.unique, typing.final, typing.runtime_checkable, abc.update_abstractmethods),
    *(dataclasses._process_class, abc._abc_init, torch.autograd.function.FunctionMeta.__init__),  # type: ignore[attr-defined]
)
_NAMED = {property: ("fget", "fset", "fdel", "doc"), classmethod: (), staticmethod: ()}


@handlers.handles_each([*_NAMED])
def describe(t: Tracing, args: Args, kwargs: Kwargs, of: Any) -> Any:
    if len(args) > 4 or not {*kwargs} <= {*_NAMED[of]} or (of is not property and len(args) != 1):
        raise t.unsupported("bad-arguments", f"a call of {of.__name__} that it does not accept")
    return k.RecipeTracker(of, args, kwargs)


@handlers.handles(property.__init__)
def initialise(t: Tracing, args: Args, kwargs: Kwargs) -> Any:
    if type(args[0]) is not k.ObjectTracker or args[0].real is not MISSING:
        raise t.unsupported("construction", "a property that is initialised again")
    return k.NONE


@handlers.handles_each({property.getter: "fget", property.setter: "fset", property.deleter: "fdel"})
def replace(t: Tracing, args: Args, kwargs: Kwargs, of: str) -> Any:
    """`@value.setter`: a property like this one, with another function."""
    known, function = args
    if not isinstance(known, k.RecipeTracker) or known.cls is not property:
        raise t.unsupported("construction", "a property made of one from outside")
    parts = {**dict(zip(_NAMED[property], known.args, strict=False)), **known.kwargs}
    return k.RecipeTracker(property, [], {**parts, of: function})


@handlers.handles_each(DECORATORS)
def decorate(t: Tracing, args: Args, kwargs: Kwargs, of: Any) -> Any:
    made, *rest = args
    if not isinstance(made, k.MadeClass) or kwargs:
        raise t.unsupported("class-definition", f"{of.__qualname__}() of a class from outside")
    for value in vars(made.value).values():
        if type(value) is dataclasses.Field:  # what is done to it here, its tracker does not see
            t.heap.pop(id(value), None)
    result = run(t, of, args)
    if not isinstance(result, type) or result is made.value:
        step(t, made, of, rest)
        return k.NONE if result is None else made
    return adopt(t, result, of, args)


_GENERIC = {"__class_getitem__": "_generic_class_getitem", "__init_subclass__": "_generic_init_subclass"}
_IN_C = {vars(typing.Generic)[name]: other for name, other in _GENERIC.items() if hasattr(typing, other)}


@handlers.handles_each(_IN_C)
def call_of_typing(t: Tracing, args: Args, kwargs: Kwargs, of: str) -> Any:
    """What `Generic` does in C since 3.12: it calls a function of `typing`."""
    function = getattr(typing, of)
    return _calls.call(t, wrap(t, function, CapturedSource(of, function)), args, kwargs)


@handlers.handles(collections.namedtuple)
def named_tuple(t: Tracing, args: Args, kwargs: Kwargs) -> Any:
    if len(args) != 2:
        raise t.unsupported("bad-arguments", "namedtuple() of other than a name and fields")
    return make(t, new_named_tuple, [*args, _calls.new_dict(t, {"module": here(t), **kwargs})])
