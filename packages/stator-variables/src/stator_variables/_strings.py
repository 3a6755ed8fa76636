"""f-strings and `format`: on constants at once, on other values through their `__format__`, `__str__`, `__repr__`."""

from __future__ import annotations

from typing import Any

from stator_bytecode import operation, settle

from stator_variables import _attributes, _calls
from stator_variables import _kinds as k
from stator_variables._tracing import Tracing
from stator_variables._tracker import MISSING

_CONVERSIONS = {"s": "__str__", "r": "__repr__"}


def build_string(t: Tracing, parts: list[Any]) -> Any:
    values = [part.constant() for part in parts]
    if not all(isinstance(value, str) for value in values):
        raise t.unsupported("string-of-unknown", "a string made of parts that are not known while tracing")
    return k.ConstantTracker("".join(values))


@operation
def format_value(t: Tracing, value: Any, conversion: str, spec: Any) -> Any:
    """`format(convert(value), spec)`."""
    if conversion:
        value = yield from settle(convert(t, value, conversion))
    text = "" if spec is None else spec.constant()
    constant = value.constant()
    if constant is not MISSING and not isinstance(value, k.ClassTracker):
        return _calls.fold(t, format, [value, k.ConstantTracker(text)], {})
    method = _attributes.special(t, value, "__format__")
    if isinstance(method, k.MethodTracker) and getattr(method.function, "value", None) is object.__format__:
        return (yield from settle(convert(t, value, "s")))
    return (yield from settle(_calls.call(t, method, [k.ConstantTracker(text)], {})))


def convert(t: Tracing, value: Any, conversion: str) -> Any:
    """str(), repr() or ascii() of a value: a Result."""
    constant = value.constant()
    if constant is not MISSING:
        function = {"s": str, "r": repr, "a": ascii}[conversion]
        return _calls.fold(t, function, [value], {})
    if isinstance(value, k.ClassTracker) and type(value.value).__repr__ is type.__repr__:
        return k.ConstantTracker(repr(value.value))
    if conversion == "a":
        raise t.unsupported("string-of-unknown", "ascii() of a value that is not known while tracing")
    method = _attributes.special(t, value, _CONVERSIONS[conversion])
    return _calls.call(t, method, [], {})
