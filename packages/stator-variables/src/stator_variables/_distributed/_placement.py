"""Placements (`Shard(0)`, `Replicate()`, `Partial()`): values of C++ that compare by value.

    [Shard(0), Replicate()]      entry: [Shard(0), Replicate()]

A new one is made in the trace by its own constructor, and again by the entry. A node has it as a
constant.
"""

from typing import Any

import torch
from stator_bytecode import Result
from stator_guards import Source

from stator_variables._emitter import Emitter, filled
from stator_variables._objects import _new_values
from stator_variables._objects._builder_table import BuilderTable
from stator_variables._objects._program_error import as_program_error
from stator_variables._objects._wrap import build_object, equal_to, with_namespace
from stator_variables._space import Space
from stator_variables._tracker import MISSING, Args, FunctionTable, Kwargs, VariableTracker, is_a
from stator_variables._trackers import ConstantTracker

handlers = FunctionTable("placement")
builders = BuilderTable()

_C: Any = getattr(torch._C, "_distributed", None)
"""Their base classes; a release without distributed has none."""
_CLASSES: tuple[Any, ...] = (
    () if _C is None else (_C.Placement, _C.Shard, _C.StridedShard, _C.Replicate, _C.Partial)
)
_FIELDS = frozenset({"dim", "reduce_op", "split_factor"})
_PLACES = {
    "Shard": ("dim",),
    "Replicate": (),
    "Partial": ("reduce_op",),
    "_StridedShard": ("dim", "split_factor"),
}
"""The arguments of the constructors of these classes."""


class PlacementTracker(VariableTracker):
    """A placement: `value` is an object equal to that of the entry."""

    may_hold = False

    def __init__(self, value: Any) -> None:
        self.value = value
        self.cls = type(value)

    def describe(self) -> str:
        return repr(self.value)

    def constant(self) -> Any:
        return self.value

    def in_graph(self, t: Space) -> Any:
        return self.value

    def get_attribute(self, t: Space, name: str) -> Result:
        if name in _FIELDS and hasattr(self.value, name):
            return ConstantTracker(getattr(self.value, name))
        return MISSING

    def rebuild(self, e: Emitter) -> str:
        fields = _PLACES[self.cls.__name__]
        args = ", ".join(f"{field}={getattr(self.value, field)!r}" for field in fields)
        return filled(e, self, e.bind(self, f"{e.capture(self.cls)}({args})"))


class MaskedTracker(VariableTracker):
    """The placement of a result, with a mask for the next operator: its class is known, and what
    needs more is a break."""

    may_hold = False

    def __init__(self, value: Any) -> None:
        self.placement = value
        self.cls = type(value)

    def get_attribute(self, t: Space, name: str) -> Result:
        if name in vars(self.placement) or name in _FIELDS:
            raise t.unsupported("tensor-subclass", f"the attribute {name} of {self.placement!r}")
        return MISSING

    def rebuild(self, e: Emitter) -> str:
        raise e.refuse(self)


def placement_of(value: Any) -> VariableTracker:
    """The tracker of a placement that a result has."""
    return PlacementTracker(value) if has_value(value) else MaskedTracker(value)


@builders.by_base.handles(*_CLASSES[:1])
def build(t: Space, real: Any, source: Source) -> VariableTracker:
    """A placement with attributes of its own, or one that holds a mask, is any other object."""
    if vars(real) or not has_value(real):
        return build_object(t, real, source)
    t.guard(source, equal_to(real))
    return with_namespace(t, PlacementTracker(real), real, source)


def has_value(placement: Any) -> bool:
    """Return True for a placement that its constructor's arguments determine."""
    return type(placement).__module__ == _MODULE and type(placement).__name__ in _PLACES


_MODULE = "torch.distributed.tensor.placement_types"


def _methods(*names: str) -> dict[Any, str]:
    """The functions in C++ of these names, each with its name."""
    found = {name: [vars(cls).get(name) for cls in _CLASSES] for name in names}
    return {
        method.__func__: name
        for name, methods in found.items()
        for method in methods
        if hasattr(method, "__func__")
    }


_NEW = () if _C is None else (_C.Placement.__new__,)


@handlers.handles(*_NEW)
def allocate(t: Space, args: Args, kwargs: Kwargs) -> Result:
    """A placement before its constructor; MISSING for other classes of pybind11."""
    cls: Any = args[0]
    is_placement = issubclass(cls.value, _CLASSES[0])
    if not is_placement or not has_value(made := cls.value.__new__(cls.value)):
        return MISSING
    return PlacementTracker(made)


@handlers.handles_each(_methods("__init__"))
def initialise(t: Space, args: Args, kwargs: Kwargs, of: str) -> None:
    """Initialise a new placement by its constructor in C++."""
    vt: Any = args[0]
    named = {name: value.constant() for name, value in kwargs.items()}
    values = [value.constant() for value in args[1:]]
    is_new = is_a(vt, PlacementTracker) and vt.source is None
    if not is_new or MISSING in (*values, *named.values()):
        raise t.unsupported("construction", f"making a {vt.cls.__qualname__} of unknown values")
    try:
        # of the class in C++ whose constructor it is: another one may be Python code
        next(cls for cls in vt.cls.__mro__ if cls in _CLASSES).__init__(vt.value, *values, **named)
    except (TypeError, ValueError) as error:
        raise as_program_error(t, error) from None


@handlers.handles_each(_methods("is_shard", "is_replicate", "is_partial", "__eq__"))
def method(t: Space, args: Args, kwargs: Kwargs, of: str) -> Result:
    """Call a method of C++ on what is known: placements and constants."""
    known = [vt.constant() for vt in args]
    named = {name: vt.constant() for name, vt in kwargs.items()}
    if not is_a(args[0], PlacementTracker) or any(
        value is MISSING for value in (*known, *named.values())
    ):
        raise t.unsupported("builtin", f"{of} of a placement, with what is not known")
    base = next(cls for cls in args[0].cls.__mro__ if cls in _CLASSES and of in vars(cls))
    return _new_values.computed(t, getattr(base, of), *known, **named)
