"""Attributes of functions, cells and methods: of those made while tracing they are read from the
tracker."""

import types
from collections.abc import Callable
from types import FunctionType
from typing import Any

from stator_bytecode import NULL, Result
from stator_guards import SlotSource

from stator_variables._objects._cell import CellTracker
from stator_variables._objects._dict import DictTracker
from stator_variables._objects._method import MethodTracker
from stator_variables._objects._program_error import throw
from stator_variables._objects._tuple import TupleTracker
from stator_variables._space import Space
from stator_variables._tracker import MISSING, Args, FunctionTable, Kwargs, is_a
from stator_variables._trackers import NONE, BuiltinTracker, ConstantTracker, FunctionTracker

handlers = FunctionTable("function attribute")
_FUNCTION = FunctionType.__dict__
_METHOD = types.MethodType.__dict__


def _annotations(vt: FunctionTracker) -> Any:
    """The dict is made on the first look, as in CPython, and is the same one from then on.

    What a function computes (3.14) is left to CPython, which keeps both from then on.
    """
    if not is_a(vt.fields.get("__annotate__", NONE), ConstantTracker):
        return MISSING
    items = vt.annotations.items if is_a(vt.annotations, TupleTracker) else []
    entries = {
        name.constant(): (name, value) for name, value in zip(items[::2], items[1::2], strict=True)
    }
    made = vt.fields["__annotations__"] = DictTracker(dict, entries, complete=True)
    return made


def _docstring(code: types.CodeType) -> object:
    first = code.co_consts[0] if code.co_consts else None
    return first if isinstance(first, str) else None


_OF_NEW: dict[str, Callable[[Any], Any]] = {
    "__name__": lambda vt: ConstantTracker(vt.name),
    "__qualname__": lambda vt: ConstantTracker(vt.qualname),
    "__code__": lambda vt: BuiltinTracker(vt.code),
    "__globals__": lambda vt: vt.globals,
    "__closure__": lambda vt: TupleTracker(vt.closure) if vt.closure else NONE,
    "__defaults__": lambda vt: TupleTracker(vt.defaults) if vt.defaults else NONE,
    "__kwdefaults__": lambda vt: MISSING if vt.kwdefaults else NONE,
    "__annotations__": _annotations,
    "__annotate__": lambda vt: NONE,  # since 3.14
    "__doc__": lambda vt: ConstantTracker(_docstring(vt.code)),
    "__module__": lambda vt: ConstantTracker(vt.globals.real.get("__name__")),
    "__type_params__": lambda vt: TupleTracker([]),  # since 3.12
}


@handlers.handles_each({_FUNCTION[name]: name for name in _OF_NEW if name in _FUNCTION})
def read(t: Space, args: Args, kwargs: Kwargs, of: str) -> Any:
    vt = args[0]
    if vt.real is not MISSING:
        return t.wrap(_FUNCTION[of].__get__(vt.real), SlotSource(vt.source, FunctionType, of))
    found = vt.fields[of] if of in vt.fields else _OF_NEW[of](vt)
    if found is MISSING:
        raise t.unsupported(
            "function-attribute", f"the attribute {of} of a function made while tracing"
        )
    return found


@handlers.handles(types.CellType.__dict__["cell_contents"])
def cell_contents(t: Space, args: Args, kwargs: Kwargs) -> Result:
    if not is_a(args[0], CellTracker):
        raise t.unsupported("function-attribute", "the contents of a cell that is no variable here")
    if args[0].content is NULL:
        throw(ValueError, "Cell is empty")
    return args[0].content


@handlers.handles(_METHOD["__func__"])
def method_function(t: Space, args: Args, kwargs: Kwargs) -> Result:
    return args[0].function


@handlers.handles(
    *(
        vars(cls)["__self__"]
        for cls in (types.MethodType, types.BuiltinFunctionType, types.MethodWrapperType)
    )
)
def method_receiver(t: Space, args: Args, kwargs: Kwargs) -> Result:
    if not is_a(args[0], MethodTracker):
        raise t.unsupported("function-attribute", "__self__ of a C function")
    return args[0].receiver


@handlers.handles(_METHOD["__getattribute__"])
def method_attribute(t: Space, args: Args, kwargs: Kwargs) -> Result:
    """Implement `method.__getattribute__`: an attribute that a method does not have is read from
    its function."""
    vt, name = args[0], args[1].constant()
    if not isinstance(name, str):
        raise t.unsupported("bad-arguments", "an attribute with a name that is no known text")
    found = t.generic_get(vt, name)
    return found if found is not MISSING else t.get_attribute(vt.function, name)
