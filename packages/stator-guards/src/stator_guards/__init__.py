"""Sources, guards and the guarded cache: when may a specialised version of a function run again.

A `Source` says where a value lives, a `Guard` what is relied on about it. `compile_guards` turns guards into a
generated Python predicate. The kinds that need torch are imported when they are first asked for, so all else works
without it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from stator_guards._cache import Cache, Checked, Entry, RecompileLimitWarning, RecompileReason
from stator_guards._container import AttrAbsent, KeyAbsent, KeyPresent, KeysAre, Length
from stator_guards._guard_set import GuardSet, compile_guards
from stator_guards._kind import Failure, Guard, Kind
from stator_guards._loads import Loads
from stator_guards._part import (
    AttrSource,
    CellSource,
    ClosureSource,
    CodeSource,
    DefaultsSource,
    DictItemSource,
    GradSource,
    InstanceDictSource,
    ItemSource,
    KeySource,
    KwDefaultsSource,
    PartSource,
    SizeSource,
    SlotSource,
    TypeSource,
)
from stator_guards._relation import Custom, DistinctObject, SameObject, ShapeExpression
from stator_guards._source import CallSource, CapturedSource, ParameterSource, Renderer, Source, State
from stator_guards._value import Equals, Is, IsNone, IsNotNone, Truth, TypeIs
from stator_guards._walk import load_source

if TYPE_CHECKING:
    from stator_guards._global_state import GlobalState
    from stator_guards._overlap import NoOverlap, Overlap
    from stator_guards._tensor import TensorMatch

__all__ = [
    "AttrAbsent",
    "Cache",
    "Checked",
    "Custom",
    "DistinctObject",
    "Entry",
    "Equals",
    "Failure",
    "GlobalState",
    "Guard",
    "GuardSet",
    "Is",
    "IsNone",
    "IsNotNone",
    "KeyAbsent",
    "KeyPresent",
    "KeysAre",
    "Kind",
    "Length",
    "Loads",
    "NoOverlap",
    "Overlap",
    "RecompileLimitWarning",
    "RecompileReason",
    "SameObject",
    "ShapeExpression",
    "TensorMatch",
    "Truth",
    "TypeIs",
    "compile_guards",
    "load_source",
]
# sources
__all__ += [
    "AttrSource",
    "CallSource",
    "CapturedSource",
    "CellSource",
    "ClosureSource",
    "CodeSource",
    "DefaultsSource",
    "DictItemSource",
    "GradSource",
    "InstanceDictSource",
    "ItemSource",
    "KeySource",
    "KwDefaultsSource",
    "ParameterSource",
    "PartSource",
    "Renderer",
    "SizeSource",
    "SlotSource",
    "Source",
    "State",
    "TypeSource",
]

_NEED_TORCH = {
    "GlobalState": "stator_guards._global_state",
    "NoOverlap": "stator_guards._overlap",
    "Overlap": "stator_guards._overlap",
    "TensorMatch": "stator_guards._tensor",
}


def __getattr__(name: str) -> object:
    if name not in _NEED_TORCH:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    import importlib

    return getattr(importlib.import_module(_NEED_TORCH[name]), name)
