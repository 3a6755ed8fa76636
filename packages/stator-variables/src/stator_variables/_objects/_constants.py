"""Values known by what they are equal to, or by which object they are: how existing ones are
guarded."""

import enum
import types

import torch
from stator_guards import AttrSource, Custom, Equals, Source, TypeIs

from stator_variables._objects._builder_table import (
    BuilderTable,
    build_by_identity,
    by_identity,
    field,
)
from stator_variables._objects._number import build_atom, build_scalar
from stator_variables._objects._wrap import (
    ATOMS,
    BY_IDENTITY,
    ENUMS_OF_C,
    SINGLETONS,
    VALUES,
    equal_to,
    with_namespace,
)
from stator_variables._pure import PATHS, TRUTHS, is_number_of_numpy
from stator_variables._space import Space
from stator_variables._tracker import VariableTracker
from stator_variables._trackers import ClassTracker, ConstantTracker, SliceTracker

builders = BuilderTable()


@builders.by_class.handles(*VALUES)
def build_value(t: Space, real: object, source: Source) -> VariableTracker:
    if type(real) is slice and any(_varies(t, real, name, source) for name in _BOUNDS):
        t.guard(source, TypeIs(slice))
        start, stop, step = (field(t, real, name, source) for name in _BOUNDS)
        return SliceTracker((start, stop, step))
    if is_number_of_numpy(type(real)) or type(real) in TRUTHS:
        return build_scalar(t, real, source)
    t.guard(
        source,
        equal_to(real) if type(real) in (torch.device, *ENUMS_OF_C) else Equals(real),
    )
    return ConstantTracker(real)


_BOUNDS = ("start", "stop", "step")


def _varies(t: Space, real: slice, name: str, source: Source) -> bool:
    """Return True for a part of a slice that is no constant."""
    part = getattr(real, name)
    if type(part) is int:
        return t.policy.number_is_symbolic(AttrSource(source, name), part, False)
    return type(part) not in ATOMS


build_singleton = builders.by_class.handles(*SINGLETONS)(by_identity(ConstantTracker))
build_class = by_identity(ClassTracker)
_MAY_BE_BOUND = (types.BuiltinFunctionType, types.MethodWrapperType)  # see `_method`
_OPERATORS = (
    torch._ops.OpOverload,
    torch._ops.OpOverloadPacket,
    torch._ops.HigherOrderOperator,
)
builders.by_class.handles(*ATOMS)(build_atom)
builders.by_class.handles(*(cls for cls in BY_IDENTITY if cls not in _MAY_BE_BOUND))(
    build_by_identity
)
builders.by_base.handles(types.ModuleType, *_OPERATORS)(build_by_identity)


@builders.by_class.handles(*PATHS)
def build_path(t: Space, real: VariableTracker, source: Source) -> VariableTracker:
    cls, text = type(real), str(real)
    same = Custom("{fn}({value})", lambda path: type(path) is cls and str(path) == text, repr(real))
    t.guard(source, same)
    return ConstantTracker(real)


@builders.by_base.handles(enum.Enum)
def build_enum(t: Space, real: VariableTracker, source: Source) -> VariableTracker:
    return with_namespace(t, build_singleton(t, real, source), real, source)
