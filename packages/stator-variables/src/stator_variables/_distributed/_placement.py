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
from stator_variables._objects._builder_table import BuilderTable
from stator_variables._objects._wrap import build_object, equal_to, with_namespace
from stator_variables._space import Space
from stator_variables._tracker import MISSING, ArgumentOf, VariableTracker
from stator_variables._trackers import ConstantTracker

builders = BuilderTable()

_C: Any = getattr(torch._C, "_distributed", None)
CLASSES: tuple[Any, ...] = (
    () if _C is None else (_C.Placement, _C.Shard, _C.StridedShard, _C.Replicate, _C.Partial)
)
"""Their base classes in C++, that of all first; a release without distributed has none."""
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

    def in_graph(self, t: Space, part: ArgumentOf) -> Any:
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


@builders.by_base.handles(*CLASSES[:1])
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
