"""Sources, guards and the guarded cache: the conditions for running a specialised version of a
function again.

A `Source` is the place a value is read from, a `Guard` a fact about it that is relied on.
`compile_guards` turns guards into a generated Python predicate. The kinds that need torch are
imported on first use, so all else works without it.
"""

import importlib as _importlib
from importlib.util import find_spec as _find_spec
from typing import TYPE_CHECKING

from stator_guards._cache import Cache, Checked, Entry, RecompileLimitWarning, RecompileReason
from stator_guards._container import AttrAbsent, KeyAbsent, KeyPresent, KeysAre, Length, LongerThan
from stator_guards._equal_roots import EACH, EqualFacts, EqualRoots, expanded, moved_source
from stator_guards._guard import CANNOT_READ, Failure, Guard, Kind
from stator_guards._guard_set import GuardSet, compile_guards
from stator_guards._loads import Loads
from stator_guards._object_ref import identity
from stator_guards._part_source import (
    AttrSource,
    CellSource,
    DictItemSource,
    FunctionPartSource,
    InstanceDictSource,
    ItemSource,
    KeySource,
    PartSource,
    SizeSource,
    SlotSource,
    TypeSource,
)
from stator_guards._relation import AllDistinct, Custom, DistinctObject, SameObject, ShapeExpression
from stator_guards._source import (
    CallSource,
    CapturedSource,
    LiteralSource,
    ParameterSource,
    Renderer,
    Source,
    State,
    shown_as,
)
from stator_guards._value import Equals, Is, IsNone, IsNotNone, Truth, TypeIs
from stator_guards._walk import function_text, load_source, tuple_text

if TYPE_CHECKING:
    from stator_guards._global_state import GlobalState
    from stator_guards._tensor import DistinctStorages, TensorMatch
    from stator_guards._tensor_memory import GradientSource, history_words, unhooked_words

__version__ = "0.1.0"

__all__ = [
    "CANNOT_READ",
    "Failure",
    "Guard",
    "GuardSet",
    "Kind",
    "Loads",
    "compile_guards",
    "function_text",
    "identity",
    "load_source",
    "tuple_text",
]
__all__ += ["Cache", "Checked", "Entry", "RecompileLimitWarning", "RecompileReason"]
# kinds of guards
__all__ += ["Equals", "Is", "IsNone", "IsNotNone", "Truth", "TypeIs"]
__all__ += [
    "AllDistinct",
    "AttrAbsent",
    "KeyAbsent",
    "KeyPresent",
    "KeysAre",
    "Length",
    "LongerThan",
]
__all__ += ["Custom", "DistinctObject", "SameObject", "ShapeExpression"]
if TYPE_CHECKING or _find_spec("torch"):  # else `import *` works without them
    __all__ += ["DistinctStorages", "GlobalState", "TensorMatch"]
    __all__ += ["GradientSource", "history_words", "unhooked_words"]
__all__ += ["EACH", "EqualFacts", "EqualRoots", "expanded", "moved_source"]
# sources
__all__ += [
    "CallSource",
    "CapturedSource",
    "LiteralSource",
    "ParameterSource",
    "PartSource",
    "Renderer",
    "Source",
    "State",
    "shown_as",
]
__all__ += [
    "AttrSource",
    "DictItemSource",
    "InstanceDictSource",
    "ItemSource",
    "KeySource",
    "SlotSource",
    "TypeSource",
]
__all__ += ["CellSource", "FunctionPartSource", "SizeSource"]

_NEED_TORCH = {
    "DistinctStorages": "stator_guards._tensor",
    "GlobalState": "stator_guards._global_state",
    "TensorMatch": "stator_guards._tensor",
    "GradientSource": "stator_guards._tensor_memory",
    "history_words": "stator_guards._tensor_memory",
    "unhooked_words": "stator_guards._tensor_memory",
}


def __getattr__(name: str) -> object:
    if name not in _NEED_TORCH:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    try:
        module = _importlib.import_module(_NEED_TORCH[name])
    except ModuleNotFoundError as error:
        if error.name != "torch":
            raise
        text = f"stator_guards.{name} is about tensors: pip install 'stator-guards[torch]'"
        raise ModuleNotFoundError(text, name="torch") from None
    return getattr(module, name)
