"""Formatting of values, by `__format__`, `__str__` and `__repr__`."""

import functools
from typing import Any

from stator_bytecode import OperationSteps, Result, after, operation, settle

from stator_variables._objects._lookup import guarded_lookup, overrides
from stator_variables._objects._plain_value import plain_if_inherited
from stator_variables._objects._program_error import complain
from stator_variables._objects._text import known_text, text_of_number
from stator_variables._protocols import _attributes
from stator_variables._space import Space
from stator_variables._tracker import MISSING, VariableTracker, is_a
from stator_variables._trackers import BuiltinTracker, ConstantTracker, TextTracker

_CONVERSIONS = {"s": "__str__", "r": "__repr__"}


@operation
def format_value(
    t: Space, value: VariableTracker, conversion: str, spec: VariableTracker | None
) -> OperationSteps:
    """`format(convert(value), spec)`."""
    if conversion:
        value = yield from settle(convert(t, value, conversion))
    text = "" if spec is None else spec.constant()
    if value.is_symbolic:
        return text_of_number(t, value, text)
    if is_a(value, TextTracker) and not text:
        return value
    folded = t.fold(format, [value, ConstantTracker(text)], {})
    if folded is not MISSING and value.base is not type:
        return folded
    if not text and value.is_known and not overrides(t, value.cls, "__format__"):
        return (yield from settle(convert(t, value, "s")))

    plain = plain_if_inherited(t, value, "__format__", "__str__", "__repr__")
    if plain is not value:
        return (yield from settle(format_value(t, plain, "", spec)))
    method = t.special(value, "__format__")
    found = yield from settle(t.call(method, [ConstantTracker(text)]))
    if not issubclass(found.cls, str):
        complain(t, TypeError, "__format__ must return a str, not ", found.cls)
    return found


def convert(t: Space, value: Any, conversion: str) -> Result:
    """str(), repr() or ascii() of a value: a Result."""
    if value.is_symbolic:
        return text_of_number(t, value)
    if is_a(value, TextTracker) and conversion == "s":
        return value
    if (
        folded := t.fold({"s": str, "r": repr, "a": ascii}[conversion], [value], {})
    ) is not MISSING:
        return folded

    names = ("__str__", "__repr__") if conversion == "s" else ("__repr__",)
    if value.base is type and not overrides(t, value.cls, *names):
        return ConstantTracker(repr(value.value))
    if is_a(value, BuiltinTracker) and "at 0x" not in repr(value.value):
        return ConstantTracker(repr(value.value))
    plain = plain_if_inherited(t, value, "__str__", "__repr__")
    if plain is not value:
        return convert(t, plain, conversion)
    if conversion == "a":
        return after(
            convert(t, value, "r"), lambda text: ConstantTracker(_escaped(known_text(t, text)))
        )

    name = _CONVERSIONS[conversion]
    if name == "__repr__" and _attributes.may_refuse(t, guarded_lookup(t, value.cls, name)):
        raise t.unsupported(
            "identity-number", "a `__repr__` that a descriptor of the program's provides"
        )
    result = t.call(t.special(value, name), [])
    return after(result, functools.partial(_checked_string, t, name))


def _escaped(text: str) -> str:
    """Return a `repr` as `ascii` escapes it."""
    return text.encode("ascii", "backslashreplace").decode("ascii")


def _checked_string(t: Space, name: str, found: VariableTracker) -> VariableTracker:
    if not issubclass(found.cls, str):
        complain(t, TypeError, f"{name} returned non-string (type ", found.cls, ")")
    return found
