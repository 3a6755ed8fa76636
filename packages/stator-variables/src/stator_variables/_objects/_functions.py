"""Existing functions, and attributes of bound methods."""

from types import FunctionType
from typing import Any

from stator_bytecode import Result
from stator_guards import FunctionPartSource, Is, ItemSource, Source

from stator_variables._objects._builder_table import BuilderTable
from stator_variables._objects._method import MethodTracker
from stator_variables._objects._program_error import complain
from stator_variables._objects._wrap import globals_tracker, of_instances
from stator_variables._runtime._contents import plain_lookup
from stator_variables._space import Space
from stator_variables._tracker import MISSING, VariableTracker, is_a
from stator_variables._trackers import BuiltinTracker, ConstantTracker, FunctionTracker

builders = BuilderTable()
_OF_C_METHODS = ("__name__", "__qualname__", "__doc__", "__text_signature__")
"""The attributes that a bound method of C takes from its descriptor."""


def of_method(t: Space, vt: MethodTracker, name: str) -> Result:
    """An attribute of a bound method; MISSING for what its class has (`method_getattro`), but for
    `__doc__`."""
    if name in (
        "__func__",
        "__self__",
        "__call__",
        "__class__",
        "__eq__",
        "__hash__",
        "__get__",
        "__reduce__",
    ):
        return MISSING

    if is_a(vt.function, FunctionTracker):
        has = name != "__doc__" and plain_lookup(vt.cls, name) is not MISSING
        return MISSING if has else t.get_attribute(vt.function, name)
    if name in _OF_C_METHODS and is_a(vt.function, BuiltinTracker):
        return ConstantTracker(getattr(vt.function.value, name))
    if plain_lookup(vt.cls, name) is not MISSING:
        raise t.unsupported("c-attribute", f"{name} of a {vt.cls.__name__}")
    complain(t, AttributeError, "'", vt.cls, f"' object has no attribute '{name}'")


@builders.by_class.handles(FunctionType)
@of_instances
def build_function(t: Space, real: Any, source: Source) -> VariableTracker:
    t.guard(FunctionPartSource(source, "code"), Is(real.__code__))
    cells = FunctionPartSource(source, "closure")
    closure = tuple(
        t.wrap(cell, ItemSource(cells, i)) for i, cell in enumerate(real.__closure__ or ())
    )
    globals_vt = globals_tracker(t, real.__globals__)
    return FunctionTracker(
        real.__code__, globals_vt, name=real.__name__, qualname=real.__qualname__, closure=closure
    )
