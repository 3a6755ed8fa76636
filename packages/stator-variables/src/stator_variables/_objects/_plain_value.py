"""Numbers and texts inside of existing instances of subclasses of `int`, `float` and `str`.

    class Meters(float): ...

    x * Meters(2.5)    =>    x * float.__pos__(meters)

An instance has one value for its whole life, so it is an input like a plain one. Methods of the
builtin class, indices and operators on tensors read it without a call of the program.
"""

import types
from collections.abc import Sequence
from typing import Any

import stator_guards as guards

from stator_variables._objects._lookup import overrides
from stator_variables._objects._number import build_number
from stator_variables._space import Space
from stator_variables._tracker import MISSING, VariableTracker

_READERS: dict[type, Any] = {int: int.__pos__, float: float.__pos__, str: str.__str__}
_METHODS = (types.MethodDescriptorType, types.WrapperDescriptorType)
_OF_THE_OBJECT = frozenset(
    "__getattribute__ __getnewargs__ __iter__ __sizeof__ format format_map join".split()
)
"""Methods of the builtin classes that depend on the class of an instance, return the instance
itself, or call methods of their arguments."""
_FORMATTING = frozenset(map(vars(str).__getitem__, ("__mod__", "__rmod__")))
"""Methods of texts that do the same; those of numbers compute."""
_TEXTS = ("__str__", "__repr__")
_CONVERSIONS: tuple[str, ...] = (
    "__float__",
    "__index__",
    "__int__",
    "__floor__",
    "__ceil__",
    "__trunc__",
)


def plain_value(t: Space, vt: VariableTracker) -> VariableTracker:
    """Return the tracker of the value in an instance, which no method of the class changes; any
    other tracker as it is."""
    if (read := _reader(vt)) is None or vt.source is None:
        return vt
    return build_number(t, read(vt.real), guards.CallSource(read, vt.source))


def plain_if_inherited(t: Space, vt: VariableTracker, *methods: str) -> VariableTracker:
    """Return the tracker of the value in an instance whose class overrides none of `methods`; any
    other tracker as it is."""
    if _reader(vt) is None or overrides(t, vt.cls, *methods):
        return vt
    return plain_value(t, vt)


def _reader(vt: VariableTracker) -> Any:
    """Return what reads the value of an existing instance of a subclass; None for all else."""
    read = next((read for base, read in _READERS.items() if issubclass(vt.cls, base)), None)
    # a known value is not read here, which would make a number of NumPy or a text a constant
    is_instance = not (vt.is_symbolic or vt.is_known or vt.source is None or vt.real is MISSING)
    return read if is_instance else None


def plain_arguments(
    t: Space, target: Any, args: Sequence[VariableTracker]
) -> Sequence[VariableTracker]:
    """Return the arguments of a function of C as it reads them: a method of a builtin class takes
    the values in instances of its subclasses."""
    read: Sequence[str] = ()
    if type(target) is types.BuiltinFunctionType and target.__module__ == "math":
        read = _CONVERSIONS
    elif type(target) in _METHODS and target.__objclass__ in _READERS:
        if target.__name__ in _OF_THE_OBJECT or target in _FORMATTING:
            return args
        read = _TEXTS if target.__name__ == "__format__" else ()
    else:
        return args
    is_overridden = any(overrides(t, vt.cls, method) for vt in args for method in read)
    return args if is_overridden else [plain_value(t, vt) for vt in args]
