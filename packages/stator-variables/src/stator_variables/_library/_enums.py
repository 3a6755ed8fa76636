"""Members of an Enum by their value: the class stores them, and the combinations of flags that it
makes on demand.

A member is found, or made, while tracing. That a class stores a combination is observable only in
the next look-up.
"""

import enum
from types import FunctionType
from typing import Any

from stator_bytecode import Result
from stator_guards import CapturedSource

from stator_variables import _trackers as k
from stator_variables._defining_module import module_of
from stator_variables._objects._wrap import ATOMS
from stator_variables._runtime._contents import plain_lookup
from stator_variables._space import Space
from stator_variables._tracker import MISSING, Args, FunctionTable, Kwargs, is_a

handlers = FunctionTable("enum")


@handlers.handles(enum.Enum.__new__)
def member_of(t: Space, args: Args, kwargs: Kwargs) -> Result:
    """Look up `Color(1)`; MISSING if code of the program overrides it."""
    if len(args) != 2 or not is_a(args[0], k.ClassTracker) or id(args[0].value) in t.heap.made:
        return MISSING
    cls, value = args[0].value, args[1].constant()
    if type(value) not in ATOMS or type(cls) is not enum.EnumType:
        return MISSING
    found = cls._value2member_map_.get(value, MISSING)
    if found is MISSING and _makes_combinations(cls):
        found = _made(cls, value)
    return found if found is MISSING else t.wrap(found, CapturedSource(str(value), found))


def _made(cls: type, value: object) -> Any:
    try:
        return cls(value)
    except (ValueError, TypeError):  # interpreted, it raises in its own words
        return MISSING


@handlers.handles(enum.Flag.__invert__, enum.IntFlag.__invert__)
def inverted(t: Space, args: Args, kwargs: Kwargs) -> Result:
    """`~flag`, which the flag keeps."""
    flag = args[0].constant()
    if not isinstance(flag, enum.Flag) or id(type(flag)) in t.heap.made:
        return MISSING
    if not _makes_combinations(type(flag)):
        return MISSING
    found = ~flag
    return t.wrap(found, CapturedSource(f"not {flag.name}", found))


def _makes_combinations(cls: type) -> bool:
    """Return True for flags whose combinations are made by code of `enum` alone."""
    hooks = [plain_lookup(cls, name) for name in ("_missing_", "__call__", "__or__", "__invert__")]
    functions = [getattr(hook, "__func__", hook) for hook in hooks if hook is not MISSING]
    return issubclass(cls, enum.Flag) and all(
        isinstance(function, FunctionType) and module_of(function) == "enum"
        for function in functions
    )
